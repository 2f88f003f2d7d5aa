"""Starts trials, reads their measurements, and ends tuning jobs.

One thread polls the tables, which have the whole state. After a restart of the server, running
trials begin again in the same CustomJobs.

A trial writes its metrics to a file (``CLOUD_ML_HP_METRIC_FILE``) in the format of the package
cloudml-hypertune: each report is a line of JSON with ``timestamp``, ``trial``, ``global_step`` and
one metric. Values are texts or numbers.
"""

from __future__ import annotations

import copy
import json
import math
import os
import sqlite3
import threading
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import psutil

from localgcp.errors import RpcCode
from localgcp.home import Home
from localgcp.runner.environment import metrics_file
from localgcp.runner.hosts import PRIMARY, REPLICA_BYTES
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import RootDirectory
from localgcp.tuning import searches
from localgcp.tuning.records import (
    Measurement,
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
    Value,
)
from localgcp.tuning.searches import Parameter
from localgcp.vertex.job_logs import JobLog, log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable, now
from localgcp.vertex.service import CANCELLABLE, Scheduler

_POLL_SECONDS: Final = 0.2
_LONGEST_NAME: Final = 128

#: Maximum number of running trials of a tuning job, even if ``parallelTrialCount`` is higher.
MOST_PARALLEL: Final = 4

#: Error code of a failed tuning job. Google documents no code; failed CustomJobs have this code.
FAILED: Final = RpcCode.INVALID_ARGUMENT


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
    """Return the next steps of a tuning job.

    ``points``: number of distinct trials. ``room``: number of trials that may run now. Sources:
    ``HyperparameterTuningJob.max_failed_trial_count``, doc:training/using-hyperparameter-tuning (a
    failed first trial ends the job). The service's other limit is not documented; here it is half
    of the trials.
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
    if limit and len(failed) >= limit:
        return (
            f"{len(failed)} trials failed, which reaches maxFailedTrialCount ({limit}). {because}"
        )
    first = next((trial for trial in failed if trial.number == 1), None)
    if first and not limit:
        return f"The first trial failed: {first.infeasible_reason}"
    if limit or len(failed) < (tuning.max_trials + 1) // 2:
        return ""
    return f"{len(failed)} of {tuning.max_trials} trials failed. {because}"


class TuningDriver:
    """Runs all tuning jobs in one thread."""

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

    def submit(self, job_id: str) -> None:
        """Advance the tuning jobs now, because a job was created or cancelled."""
        self._changed.set()

    cancel = submit

    def stop(self) -> None:
        """Start no further trials, and wait until the thread has ended."""
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
            except sqlite3.Error:  # the disk is full or the file is locked: try again
                traceback.print_exc()
                self._stopping.wait(1)

    def advance(self) -> bool:
        """Advance each tuning job as far as possible now; return False if all have ended."""
        live = [tuning for tuning in self.table.list() if not tuning.state.terminal]
        for tuning in reversed(live):
            try:
                self._advance(tuning)
            except sqlite3.Error:
                raise
            except Exception as error:
                # The local cloud has a bug. The job must not hang; the traceback is in server.log.
                traceback.print_exc()
                text = f"Internal error of the local cloud: {type(error).__name__}: {error}"
                self._end_trials(self.table.trials(tuning.job_id), text)
                self.table.move(tuning.job_id, JobState.FAILED, error=(RpcCode.INTERNAL, text))
        return bool(live)

    def _advance(self, tuning: TuningRecord) -> None:
        trials = [self._settle(tuning, trial) for trial in self.table.trials(tuning.job_id)]
        if tuning.state is JobState.CANCELLING:
            self._end_trials(trials, "The tuning job was cancelled.")
            if all(trial.state.over for trial in trials):
                error = (RpcCode.CANCELLED, "The job was cancelled.")
                self.table.move(tuning.job_id, JobState.CANCELLED, error=error)
            return
        if tuning.state is not JobState.RUNNING and any(trial.start_time for trial in trials):
            waiting = (JobState.QUEUED, JobState.PENDING)
            self.table.move(tuning.job_id, JobState.RUNNING, only_from=waiting)
        space = searches.search_space(tuning.study)
        grid = tuning.study.get("algorithm") == "GRID_SEARCH"
        most = tuning.max_trials
        points = sum(1 for _ in islice(searches.grid(space), most)) if grid else most
        step = next_step(tuning, trials, points=points, room=self._room(tuning, trials))
        if step.failure:
            self._end_trials(trials, "The tuning job failed.")
        if step.done:
            error = (FAILED, step.failure) if step.failure else None
            state = JobState.FAILED if error else JobState.SUCCEEDED
            self.table.move(tuning.job_id, state, only_from=CANCELLABLE, error=error)
        for _ in range(step.start):
            trials.append(self._start_trial(tuning, space, trials))

    def _settle(self, tuning: TuningRecord, trial: TrialRecord) -> TrialRecord:
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
        # A trial that was restarted after a preemption keeps its first start time.
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
        changed: dict[str, Any] = {"measurement": report.measurement, "infeasible_reason": None}
        return replace(trial, state=TrialState.SUCCEEDED, **changed)

    def _end_trials(self, trials: list[TrialRecord], reason: str) -> None:
        for trial in trials:
            if trial.state.over:
                continue
            if self.jobs.move(trial.job_id, JobState.CANCELLING, only_from=CANCELLABLE):
                self.scheduler.cancel(trial.job_id)
            if trial.state is not TrialState.STOPPING:
                changed = replace(trial, state=TrialState.STOPPING, infeasible_reason=reason)
                self.table.change_trial(changed)

    def _room(self, tuning: TuningRecord, trials: list[TrialRecord]) -> int:
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
        words = " ".join(searches.arguments(values))
        algorithm = tuning.study.get("algorithm", "")
        if algorithm not in ("GRID_SEARCH", "RANDOM_SEARCH"):
            algorithm = f"by {searches.NAME}"
        text = f"trial {number} of {tuning.display_name}: {words} ({algorithm})"
        JobLog(log_path(self.home, job.job_id, PRIMARY)).append(text)
        self.scheduler.submit(job.job_id)
        return trial

    def _suggest(
        self, tuning: TuningRecord, space: list[Parameter], trials: list[TrialRecord], number: int
    ) -> dict[str, Value]:
        # The seed depends only on the study, so equal studies begin with the same trials.
        seed = f"{json.dumps(tuning.study, sort_keys=True)}/{number}"
        match tuning.study.get("algorithm"):
            case "GRID_SEARCH":
                return next(islice(searches.grid(space), number - 1, None))
            case "RANDOM_SEARCH":
                return searches.random_point(space, seed)
            case _:
                return searches.suggest(space, tuning.study["metrics"], trials, seed)


def _custom_job(tuning: TuningRecord, number: int, values: Mapping[str, Value]) -> JobRecord:
    """Return a trial's CustomJob. It is not documented whether the service copies labels."""
    spec: dict[str, Any] = copy.deepcopy(tuning.spec)
    for pool in spec.get("workerPoolSpecs", []):
        task = pool.get("containerSpec") or pool.get("pythonPackageSpec")
        if task is not None:
            task["args"] = [*task.get("args", []), *searches.arguments(values)]
    if base := tuning.output_prefix:
        spec["baseOutputDirectory"] = {"outputUriPrefix": f"{base}/{number}"}
    suffix = f"-trial-{number}"
    name = tuning.display_name[: _LONGEST_NAME - len(suffix)] + suffix
    request: dict[str, Any] = {"displayName": name, "jobSpec": spec}
    for key in ("labels", "encryptionSpec"):
        if key in tuning.request:
            request[key] = tuning.request[key]
    return JobRecord.new(tuning.project, tuning.region, request, JobState.QUEUED)


