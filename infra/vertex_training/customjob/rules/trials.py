"""Rules for the search of a tuning job, its trials and their arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import SPEC, Job, Pool, is_shell
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
#: Counts of a tuning job, and their levels where they are left out: they are 1 then, as gcloud
#: sends them (googlecloudsdk/api_lib/ai/hp_tuning_jobs/client.py, 528.0.0).
COUNTS: Final[dict[str, Level]] = {"maxTrialCount": "warning", "parallelTrialCount": "note"}
MOST, PARALLEL = COUNTS


@rule("trial-count", TUNING_TYPES)
def trial_count(job: Job) -> Iterator[Finding]:
    """maxTrialCount and parallelTrialCount are at least 1; one left out is 1, as with gcloud."""
    if job.tuning is None:
        return
    for name, level in COUNTS.items():
        count = job.tuning.get(name)
        if count is None:
            what, hint = f"{name} is missing: it is 1, as with gcloud", f"{name}: NUMBER"
            yield Finding((), what, "", hint, missing=name, level=level)
        elif count < 1:
            yield Finding((name,), "must be at least 1", str(count), f"{name}: 1 or more")


@rule("trial-parallel", TUNING_GUIDE, "warning")
def trial_parallel(job: Job) -> Iterator[Finding]:
    """No more trials run at once than there are."""
    tuning = job.tuning or {}
    most, parallel = tuning.get(MOST, 0), tuning.get(PARALLEL, 0)
    if parallel > most > 0:
        what = f"is above maxTrialCount, {most}"
        yield Finding((PARALLEL,), what, str(parallel), f"at most {most}")


@rule("trial-failures", TUNING_GUIDE)
def trial_failures(job: Job) -> Iterator[Finding]:
    """maxFailedTrialCount is 0 (the service decides) to maxTrialCount."""
    tuning = job.tuning or {}
    failed, most = tuning.get("maxFailedTrialCount", 0), tuning.get(MOST, 0)
    path = ("maxFailedTrialCount",)
    if failed < 0:
        yield Finding(path, "must not be negative", str(failed), "0: the service decides")
    elif failed > most > 0:
        yield Finding(path, f"is above maxTrialCount, {most}", str(failed), f"at most {most}")


@rule("trial-output", TUNING_GUIDE, "warning")
def trial_output(job: Job) -> Iterator[Finding]:
    """Trials have a baseOutputDirectory: each gets a folder in it, by its id."""
    if job.tuning is not None and not job.output and job.spec:
        hint = (
            "baseOutputDirectory: {outputUriPrefix: ${buckets.NAME}/${job.name}/${job.requestId}}"
        )
        what = "has no baseOutputDirectory: no trial keeps its model"
        yield Finding(SPEC, what, "", hint, missing="baseOutputDirectory")


@rule("trial-arguments", TUNING_GUIDE, "warning")
def trial_arguments(job: Job) -> Iterator[Finding]:
    """A trial's program receives the values: a shell with -c drops what its script does not use."""
    for pool in job.pools if job.tuning else ():
        words = pool.words()
        texts = [text for _, text in words]
        if len(texts) < 3 or not is_shell(texts[0]):
            continue
        flags = [i for i, text in enumerate(texts) if re.fullmatch(r"-[a-z]*c[a-z]*", text)]
        if not flags or flags[0] + 1 >= len(texts):
            continue
        script = flags[0] + 1
        hint = 'run the program itself, or end the script with "$@" and add the word "--" after it'
        if not ARGUMENTS.search(texts[script]):
            yield Finding(words[script][0], "the values of a trial are lost", "", hint)
        elif script + 1 == len(texts):
            what = "the first argument of a trial becomes $0, and is lost"
            yield Finding(words[script][0], what, "", hint)


@rule("trial-argument-twice", TUNING_GUIDE, "warning")
def trial_argument_twice(job: Job) -> Iterator[Finding]:
    """No argument of the job has the name of a parameter: a trial would get it twice."""
    names = {f"--{parameter.id}": parameter.id for parameter in parameters_of(job)}
    for pool in job.pools:
        yield from _twice(pool, names)


