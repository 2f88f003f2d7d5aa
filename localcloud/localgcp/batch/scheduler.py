"""Starts waiting Batch jobs in order when capacity is available, and recovers jobs after a restart.

Sources: doc:batch/quotas (a machine without the role batch.agentReporter fails after 1,080
seconds), nextflow issue 3061, dsub issue 303. Texts about stock-outs and reservations are ours.
"""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from google.protobuf import empty_pb2

from localgcp.apis.client import batch
from localgcp.batch.records import (
    LIVE,
    LOST,
    WAITING,
    BatchJob,
    BatchTable,
    State,
    TaskState,
)
from localgcp.batch.run import BatchRun, faults_of
from localgcp.faults.table import FaultTable, stockout_message
from localgcp.home import Home
from localgcp.inventory.machines import find_reservation, shape_of
from localgcp.inventory.store import Store, has_role
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder
from localgcp.vertex.operations import OperationTable


class Capacity:
    """Checks reservations and stock-outs for waiting jobs."""

    def __init__(self, store: Store, jobs: BatchTable, faults: FaultTable) -> None:
        self._store, self._jobs, self._faults = store, jobs, faults
        self._stockouts: dict[str, tuple[int, float]] = {}

    def wanting(self, job: BatchJob) -> str:
        """Return the first missing capacity of a job; empty if all capacity is available."""
        return next(self._missing(job), "")

    def _missing(self, job: BatchJob) -> Iterator[str]:
        if not self._has_stockout(job) and (met := faults_of(self._faults, job).stockout()):
            seconds = met.fault.seconds
            self._stockouts[job.uid] = met.id, time.monotonic() + (seconds or math.inf)
        if self._has_stockout(job):
            yield f"VM in Managed Instance Group meets error: {stockout_message(job.region)}"
        yield from self._reservation(job)

    def _has_stockout(self, job: BatchJob) -> bool:
        id_, until = self._stockouts.get(job.uid, (0, 0.0))
        return until > time.monotonic() and any(e.id == id_ for e in self._faults.entries())

    def _reservation(self, job: BatchJob) -> Iterator[str]:
        """Yield problems of the job's reservation. A reserved machine serves one job at a time."""
        name = job.policy.get("reservation", "")
        if name in ("", "NO_RESERVATION"):
            return
        path = name if "projects/" in name else f"projects/{job.project}/{name}"
        resource = find_reservation(self._store, path) if path.count("/") >= 5 else None
        if resource is None or not resource.open_to(job.project):
            yield f"The reservation {name} does not exist, or is not shared with the project."
            return
        gpus = [
            {"acceleratorType": accelerator["type"], "acceleratorCount": accelerator["count"]}
            for accelerator in job.policy.get("accelerators", [])
        ]
        machine = {"machineType": job.policy.get("machineType"), "guestAccelerators": gpus}
        has, shape = resource.shape, shape_of(machine)
        if has != shape:
            yield f"The reservation {name} has machines of {has}; the job requests {shape}."
        jobs = self._jobs.list(states=(State.SCHEDULED, State.RUNNING))
        used = sum(_machines(other) for other in jobs if other.policy.get("reservation") == name)
        if _machines(job) > resource.count - used:
            in_use = f"{used} of {resource.count} are in use"
            yield f"The reservation {name} has no free machines: {in_use}."


def _machines(job: BatchJob) -> int:
    return min(int(job.group["parallelism"]), job.task_count)


#: Maximum number of running jobs, because the code of one job can use all cores of a laptop.
_SLOTS: Final = 2
_LOOK_SECONDS: Final = 0.5
_REPORTING: Final = timedelta(seconds=1080)
_STOPPED: Final = "The local cloud was stopped while the job ran. Submit the job as a new job."


