"""What follows from the trials of a tuning job that ended (pure).

Sources: ``HyperparameterTuningJob.max_failed_trial_count`` (0: the service decides) and
doc:training/using-hyperparameter-tuning (a first trial that fails then ends the job). After how
many failures the service ends a job otherwise is not documented: here after half of the trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from localgcp.errors import RpcCode
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord

#: Trials of one tuning job at once on this machine, whatever ``parallelTrialCount`` says.
MOST_PARALLEL: Final = 4


@dataclass(frozen=True)
class Progress:
    """What to do next."""

    start: int = 0
    """So many trials may be started now."""
    failure: str = ""
    """The tuning job fails with this; trials that run are to be ended."""
    done: bool = False
    """All trials are over that will be."""


def next_step(
    tuning: TuningRecord, trials: Sequence[TrialRecord], *, points: int | None, room: int
) -> Progress:
    """``points``: of a grid, or None; ``room``: how many trials this machine carries at once."""
    failed = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    if text := _failure(tuning, failed):
        return Progress(failure=text, done=all(trial.state.over for trial in trials))
    wanted = min(tuning.max_trials, tuning.max_trials if points is None else points)
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
        text = f"{len(failed)} trials failed, as many as maxFailedTrialCount ({limit}). {because}"
        return text if len(failed) >= limit else ""
    first = next((trial for trial in failed if trial.number == 1), None)
    if first:
        return f"The first trial failed: {first.infeasible_reason}"
    half = (tuning.max_trials + 1) // 2
    if len(failed) < half:
        return ""
    return f"{len(failed)} of {tuning.max_trials} trials failed. {because}"


#: Code of a tuning job that failed by its trials. Not documented; a CustomJob has it, too.
FAILED: Final = RpcCode.INVALID_ARGUMENT
