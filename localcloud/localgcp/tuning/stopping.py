"""Which trials are ended early (pure): the median rule.

Source: google-cloud-aiplatform 2.7.0, ``StudySpec.MedianAutomatedStoppingSpec``: a trial is stopped
if its best value is strictly below the median performance of the completed trials up to its last
measurement, where performance is the mean of the values a trial reported. After how many completed
trials the service begins is not documented: here after the first. The other rules are not carried
out (docs/local-stack.md).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from localgcp.runner.refusals import Refusal
from localgcp.tuning.records import Measurement

MEDIAN: Final = "medianAutomatedStoppingSpec"
_STORED_ONLY: Final = (
    "decayCurveStoppingSpec",
    "convexAutomatedStoppingSpec",
    "studyStoppingConfig",
)


def stored_only(study: Mapping[str, Any]) -> Iterator[Refusal]:
    """Rules of a ``studySpec`` that the local cloud keeps and does not carry out."""
    for field in _STORED_ONLY:
        if field in study:
            what = "is stored and not carried out here: every trial runs to its end"
            yield Refusal(("studySpec", field), what, f"{MEDIAN} is carried out", "warning")


def reason_to_stop(
    study: Mapping[str, Any],
    trial: Sequence[Measurement],
    completed: Sequence[Sequence[Measurement]],
) -> str:
    """Why a trial that reported these measurements is to be stopped; empty if it goes on.

    ``completed``: what each trial reported that has succeeded.
    """
    if MEDIAN not in study:
        return ""
    metric = study["metrics"][0]
    name, sign = metric["metricId"], -1 if metric.get("goal") == "MINIMIZE" else 1
    by_time = bool(study[MEDIAN].get("useElapsedDuration"))

    def points(reported: Sequence[Measurement]) -> list[tuple[float, float]]:
        """Where each value of the metric was reported, and how good it is."""
        return [
            (each.elapsed if by_time else each.step, sign * each.metrics[name])
            for each in reported
            if name in each.metrics
        ]

    own = points(trial)
    if not own:
        return ""
    last = max(place for place, _ in own)
    curves = [[value for place, value in points(each) if place <= last] for each in completed]
    means = [statistics.fmean(curve) for curve in curves if curve]
    best = max(value for _, value in own)
    if not means or best >= (median := statistics.median(means)):
        return ""
    place = f"after {last:.1f} s" if by_time else f"at step {last}"
    return (
        f"its best {name} {place}, {sign * best:g}, is worse than {sign * median:g}, the median of "
        f"{len(means)} completed trials ({MEDIAN})"
    )