def _twice(pool: Pool, names: dict[str, str]) -> Iterator[Finding]:
    for path, text in pool.words():
        if text.partition("=")[0] in names:
            what, hint = "each trial gets this argument, too", "remove it, or tune another one"
            yield Finding(path, what, text, hint)


#: The three ways to end trials early.
STOPPING: Final = (
    "decayCurveStoppingSpec",
    "medianAutomatedStoppingSpec",
    "convexAutomatedStoppingSpec",
)
#: Fewest trials for each parameter that Google's guide advises.
TRIALS_PER_PARAMETER: Final = 10


@rule("grid-search", STUDY_TYPES)
def grid_search(job: Job) -> Iterator[Finding]:
    """GRID_SEARCH takes no DOUBLE parameters: it tries every value."""
    if study_of(job).get("algorithm") != "GRID_SEARCH":
        return
    for parameter in parameters_of(job):
        if parameter.type == "DOUBLE":
            hint = "list its values in discreteValueSpec, or search another way"
            yield Finding(
                parameter.values_path, "GRID_SEARCH tries every value", parameter.id, hint
            )


@rule("grid-size", STUDY_TYPES, "warning")
def grid_size(job: Job) -> Iterator[Finding]:
    """A grid has no more points than the job has trials."""
    tuning, study = job.tuning or {}, study_of(job)
    trials, parameters = tuning.get("maxTrialCount", 0), list(parameters_of(job))
    if study.get("algorithm") != "GRID_SEARCH" or trials < 1:
        return
    if any(p.spec.get("conditionalParameterSpecs") for p in parameters):
        return  # what depends on a value multiplies only that one
    points = math.prod(parameter.points for parameter in parameters)
    if points > trials:
        what = f"the grid has {points:,} points: some are not tried"
        hint = f"maxTrialCount: {points}, or fewer values"
        yield Finding(("maxTrialCount",), what, str(trials), hint)


@rule("few-trials", TUNING_GUIDE, "note")
def few_trials(job: Job) -> Iterator[Finding]:
    """A search that is no grid has ten trials for each parameter, as Google advises."""
    trials = (job.tuning or {}).get("maxTrialCount", 0)
    wanted = TRIALS_PER_PARAMETER * sum(1 for _ in parameters_of(job))
    if study_of(job).get("algorithm") != "GRID_SEARCH" and 0 < trials < wanted:
        hint = f"{wanted} for these parameters"
        yield Finding(("maxTrialCount",), "is few for a search", str(trials), hint)


@rule("early-stopping", TUNING_GUIDE, "warning")
def early_stopping(job: Job) -> Iterator[Finding]:
    """No trial is ended early: the console says that its switch has no effect."""
    for field in STOPPING:
        if field in study_of(job):
            hint = "end a trial in its code, by its own metric"
            yield Finding((*STUDY, field), "may have no effect in a tuning job", "", hint)


@rule("learning-rate-name", STUDY_TYPES, "warning")
def learning_rate_name(job: Job) -> Iterator[Finding]:
    """learningRateParameterName is the id of a parameter."""
    name = study_of(job).get(STOPPING[2], {}).get("learningRateParameterName")
    known = [parameter.id for parameter in parameters_of(job)]
    if name and name not in known:
        path = (*STUDY, STOPPING[2], "learningRateParameterName")
        yield Finding(path, "no parameter has this id", name, f"one of {', '.join(known)}")


@rule("study-stopping", STUDY_TYPES, "warning")
def study_stopping(job: Job) -> Iterator[Finding]:
    """studyStoppingConfig can take effect: its bounds fit together, and to the metrics."""
    config, path = study_of(job).get("studyStoppingConfig", {}), (*STUDY, "studyStoppingConfig")
    fewest, most = config.get("minNumTrials"), config.get("maxNumTrials")
    if fewest is not None and most is not None and fewest > most:
        what, hint = "is above maxNumTrials, which then never stops it", f"at most {most}"
        yield Finding((*path, "minNumTrials"), what, str(fewest), hint)
    several = sum(1 for _ in metrics_of(job)) > 1
    for field in ("maxNumTrialsNoProgress", "maxDurationNoProgress"):
        if several and field in config:
            what = "has an effect only with one metric"
            yield Finding((*path, field), what, str(config[field]), "remove it")
