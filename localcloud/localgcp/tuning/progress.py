"""Decides which trials of a tuning job to start, and when the job ends (pure).

Sources: ``HyperparameterTuningJob.max_failed_trial_count`` (0: the service decides) and
doc:training/using-hyperparameter-tuning (a first trial that fails then ends the job). After how
many failures the service ends a job otherwise is not documented: here after half of the trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import RpcCode
from localgcp.runner.refusals import Refusal
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord

#: Maximum number of running trials of a tuning job, whatever ``parallelTrialCount`` allows.
MOST_PARALLEL: Final = 4

#: Error code of a tuning job whose trials failed. Not documented; CustomJobs have the same code.
FAILED: Final = RpcCode.INVALID_ARGUMENT
_STORED_ONLY: Final = (
    "medianAutomatedStoppingSpec",
    "decayCurveStoppingSpec",
    "convexAutomatedStoppingSpec",
    "studyStoppingConfig",
)


@dataclass(frozen=True)
class Progress:
    """The next steps of a tuning job."""

    start: int = 0
    """Number of trials to start now."""
    failure: str = ""
    """Error of a failed tuning job, whose running trials must be ended."""
    done: bool = False
    """True if all trials have ended and no trial will start."""


def next_step(
    tuning: TuningRecord, trials: Sequence[TrialRecord], *, points: int, room: int
) -> Progress:
    """Return the next steps; ``points``: number of distinct trials, ``room``: trials that may run
    now.
    """
    failed = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    if text := _failure(tuning, failed):
        return Progress(failure=text, done=all(trial.state.over for trial in trials))
    wanted = min(tuning.max_trials, points)
    running = sum(not trial.state.over for trial in trials)
    if len(trials) >= wanted:
        if not running and len(failed) == len(trials):
            return Progress(failure="All trials failed.", done=True)
        return Progress(done=not running)
    at_once = max(1, min(tuning.parallel_trials, MOST_PARALLEL, room))
    return Progress(start=min(at_once - running, wanted - len(trials)))


def _failure(tuning: TuningRecord, failed: Sequence[TrialRecord]) -> str:
    if not failed:
        return ""
    limit = tuning.max_failed_trials
    last = max(failed, key=lambda trial: trial.end_time or "")
    because = f"Trial {last.number}: {last.infeasible_reason}"
    if limit:
        text = (
            f"{len(failed)} trials failed, which reaches maxFailedTrialCount ({limit}). {because}"
        )
        return text if len(failed) >= limit else ""
    first = next((trial for trial in failed if trial.number == 1), None)
    if first:
        return f"The first trial failed: {first.infeasible_reason}"
    half = (tuning.max_trials + 1) // 2
    if len(failed) < half:
        return ""
    return f"{len(failed)} of {tuning.max_trials} trials failed. {because}"


def stored_only(study: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield rules of a ``studySpec`` that the local cloud stores but does not apply."""
    for field in _STORED_ONLY:
        if field in study:
            what = "is stored without effect: every trial runs to its end"
            yield Refusal(("studySpec", field), what, level="warning")
