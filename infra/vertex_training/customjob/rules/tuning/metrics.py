"""What the trials of a tuning job report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from vertex_training.customjob.rules.job import Job
from vertex_training.customjob.rules.registry import Finding, rule
from vertex_training.customjob.rules.tuning.study import STUDY, STUDY_TYPES, metrics_of, study_of

SPACE: Final = re.compile(r"\s")


@rule("study-metrics", STUDY_TYPES)
def study_metrics(job: Job) -> Iterator[Finding]:
    """A tuning job has a studySpec with at least one metric."""
    if job.tuning is None:
        return
    hint = "metrics: [{metricId: accuracy, goal: MAXIMIZE}]"
    if "studySpec" not in job.tuning:
        yield Finding((), "studySpec is missing", "", "it has metrics and parameters", "studySpec")
    elif not study_of(job).get("metrics"):
        yield Finding(STUDY, "has no metrics", "", hint, missing="metrics")


@rule("metric-id", STUDY_TYPES)
def metric_id(job: Job) -> Iterator[Finding]:
    """Every metric has an id, without white space, and no other metric has the same."""
    seen = set[str]()
    for path, metric in metrics_of(job):
        given = metric.get("metricId", "")
        if not given:
            hint = "metricId is the name under which the code reports its value"
            yield Finding(path, "has no metricId", "", hint, missing="metricId")
        elif SPACE.search(given):
            yield Finding((*path, "metricId"), "has white space", given, "use _ in its place")
        elif given in seen:
            yield Finding((*path, "metricId"), "another metric has this id", given, "rename one")
        seen.add(given)


@rule("metric-goal", STUDY_TYPES)
def metric_goal(job: Job) -> Iterator[Finding]:
    """Every metric has a goal, MAXIMIZE or MINIMIZE.

    GOAL_TYPE_UNSPECIFIED is documented to mean MAXIMIZE, so it is a warning.
    """
    hint = "write MAXIMIZE or MINIMIZE: without one a loss would be maximized"
    for path, metric in metrics_of(job):
        if "goal" not in metric:
            yield Finding(path, "has no goal", "", hint, missing="goal")
        elif metric["goal"] == "GOAL_TYPE_UNSPECIFIED":
            what = "is taken as MAXIMIZE"
            yield Finding((*path, "goal"), what, metric["goal"], hint, level="warning")


@rule("metric-safety", STUDY_TYPES)
def metric_safety(job: Job) -> Iterator[Finding]:
    """Beside metrics with a safetyConfig there is one to optimize; fractions are 0 to 1."""
    found = list(metrics_of(job))
    if found and all("safetyConfig" in metric for _, metric in found):
        what, hint = "no metric is left to optimize", "add one without safetyConfig"
        yield Finding((*STUDY, "metrics"), what, "", hint)
    for path, metric in found:
        share = metric.get("safetyConfig", {}).get("desiredMinSafeTrialsFraction")
        if share is not None and not 0 <= share <= 1:
            there = (*path, "safetyConfig", "desiredMinSafeTrialsFraction")
            yield Finding(there, "is no share of the trials", str(share), "0.0 to 1.0")
