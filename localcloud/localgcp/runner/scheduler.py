"""Runs a few custom jobs at a time; other jobs wait in state QUEUED, as for quota."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable
from typing import Final

from localgcp.errors import RpcCode
from localgcp.runner.job import STOPPED, JobRun
from localgcp.system.processes import make_thread
from localgcp.vertex.records import JobState, JobTable

#: Maximum number of running jobs, because the code of one job can use all cores of a laptop.
SLOTS: Final = 2
#: Maximum number of running trials of all tuning jobs; ``localgcp.tuning`` chooses the trials.
TRIAL_SLOTS: Final = 4

#: Interval at which a job requests its machines again; the plugin may free machines at any time.
_RETRY_SECONDS: Final = 0.5


class LocalScheduler:
    """Runs jobs from a queue in threads, oldest first."""

    def __init__(
        self,
        jobs: JobTable,
        make_run: Callable[[str, threading.Event, threading.Event], JobRun | None],
        slots: int = SLOTS,
        is_trial: Callable[[str], bool] = lambda _job_id: False,
    ) -> None:
        """``make_run`` returns the run of a job (id, cancelled, stopping), or None."""
        self.jobs = jobs
        self._make_run = make_run
        self._is_trial = is_trial
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._trials: queue.Queue[str | None] = queue.Queue()
        self._lock = threading.Lock()
        self._cancels: dict[str, threading.Event] = {}
        self._begun: set[str] = set()
        self._parked: list[str] = []
        self._stopping = threading.Event()
        self._threads = [
            make_thread(self._unpark),
            *(make_thread(self._work, self._queue) for _ in range(slots)),
            *(make_thread(self._work, self._trials) for _ in range(TRIAL_SLOTS)),
        ]

    def start(self) -> None:
        """Fail running jobs of an earlier server, and queue its waiting jobs and its trials."""
        for job in reversed(self.jobs.list()):
            if job.state is JobState.RUNNING and not self._is_trial(job.job_id):
                self.jobs.move(job.job_id, JobState.FAILED, error=(RpcCode.UNAVAILABLE, STOPPED))
            elif job.state is JobState.CANCELLING:
                self._end_cancelled(job.job_id)
            elif not job.state.terminal:
                self.jobs.move(job.job_id, JobState.QUEUED)
                self.submit(job.job_id)
        for thread in self._threads:
            thread.start()

    def submit(self, job_id: str) -> None:
        """Queue a job in state QUEUED."""
        with self._lock:
            self._cancels[job_id] = threading.Event()
        self._put(job_id)

    def _put(self, job_id: str) -> None:
        (self._trials if self._is_trial(job_id) else self._queue).put(job_id)

    def cancel(self, job_id: str) -> None:
        """Request the end of a job in state CANCELLING, without waiting for the end."""
        with self._lock:
            cancelled = self._cancels.get(job_id)
            begun = job_id in self._begun
            if cancelled is not None:
                cancelled.set()
        if not begun:  # The job has no process, and may wait for a slot for hours.
            self._end_cancelled(job_id)

    def stop(self) -> None:
        """Fail running jobs and wait until all have ended; waiting jobs stay QUEUED."""
        self._stopping.set()
        with self._lock:
            cancels = list(self._cancels.values())
        for cancelled in cancels:
            cancelled.set()
        for _ in self._threads:
            self._queue.put(None)
            self._trials.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self, waiting: queue.Queue[str | None]) -> None:
        while (job_id := waiting.get()) is not None and not self._stopping.is_set():
            with self._lock:
                cancelled = self._cancels[job_id]
                self._begun.add(job_id)
            over = True
            try:
                if run := self._make_run(job_id, cancelled, self._stopping):
                    over = run.execute()
            except Exception as error:
                # The runner has a bug. The job must not hang; the traceback is in server.log.
                traceback.print_exc()
                text = f"Internal error of the local cloud: {type(error).__name__}: {error}"
                self.jobs.move(job_id, JobState.FAILED, error=(RpcCode.INTERNAL, text))
            finally:
                self._leave(job_id, over)

    def _leave(self, job_id: str, over: bool) -> None:
        with self._lock:
            self._begun.discard(job_id)
            if over:
                self._cancels.pop(job_id)
                return
            cancelled = self._cancels[job_id].is_set()
            self._parked.append(job_id)
        if cancelled and not self._stopping.is_set():  # cancelled while the job had the slot
            self._end_cancelled(job_id)

    def _unpark(self) -> None:
        while not self._stopping.wait(_RETRY_SECONDS):
            with self._lock:
                parked, self._parked = self._parked, []
            for job_id in parked:
                self._put(job_id)

    def _end_cancelled(self, job_id: str) -> None:
        error = (RpcCode.CANCELLED, "The job was cancelled.")
        self.jobs.move(job_id, JobState.CANCELLED, only_from=(JobState.CANCELLING,), error=error)
