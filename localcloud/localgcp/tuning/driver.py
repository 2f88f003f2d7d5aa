"""Starts trials, reads their measurements, and ends tuning jobs.

One thread looks at each tuning job that is not over, a few times a second. All it goes by is in the
tables, so a server that was killed goes on where it was: a trial that ran begins again, in the same
CustomJob.
"""

from __future__ import annotations

import copy
import json
import sqlite3
import threading
import traceback
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

import psutil

from localgcp.errors import RpcCode
from localgcp.home import Home
from localgcp.runner.environment import metrics_file
from localgcp.runner.gang.cluster import PRIMARY, REPLICA_BYTES
from localgcp.runner.joblog import JobLog, log_path
from localgcp.system.processes import make_thread
from localgcp.tuning import parameters, progress, searches
from localgcp.tuning.measurements import read_report
from localgcp.tuning.parameters import Parameter
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord, TuningTable, Value
from localgcp.vertex.records import JobRecord, JobState, JobTable, now
from localgcp.vertex.service import CANCELLABLE, Scheduler

_POLL_SECONDS: Final = 0.2
_LONGEST_NAME: Final = 128
_CANCELLED: Final = "The tuning job was cancelled."


class TuningDriver:
    """Runs all tuning jobs in a thread of its own, between ``start`` and ``stop``."""

    def __init__(
        self, home: Home, table: TuningTable, jobs: JobTable, scheduler: Scheduler
    ) -> None:
        self.home, self.table, self.jobs, self.scheduler = home, table, jobs, scheduler
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = make_thread(self._work)

    def start(self) -> None:
        """Update the trials of ended tuning jobs from their CustomJobs, then start the thread."""
        for tuning in self.table.list():
            if tuning.state.terminal:
                for trial in self.table.trials(tuning.job_id):
                    self._settle(tuning, trial)
        self._thread.start()

    def wake(self) -> None:
        """Advance the tuning jobs now, because one was created or cancelled."""
        self._changed.set()

    def stop(self) -> None:
        """Start no further trials, and return when the thread has ended."""
        self._stopping.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        live = True
        while not self._stopping.is_set():
            self._changed.wait(_POLL_SECONDS if live else None)
            self._changed.clear()
            if self._stopping.is_set():
                return
            try:
                live = self.advance()
            except sqlite3.Error:  # a full disk, a file that is locked: look again
                traceback.print_exc()
                self._stopping.wait(1)

    def advance(self) -> bool:
        """Advance each tuning job as far as possible now; return False if all have ended."""
        live = [resource for resource in self.table.list() if not resource.state.terminal]
        for tuning in reversed(live):
            try:
                self._advance(tuning)
            except sqlite3.Error:
                raise
            except Exception as error:
                # A mistake of the local cloud: the job must not hang; the trace is in server.log.
                traceback.print_exc()
                text = f"Internal error of the local cloud: {type(error).__name__}: {error}"
                self._end_trials(self.table.trials(tuning.job_id), text)
                self.table.move(tuning.job_id, JobState.FAILED, error=(RpcCode.INTERNAL, text))
        return bool(live)

    def _advance(self, tuning: TuningRecord) -> None:
        trials = [
            self._settle(tuning, trial_record) for trial_record in self.table.trials(tuning.job_id)
        ]
        if tuning.state is JobState.CANCELLING:
            self._end_trials(trials, _CANCELLED)
            if all(trial.state.over for trial in trials):
                error = (RpcCode.CANCELLED, "The job was cancelled.")
                self.table.move(tuning.job_id, JobState.CANCELLED, error=error)
            return
        if tuning.state is not JobState.RUNNING and any(trial.start_time for trial in trials):
            waiting = (JobState.QUEUED, JobState.PENDING)
            self.table.move(tuning.job_id, JobState.RUNNING, only_from=waiting)
        space = parameters.search_space(tuning.study)
        grid = tuning.study.get("algorithm") == "GRID_SEARCH"
        most = tuning.max_trials
        points = sum(1 for _ in islice(searches.grid(space), most)) if grid else most
        step = progress.next_step(tuning, trials, points=points, room=self._room(tuning, trials))
        if step.failure:
            self._end_trials(trials, "The tuning job failed.")
        if step.done:
            error = (progress.FAILED, step.failure) if step.failure else None
            state = JobState.FAILED if error else JobState.SUCCEEDED
            self.table.move(tuning.job_id, state, only_from=CANCELLABLE, error=error)
        for _ in range(step.start):
            trials.append(self._start_trial(tuning, space, trials))

    def _settle(self, tuning: TuningRecord, trial: TrialRecord) -> TrialRecord:
        """Update a trial from its CustomJob."""
        if trial.state.over:
            return trial
        job = self.jobs.get(trial.job_id)
        if job is None or job.state.terminal:
            changed = self._ended(tuning, trial, job)
        elif job.start_time and trial.state is TrialState.REQUESTED:
            changed = replace(trial, state=TrialState.ACTIVE, start_time=job.start_time)
        else:
            return trial
        self.table.change_trial(changed)
        return changed

    def _ended(
        self, tuning: TuningRecord, trial: TrialRecord, job: JobRecord | None
    ) -> TrialRecord:
        # A trial that began again after a preemption has run since its first start.
        start = trial.start_time or (job.start_time if job else None)
        end = job.end_time if job else None
        trial = replace(trial, start_time=start, end_time=end or now())
        if job is None or job.state is not JobState.SUCCEEDED:
            error = job.error_message if job else "the trial's CustomJob was deleted"
            reason = trial.infeasible_reason or error or "the trial's CustomJob did not succeed"
            return replace(trial, state=TrialState.INFEASIBLE, infeasible_reason=reason)
        report = read_report(
            metrics_file(self.home.jobs / trial.job_id / "gcs", PRIMARY),
            tuning.study["metrics"],
            best=tuning.study.get("measurementSelectionType") == "BEST_MEASUREMENT",
            began=datetime.fromisoformat(trial.start_time or now()).timestamp(),
        )
        if report.measurement is None:
            reason = trial.infeasible_reason or f"The trial is infeasible: {report.missing}."
            return replace(trial, state=TrialState.INFEASIBLE, infeasible_reason=reason)
        measured = report.measurement
        return replace(
            trial, state=TrialState.SUCCEEDED, measurement=measured, infeasible_reason=None
        )

    def _cancel(self, trial: TrialRecord) -> None:
        """Request the end of a trial's CustomJob; repeated calls have no effect."""
        if self.jobs.move(trial.job_id, JobState.CANCELLING, only_from=CANCELLABLE):
            self.scheduler.cancel(trial.job_id)

    def _log(self, job_id: str, text: str) -> None:
        JobLog(log_path(self.home, job_id, PRIMARY)).append(text)

    def _end_trials(self, trials: list[TrialRecord], reason: str) -> None:
        """Request the end of all active trials; repeated calls have no effect."""
        for trial in trials:
            if trial.state.over:
                continue
            self._cancel(trial)
            if trial.state is not TrialState.STOPPING:
                changed = replace(trial, state=TrialState.STOPPING, infeasible_reason=reason)
                self.table.change_trial(changed)

    def _room(self, tuning: TuningRecord, trials: list[TrialRecord]) -> int:
        """Return how many trials of this job can run in the machine's memory at the same time."""
        pools = tuning.spec.get("workerPoolSpecs", [])
        replicas = sum(int(pool.get("replicaCount", 1)) for pool in pools if pool)
        free = psutil.virtual_memory().available // (max(replicas, 1) * REPLICA_BYTES)
        return sum(not trial.state.over for trial in trials) + int(free)

    def _start_trial(
        self, tuning: TuningRecord, space: list[Parameter], trials: list[TrialRecord]
    ) -> TrialRecord:
        number = len(trials) + 1
        values = self._suggest(tuning, space, trials, number)
        job = _custom_job(tuning, number, values)
        trial = TrialRecord(tuning.job_id, number, job.job_id, job.name, values)
        self.table.add_trial(trial, job)
        words = " ".join(parameters.arguments(values))
        text = f"trial {number} of {tuning.display_name}: {words} ({_algorithm(tuning)})"
        self._log(job.job_id, text)
        self.scheduler.submit(job.job_id)
        return trial

    def _suggest(
        self, tuning: TuningRecord, space: list[Parameter], trials: list[TrialRecord], number: int
    ) -> dict[str, Value]:
        # Of the study: the same study begins with the same trials.
        seed = f"{json.dumps(tuning.study, sort_keys=True)}/{number}"
        match tuning.study.get("algorithm"):
            case "GRID_SEARCH":
                return next(islice(searches.grid(space), number - 1, None))
            case "RANDOM_SEARCH":
                return searches.random_point(space, seed)
            case _:
                return searches.suggest(space, tuning.study["metrics"], trials, seed)


def _algorithm(tuning: TuningRecord) -> str:
    name = tuning.study.get("algorithm", "")
    return name if name in ("GRID_SEARCH", "RANDOM_SEARCH") else f"by {searches.NAME}"


def _custom_job(tuning: TuningRecord, number: int, values: Mapping[str, Value]) -> JobRecord:
    """Return the CustomJob of a trial: the tuning job's spec with arguments and output folder.

    Whether the service copies a tuning job's labels is not documented; here it does.
    """
    spec: dict[str, Any] = copy.deepcopy(tuning.spec)
    for pool in spec.get("workerPoolSpecs", []):
        task = pool.get("containerSpec") or pool.get("pythonPackageSpec")
        if task is not None:
            task["args"] = [*task.get("args", []), *parameters.arguments(values)]
    if base := tuning.output_prefix:
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{base}/{number}"}
    suffix = f"-trial-{number}"
    name = tuning.display_name[: _LONGEST_NAME - len(suffix)] + suffix
    request: dict[str, Any] = {"displayName": name, "jobSpec": spec}
    for key in ("labels", "encryptionSpec"):
        if key in tuning.request:
            request[key] = tuning.request[key]
    return JobRecord.new(tuning.project, tuning.region, request, JobState.QUEUED)
