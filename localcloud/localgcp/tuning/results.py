"""Which trial is the best (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from localgcp.tuning.records import TrialRecord, TuningRecord


def best_trial(tuning: TuningRecord, trials: Sequence[TrialRecord]) -> TrialRecord | None:
    """The first one with the best value of the first metric; None if none was measured."""
    metric = tuning.study["metrics"][0]
    measured = [trial for trial in trials if trial.measurement]
    if not measured:
        return None
    sign = -1 if metric.get("goal") == "MINIMIZE" else 1

    def score(trial: TrialRecord) -> float:
        assert trial.measurement is not None
        return sign * trial.measurement.metrics[metric["metricId"]]

    return max(measured, key=score)
