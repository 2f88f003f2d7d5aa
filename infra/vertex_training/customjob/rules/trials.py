"""Rules about tuning jobs: search, trials and their arguments."""

import math
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import SPEC, Job, is_shell
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.customjob.rules.study import (
    STUDY,
    STUDY_TYPES,
    TUNING_GUIDE,
    TUNING_TYPES,
    metrics_of,
    parameters_of,
    study_of,
)
from vertex_training.errors import Level

ARGUMENTS: Final = re.compile(r"\$(?:[@*1-9]|\{[@*1-9])")
#: Counts of a tuning job -> level if the count is missing. The default is 1, as in gcloud
#: (googlecloudsdk/api_lib/ai/hp_tuning_jobs/client.py, 528.0.0).
COUNTS: Final[dict[str, Level]] = {"maxTrialCount": "warning", "parallelTrialCount": "note"}
MOST, PARALLEL = COUNTS


@rule("trial-count", TUNING_TYPES)
def trial_count(job: Job) -> Iterator[Finding]:
    """Check that maxTrialCount and parallelTrialCount are set to at least 1."""
    if job.tuning is None:
        return
    for name, level in COUNTS.items():
        count = job.tuning.get(name)
        if count is None:
            what, hint = f"{name} is missing; the default is 1, as in gcloud", f"add {name}: NUMBER"
            yield Finding((), what, "", hint, missing=name, level=level)
        elif count < 1:
            yield Finding((name,), f"{name} must be at least 1", str(count), "write 1 or more")


@rule("trial-parallel", TUNING_GUIDE, "warning")
def trial_parallel(job: Job) -> Iterator[Finding]:
    """Check that parallelTrialCount is at most maxTrialCount."""
    tuning = job.tuning or {}
    most, parallel = tuning.get(MOST, 0), tuning.get(PARALLEL, 0)
    if parallel > most > 0:
        what = f"{PARALLEL} is above maxTrialCount ({most})"
        yield Finding((PARALLEL,), what, str(parallel), f"write {most} or less")


@rule("trial-failures", TUNING_GUIDE)
def trial_failures(job: Job) -> Iterator[Finding]:
    """Check that maxFailedTrialCount is from 0 (the service decides) to maxTrialCount."""
    tuning = job.tuning or {}
    failed, most = tuning.get("maxFailedTrialCount", 0), tuning.get(MOST, 0)
    path = ("maxFailedTrialCount",)
    if failed < 0:
        hint = "write 0 to let the service decide"
        yield Finding(path, "maxFailedTrialCount must not be negative", str(failed), hint)
    elif failed > most > 0:
        what = f"maxFailedTrialCount is above maxTrialCount ({most})"
        yield Finding(path, what, str(failed), f"write {most} or less")


@rule("trial-output", TUNING_GUIDE, "warning")
def trial_output(job: Job) -> Iterator[Finding]:
    """Check that a tuning job has a baseOutputDirectory, in which each trial gets a folder."""
    if job.tuning is not None and not job.output and job.spec:
        uri = "${buckets.NAME}/${job.name}/${job.requestId}"
        hint = f"add baseOutputDirectory: {{outputUriPrefix: {uri}}}"
        what = "baseOutputDirectory is missing: models of trials would be lost"
        yield Finding(SPEC, what, "", hint, missing="baseOutputDirectory")


@rule("trial-arguments", TUNING_GUIDE, "warning")
def trial_arguments(job: Job) -> Iterator[Finding]:
    """Check that a trial's program gets all parameters, also if a shell script starts it."""
    for pool in job.pools if job.tuning else ():
        words = pool.words()
        texts = [text for _, text in words]
        if len(texts) < 3 or not is_shell(texts[0]):
            continue
        flags = [i for i, text in enumerate(texts) if re.fullmatch(r"-[a-z]*c[a-z]*", text)]
        if not flags or flags[0] + 1 >= len(texts):
            continue
        script = flags[0] + 1
        hint = 'run the program without a shell, or end the script with "$@" and add the item "--"'
        if not ARGUMENTS.search(texts[script]):
            what = "the script ignores the parameters of a trial"
            yield Finding(words[script][0], what, "", hint)
        elif script + 1 == len(texts):
            what = "the script ignores the first parameter of a trial, which becomes $0"
            yield Finding(words[script][0], what, "", hint)