class BatchScheduler:
    """Schedules waiting jobs in one thread, and runs each job in a thread of its own."""

    def __init__(
        self,
        home: Home,
        store: Store,
        jobs: BatchTable,
        make_run: Callable[[BatchJob], BatchRun],
        wanting: Callable[[BatchJob], str],
    ) -> None:
        """``wanting`` returns a job's missing capacity in Google's wording, or an empty text."""
        self.home, self.store, self.jobs = home, store, jobs
        self._make_run, self._wanting = make_run, wanting
        self._operations = OperationTable(jobs.path)
        self._runs: dict[str, tuple[BatchRun, threading.Thread]] = {}
        self._lock = threading.RLock()
        self._awake, self._stopping = threading.Event(), threading.Event()
        self._thread = make_thread(self._look)

    def start(self) -> None:
        """Fail running jobs of an earlier server (50002), end cancellations, run waiting jobs."""
        for job in self.jobs.list(states=LIVE):
            if job.state is State.RUNNING:
                for state in (TaskState.RUNNING, TaskState.ASSIGNED):
                    for task in self.jobs.tasks(job.uid, state):
                        self.jobs.move_task(job.uid, task.number, TaskState.FAILED, code=LOST)
                self.jobs.skip_tasks(job.uid)
                self.jobs.move(job.name, State.FAILED, (State.RUNNING,), _STOPPED)
            elif job.state not in WAITING:
                self._settle(job.name)
        self._awake.set()
        self._thread.start()

    def wake(self) -> None:
        """Check the waiting jobs now, because a job was created."""
        self._awake.set()

    def end(self, job: BatchJob) -> None:
        """Stop the processes of a job in state CANCELLATION_IN_PROGRESS or DELETION_IN_PROGRESS."""
        with self._lock:
            run = self._runs.get(job.uid)
        if run:
            run[0].ending.set()
        else:
            self._settle(job.name)

    def stop(self) -> None:
        """Fail running jobs and wait until all have ended; waiting jobs keep their state."""
        self._stopping.set()
        self._awake.set()
        self._thread.join()
        with self._lock:
            runs = [*self._runs.values()]
        for run, _ in runs:
            run.stopping = True
            run.ending.set()
        for _, thread in runs:
            thread.join()

    def _look(self) -> None:
        while not self._stopping.is_set():
            self._awake.wait()
            self._awake.clear()
            while not self._stopping.is_set() and (waiting := self.jobs.list(states=WAITING)):
                with self._lock:
                    idle = [job for job in reversed(waiting) if job.uid not in self._runs]
                for job in sorted(idle, key=lambda job: -int(job.body.get("priority", 0))):
                    try:
                        self._admit(job)
                    except Exception:  # an error about one job must not stop the other jobs
                        traceback.print_exc()
                self._awake.wait(_LOOK_SECONDS)
                self._awake.clear()

    def _admit(self, job: BatchJob) -> None:
        if job.state is State.QUEUED:
            if text := self._wanting(job):
                self.jobs.note(job.name, text)
                return
            with self._lock:
                if len(self._runs) >= _SLOTS:
                    return
            if not self.jobs.move(job.name, State.SCHEDULED, (State.QUEUED,)):
                return
        reporters = frozenset({"roles/batch.agentReporter"})
        if not has_role(self.store, job.account, reporters, f"projects/{job.project}"):
            scheduled = [e["eventTime"] for e in job.events if "to SCHEDULED" in e["description"]]
            if scheduled and self.jobs.now() - datetime.fromisoformat(scheduled[-1]) > _REPORTING:
                text = "no VM has agent reporting correctly within the time window 1080 seconds"
                self.jobs.skip_tasks(job.uid)
                self.jobs.move(job.name, State.FAILED, WAITING, f"Job failed due to {text}.")
            return
        with self._lock:
            if len(self._runs) >= _SLOTS or self._stopping.is_set():
                return
            run = self._make_run(job)
            thread = make_thread(self._run, run)
            self._runs[job.uid] = run, thread
        thread.start()

    def _run(self, run: BatchRun) -> None:
        job = run.job
        try:
            current = self.jobs.get(job.name)  # the job may have been cancelled meanwhile
            if current and current.uid == job.uid and current.state is State.SCHEDULED:
                run.execute()
        finally:
            with self._lock:
                del self._runs[job.uid]
            running = (State.RUNNING,)
            if run.stopping and self.jobs.move(job.name, State.FAILED, running, _STOPPED):
                self.jobs.skip_tasks(job.uid)
            self._settle(job.name)
            self._awake.set()

    def _settle(self, name: str) -> None:
        with self.jobs.lock:
            job = self.jobs.get(name)
            if job is None:
                return
            if job.state is State.CANCELLING:
                self.jobs.skip_tasks(job.uid)
                self.jobs.move(name, State.CANCELLED, (State.CANCELLING,))
                self._operations.end(job.operation, batch.CancelJobResponse())
            elif job.state is State.DELETING:
                delete_folder(self.home.batch / job.uid)
                self.jobs.delete(job)
                self._operations.end(job.operation, empty_pb2.Empty())
