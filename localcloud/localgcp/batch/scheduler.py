"""Starts Batch jobs in order, and recovers the jobs of an earlier server.

A machine whose account may not report ends after 1,080 seconds of SCHEDULED (doc:batch/quotas, as
reported: google_project_iam_member batch.agentReporter).
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from google.protobuf import empty_pb2

from localgcp.apis.messages import batch
from localgcp.batch.records import LIVE, LOST, WAITING, BatchJob, BatchTable, State, TaskState
from localgcp.batch.run import BatchRun
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder
from localgcp.vertex.agents import has_role
from localgcp.vertex.operations import OperationTable

#: Maximum number of running jobs: training code uses all cores of a laptop by itself.
_SLOTS: Final = 2
_LOOK_SECONDS: Final = 0.5
_REPORTING: Final = timedelta(seconds=1080)
_REPORTERS: Final = frozenset({"roles/batch.agentReporter"})
_STOPPED: Final = (
    "The local cloud was stopped while the job ran; submit the job again as a new job."
)


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
        """Create a scheduler; ``wanting`` returns a job's missing capacity in Google's wording, or
        "".
        """
        self.home, self.store, self.jobs = home, store, jobs
        self._make_run, self._wanting = make_run, wanting
        self._operations = OperationTable(jobs.path)
        self._runs: dict[str, tuple[BatchRun, threading.Thread]] = {}
        self._lock = threading.RLock()
        self._awake, self._stopping = threading.Event(), threading.Event()
        self._thread = make_thread(self._look)

    def start(self) -> None:
        """Fail jobs that an earlier server ran, complete cancellations, and run queued jobs.

        A job whose processes are gone cannot go on, like a CustomJob: its tasks have lost their
        machines (50002). One that had not begun waits again.
        """
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
        """End running jobs as FAILED and return when all have ended; waiting jobs keep waiting."""
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
                for job in sorted(
                    idle, key=lambda candidate: -int(candidate.body.get("priority", 0))
                ):
                    try:
                        self._admit(job)
                    except Exception:  # one job's trouble must not keep the others
                        traceback.print_exc()
                self._awake.wait(_LOOK_SECONDS)
                self._awake.clear()

    def _admit(self, job: BatchJob) -> None:
        """Advance a waiting job as far as possible now."""
        if job.state is State.QUEUED:
            if text := self._wanting(job):
                self.jobs.note(job.name, text)
                return
            with self._lock:
                if len(self._runs) >= _SLOTS:
                    return
            if not self.jobs.move(job.name, State.SCHEDULED, (State.QUEUED,)):
                return
        if not has_role(self.store, job.account, _REPORTERS, f"projects/{job.project}"):
            scheduled = [e["eventTime"] for e in job.events if "to SCHEDULED" in e["description"]]
            if scheduled and (self.jobs.now() - datetime.fromisoformat(scheduled[-1]) > _REPORTING):
                text = "no VM has agent reporting correctly within the time window 1080 seconds"
                self.jobs.skip_tasks(job.uid)
                failed = f"Job failed due to {text}."
                self.jobs.move(job.name, State.FAILED, WAITING, failed)
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
            current = self.jobs.get(job.name)  # cancelled just before its run was known?
            if current and current.uid == job.uid and current.state is State.SCHEDULED:
                run.execute()
        finally:
            with self._lock:
                del self._runs[job.uid]
            stopped = run.stopping and self.jobs.move(
                job.name, State.FAILED, (State.RUNNING,), _STOPPED
            )
            if stopped:
                self.jobs.skip_tasks(job.uid)
            self._settle(job.name)
            self._awake.set()

    def _settle(self, name: str) -> None:
        """Complete the cancellation or deletion of a job that no longer runs."""
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