#: Bytes read from the end of the file. cloudml-hypertune keeps the last 100 reports (about 20 kB).
_MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_MOST_STEPS: Final = 1 << 63
#: Keys of a report that are not metrics.
_NO_METRICS: Final = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


@dataclass(frozen=True)
class Report:
    """The final measurement of a trial, or the reason why a metric is missing."""

    measurement: Measurement | None
    missing: str = ""


def read_report(
    file: Path, metrics: Sequence[Mapping[str, Any]], *, best: bool, began: float
) -> Report:
    """Return the last measurement, or with ``best`` the best measurement by the first metric.

    ``began``: the time of day at which the trial began.
    """
    tail = _tail(file)
    if tail is None:
        return Report(None, "the trial reported no metric: CLOUD_ML_HP_METRIC_FILE was not written")
    data, written = tail
    lines = [_parse(line) for line in data.splitlines() if line.strip()]
    reports = [line for line in lines if isinstance(line, dict)]
    values: dict[str, dict[int, float]] = {metric["metricId"]: {} for metric in metrics}
    elapsed: dict[int, float] = {}
    counts, not_finite = Counter[str](), ""
    for report in reports:
        step, time = _number(report.get("global_step")), _number(report.get("timestamp"))
        for metric in (metric for metric in values if metric in report):
            value = _number(report[metric])
            if value is None:
                not_finite = str(report[metric])[:40]
                continue
            at = int(step) if step is not None and 0 <= step < _MOST_STEPS else counts[metric]
            counts[metric] += 1
            values[metric].pop(at, None)  # a repeated step becomes the last step
            values[metric][at] = value
            elapsed[at] = max(0.0, min(written if time is None else time, written) - began)
    if missing := next((metric for metric in values if not values[metric]), None):
        others = {key[:40] for r in reports for key in r if key not in {*values, *_NO_METRICS}}
        text = f"the trial reported no value of the metric {missing!r}"
        if not_finite:
            return Report(None, f"{text} but {not_finite}, which is not a finite number")
        if others:
            return Report(None, f"{text} but of {', '.join(sorted(others)[:5])}")
        unusable = len(lines) - len(reports)
        hint = f"; {unusable} lines of the file are not JSON objects" if unusable else ""
        return Report(None, f"{text}{hint}")
    steps = values[metrics[0]["metricId"]]
    step = next(reversed(steps))
    if best:
        choose = min if metrics[0].get("goal") == "MINIMIZE" else max
        step = choose(steps, key=lambda candidate: steps[candidate])
    final = {metric: _at(step, values[metric]) for metric in values}
    return Report(Measurement(step, final, elapsed[step]))


def _at(step: int, reported: dict[int, float]) -> float:
    """Return a metric's value at a step, or at the last step before, or its last value."""
    if step in reported:
        return reported[step]
    before = [other for other in reported if other < step]
    return reported[max(before) if before else next(reversed(reported))]


def _tail(file: Path) -> tuple[bytes, float] | None:
    """Return the end and modification time of a file; None if it is not a regular file."""
    folder = file.parent
    try:
        opened = RootDirectory(folder.parent).open(f"{folder.name}/{file.name}")
    except OSError:
        return None
    with opened:
        status = os.fstat(opened.fileno())
        opened.seek(max(0, status.st_size - _MOST_BYTES))
        return opened.read(_MOST_BYTES), status.st_mtime


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line) if len(line) <= _LONGEST_LINE else None
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