@rule("trial-argument-twice", TUNING_GUIDE, "warning")
def trial_argument_twice(job: Job) -> Iterator[Finding]:
    """Check that no argument has the name of a parameter, which a trial gets as an argument."""
    names = {f"--{parameter.id}" for parameter in parameters_of(job)}
    for path, text in (word for pool in job.pools for word in pool.words()):
        if text.partition("=")[0] in names:
            what = "each trial also receives this argument as a parameter"
            yield Finding(path, what, text, "remove the argument, or rename the parameter")


#: The three ways to end trials early.
STOPPING: Final = (
    "decayCurveStoppingSpec",
    "medianAutomatedStoppingSpec",
    "convexAutomatedStoppingSpec",
)
#: Minimum number of trials for each parameter, as Google's guide advises.
TRIALS_PER_PARAMETER: Final = 10


@rule("grid-search", STUDY_TYPES)
def grid_search(job: Job) -> Iterator[Finding]:
    """Check that a study with GRID_SEARCH has no DOUBLE parameters, which have no finite grid."""
    if study_of(job).get("algorithm") != "GRID_SEARCH":
        return
    for parameter in parameters_of(job):
        if parameter.type == "DOUBLE":
            hint = "list the values in discreteValueSpec, or change algorithm"
            what = "GRID_SEARCH tries every value and does not support DOUBLE parameters"
            yield Finding(parameter.values_path, what, parameter.id, hint)


@rule("grid-size", STUDY_TYPES, "warning")
def grid_size(job: Job) -> Iterator[Finding]:
    """Check that the grid of a GRID_SEARCH has at most maxTrialCount points."""
    tuning, study = job.tuning or {}, study_of(job)
    trials, parameters = tuning.get("maxTrialCount", 0), list(parameters_of(job))
    if study.get("algorithm") != "GRID_SEARCH" or trials < 1:
        return
    if any(p.spec.get("conditionalParameterSpecs") for p in parameters):
        return  # a conditional parameter multiplies only some points
    points = math.prod(parameter.points for parameter in parameters)
    if points > trials:
        what = f"the grid has {points:,} points, more than maxTrialCount"
        hint = f"write maxTrialCount: {points}, or use fewer values"
        yield Finding(("maxTrialCount",), what, str(trials), hint)


@rule("few-trials", TUNING_GUIDE, "note")
def few_trials(job: Job) -> Iterator[Finding]:
    """Check that a search has ten or more trials per parameter, unless it is a grid search."""
    trials = (job.tuning or {}).get("maxTrialCount", 0)
    advised = TRIALS_PER_PARAMETER * sum(1 for _ in parameters_of(job))
    if study_of(job).get("algorithm") != "GRID_SEARCH" and 0 < trials < advised:
        what = "maxTrialCount is low for a search with these parameters"
        yield Finding(("maxTrialCount",), what, str(trials), f"write {advised} or more")


@rule("early-stopping", TUNING_GUIDE, "warning")
def early_stopping(job: Job) -> Iterator[Finding]:
    """Check that a study has no early stopping, which has no effect according to the console."""
    for field in STOPPING:
        if field in study_of(job):
            hint = f"remove {field}, and end hopeless trials in the code"
            what = f"{field} may have no effect in a tuning job"
            yield Finding((*STUDY, field), what, "", hint)


@rule("learning-rate-name", STUDY_TYPES, "warning")
def learning_rate_name(job: Job) -> Iterator[Finding]:
    """Check that learningRateParameterName is the id of a parameter."""
    name = study_of(job).get(STOPPING[2], {}).get("learningRateParameterName")
    known = [parameter.id for parameter in parameters_of(job)]
    if name and name not in known:
        path = (*STUDY, STOPPING[2], "learningRateParameterName")
        yield Finding(path, "no parameter has this id", name, f"write one of {', '.join(known)}")


@rule("study-stopping", STUDY_TYPES, "warning")
def study_stopping(job: Job) -> Iterator[Finding]:
    """Check that studyStoppingConfig has an effect: its bounds fit each other and the metrics."""
    config, path = study_of(job).get("studyStoppingConfig", {}), (*STUDY, "studyStoppingConfig")
    fewest, most = config.get("minNumTrials"), config.get("maxNumTrials")
    if fewest is not None and most is not None and fewest > most:
        what = f"minNumTrials is above maxNumTrials ({most}), so maxNumTrials has no effect"
        yield Finding((*path, "minNumTrials"), what, str(fewest), f"write {most} or less")
    several = sum(1 for _ in metrics_of(job)) > 1
    for field in ("maxNumTrialsNoProgress", "maxDurationNoProgress"):
        if several and field in config:
            what = f"{field} has no effect in a study with several metrics"
            yield Finding((*path, field), what, str(config[field]), f"remove {field}")
