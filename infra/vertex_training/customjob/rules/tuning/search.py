"""How a tuning job searches, and when it stops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.customjob.rules.tuning.study import (
    STUDY,
    STUDY_TYPES,
    TUNING_GUIDE,
    metrics_of,
    parameters_of,
    study_of,
)

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
