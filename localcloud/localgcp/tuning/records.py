"""Tuning jobs and trials as rows of SQLite, in the same file as the CustomJobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from localgcp.inventory.store import Rows
from localgcp.vertex.records import JobRecord, JobTable, RecordTable

#: Value of a parameter: a number, or a category.
Value = float | int | str


class TrialState(StrEnum):
    """Trial states in the local cloud, with the API's names (T:study.Trial.State)."""

    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    INFEASIBLE = "INFEASIBLE"

    @property
    def over(self) -> bool:
        return self in (TrialState.SUCCEEDED, TrialState.INFEASIBLE)


@dataclass(frozen=True)
class Measurement:
    """Values of all metrics at a step."""

    step: int
    metrics: dict[str, float]
    elapsed: float = 0.0
    """Seconds from the start of the trial."""


@dataclass(frozen=True)
class TrialRecord:
    """One trial, and the CustomJob that runs it."""

    tuning_id: str
    number: int
    """The trial's id: 1, 2, …"""
    job_id: str
    job_name: str
    parameters: dict[str, Value]
    state: TrialState = TrialState.REQUESTED
    start_time: str | None = None
    end_time: str | None = None
    measurement: Measurement | None = None
    infeasible_reason: str | None = None


@dataclass(frozen=True)
class TuningRecord(JobRecord):
    """One tuning job; ``request`` is the original HyperparameterTuningJob in JSON form."""

    segment = "hyperparameterTuningJobs"
    spec_field = "trialJobSpec"

    @property
    def study(self) -> dict[str, Any]:
        return self.request.get("studySpec", {})

    @property
    def max_trials(self) -> int:
        return int(self.request.get("maxTrialCount", 0))

    @property
    def parallel_trials(self) -> int:
        return int(self.request.get("parallelTrialCount", 0))

    @property
    def max_failed_trials(self) -> int:
        """Maximum number of failed trials; 0 means that the service decides."""
        return int(self.request.get("maxFailedTrialCount", 0))


_TRIALS: Final = Rows(TrialRecord, "trials", "tuning_id", "number", unique="job_id")


class TuningTable(RecordTable[TuningRecord]):
    """The tables ``tuning_jobs`` and ``trials``."""

    rows = Rows(TuningRecord, "tuning_jobs", "job_id")
    others = JobTable.rows.schema + _TRIALS.schema

    def add_trial(self, trial: TrialRecord, job: JobRecord) -> None:
        """Write a new trial and its CustomJob in one transaction."""
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")  # An error before COMMIT rolls back.
            _TRIALS.insert(db, trial)
            JobTable.rows.insert(db, job)
            db.execute("COMMIT")

    def trials(self, tuning_id: str) -> list[TrialRecord]:
        with self._connect() as db:
            return _TRIALS.select(db, "WHERE tuning_id = ? ORDER BY number", tuning_id)

    def trial_of(self, job_id: str) -> TrialRecord | None:
        """Return the trial that a CustomJob runs; None if the job is not a trial."""
        with self._connect() as db:
            return next(iter(_TRIALS.select(db, "WHERE job_id = ?", job_id)), None)

    def change_trial(self, trial: TrialRecord) -> None:
        """Write a trial; the record of an ended trial stays unchanged."""
        where = "tuning_id = ? AND number = ? AND state NOT IN (?, ?)"
        over = [state for state in TrialState if state.over]
        with self._connect() as db:
            _TRIALS.update(db, trial, where, trial.tuning_id, trial.number, *over)

    def delete(self, job_id: str) -> bool:
        """Delete a tuning job with its trials and CustomJobs; return False if none exists."""
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")
            trials = "(SELECT job_id FROM trials WHERE tuning_id = ?)"
            db.execute(f"DELETE FROM {JobTable.rows.table} WHERE job_id IN {trials}", (job_id,))
            db.execute("DELETE FROM trials WHERE tuning_id = ?", (job_id,))
            query = f"DELETE FROM {self.rows.table} WHERE job_id = ?"
            deleted = db.execute(query, (job_id,)).rowcount
            db.execute("COMMIT")
        return deleted == 1


def best_trial(tuning: TuningRecord, trials: Sequence[TrialRecord]) -> TrialRecord | None:
    """Return the first trial with the best value of the first metric, or None."""
    metric = tuning.study["metrics"][0]
    choose = min if metric.get("goal") == "MINIMIZE" else max
    measured = [(t, t.measurement.metrics[metric["metricId"]]) for t in trials if t.measurement]
    best = choose(measured, key=lambda pair: pair[1], default=None)
    return best and best[0]
