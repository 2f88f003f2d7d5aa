"""Runs one job from PENDING until it ends: prepares it, runs all replicas, sets the final state.

Only injected faults preempt machines, cause stock-outs or kill replicas. A few jobs run at a time;
other jobs wait in state QUEUED, as for quota.
"""

from __future__ import annotations

import math
import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import psutil

from localgcp.errors import (
    CommandNotFoundError,
    JobCancelledError,
    PreparationError,
    RpcCode,
    StartRefusedError,
)
from localgcp.faults.table import FaultTable, faults_of, stockout_message
from localgcp.home import make_private
from localgcp.runner import environment, hosts, replica
from localgcp.runner.allotment import Allotment, GpuShortage, allot
from localgcp.runner.executors import note_substitute, note_wait
from localgcp.runner.gang import Action, Decision, Gang, LifeCycle, Member
from localgcp.runner.gcsfuse import JobBuckets
from localgcp.runner.hosts import PRIMARY, Host, Replica
from localgcp.runner.preparation import Preparation
from localgcp.runner.programs import CloudHost, HostProgram, Program
from localgcp.runner.replica import Launch
from localgcp.system.gpus import VISIBLE
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import make_folder
from localgcp.vertex import capacity
from localgcp.vertex.admission import access_of, admit
from localgcp.vertex.job_logs import JobLog, log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable

STOPPED: Final = "The local cloud was stopped while the job ran; submit the job again as a new run."

#: Default of ``scheduling.timeout`` (T:custom_job): the maximum time in RUNNING, in seconds.
_DEFAULT_TIMEOUT: Final = 7 * 24 * 3600.0
#: Default of ``scheduling.maxWaitDuration``, in seconds (T:custom_job).
_DEFAULT_WAIT: Final = 24 * 3600.0


@dataclass(frozen=True)
class JobHost:
    """The local cloud's services, records and faults, which all jobs share."""

    cloud: CloudHost
    jobs: JobTable
    faults: FaultTable
    trial_id: Callable[[str], str | None] = lambda _job_id: None
    """Returns the trial id of a job; None if the job is not a trial."""

    def make_run(
        self, job_id: str, cancelled: threading.Event, stopping: threading.Event
    ) -> JobRun | None:
        """Return an object that runs a job, or None if the job does not exist."""
        record = self.jobs.get(job_id)
        return record and JobRun(record, self, cancelled, stopping, self.trial_id(job_id))


class JobRun:
    """Runs one job in the calling thread; any other thread may set ``cancelled``."""

    def __init__(
        self,
        record: JobRecord,
        host: JobHost,
        cancelled: threading.Event,
        stopping: threading.Event,
        trial: str | None,
    ) -> None:
        self.record, self.jobs, self.trial = record, host.jobs, trial
        self.cloud, self.faults = host.cloud, faults_of(host.faults, record)
        self.cancelled, self.stopping = cancelled, stopping
        home = self.cloud.home
        self.folder = home.jobs / record.job_id
        self.gcs, self._hosts_file = self.folder / "gcs", self.folder / "hosts"
        #: Log of the primary replica, which also has the lines about all replicas.
        self.log = JobLog(log_path(home, record.job_id, PRIMARY))
        access = access_of(self.cloud.store, record)
        self.buckets = JobBuckets(self.gcs, self.cloud, access, self.log.append)
        self.gpus = Allotment()
        self._scheduling: dict[str, Any] = record.spec.get("scheduling", {})

    def execute(self) -> bool:
        """Run the job to its end; return False if the job stays PENDING and must run later."""
        try:
            return self._execute()
        finally:
            make_private(self.folder)  # the job may have changed the modes of its files

    def _execute(self) -> bool:
        waiting = (JobState.QUEUED, JobState.PENDING)
        if not self.jobs.move(self.record.job_id, JobState.PENDING, only_from=waiting):
            self._end_cancelled()
            return True
        try:
            admit(self.cloud.store, self.record)
            members = hosts.replicas(self.record.spec)
            hosts.check_memory(len(members), psutil.virtual_memory().available)
            self._wait_for_machines()
            if not (self._claim_gpus(members) and self._claim_machines()):
                return False
            note_wait(self.folder, "")
            try:
                decision = self._run(members)
            finally:  # a cancelled job may have written files after SIGTERM
                self.buckets.close()
            self._finish(decision, self.buckets.lost())
        except StartRefusedError as error:
            self._end(JobState.FAILED, (error.code, error.message))
        except PreparationError as error:
            self._end(JobState.FAILED, (RpcCode.FAILED_PRECONDITION, str(error)))
        except CommandNotFoundError as error:
            text = f"The replica {error.replica or PRIMARY} could not be started: {error}."
            self._end(JobState.FAILED, (RpcCode.INVALID_ARGUMENT, text))
        except JobCancelledError:
            self._end_cancelled()
        finally:
            self.gpus.close()
        return True

    def _wait_for_machines(self) -> None:
        met = self.faults.stockout()
        if met is None:
            return
        text = stockout_message(self.record.region)
        wait, limit = met.fault.seconds, math.inf
        if self._scheduling.get("strategy") == "FLEX_START":
            # A maxWaitDuration of 0s means no limit.
            limit = self._seconds("maxWaitDuration", _DEFAULT_WAIT) or math.inf
            wait = math.inf if wait is None else wait
        if wait is None:
            raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)
        self.log.append(f"{text} Waiting.")
        longest = min(wait, limit)
        if self.cancelled.wait(None if longest == math.inf else longest):
            raise JobCancelledError
        if limit < wait:
            raise StartRefusedError(
                RpcCode.RESOURCE_EXHAUSTED,
                f"{text} No machine became available within scheduling.maxWaitDuration "
                f"({limit:g}s).",
            )

    def _seconds(self, field: str, default: float) -> float:
        text = self._scheduling.get(field, "")
        return float(text.removesuffix("s")) if text else default

    def _claim_gpus(self, members: Sequence[Replica]) -> bool:
        waited = self.record.state is not JobState.QUEUED
        allotted = allot(members, GpuShortage.of(self.cloud.home), waited=waited)
        if isinstance(allotted, str):
            self._wait(allotted)
            return False
        self.gpus = allotted
        if allotted.note:
            note_substitute(self.folder, allotted.note)
            self.log.append(f"runs {allotted.note}")
        for name, gpus in allotted.by_replica.items():
            if gpus:
                self.log.append(f"{name} has {', '.join(f'{gpu.name} ({gpu.id})' for gpu in gpus)}")
        names = (variable["name"] for member in members for variable in member.task.get("env", []))
        if VISIBLE in names:
            self.log.append(f"{VISIBLE} of the job selects among the GPUs that the replica has")
        return True

    def _wait(self, reason: str) -> None:
        if note_wait(self.folder, reason):  # The log has one line for each reason.
            self.log.append(f"waiting: {reason}")

    def _claim_machines(self) -> bool:
        plan = capacity.plan(self.cloud.store, self.jobs, self.record)
        if plan.short or not self.jobs.claim(self.record.job_id, plan.wanted, plan.limits):
            self._wait(f"the reservation has too few free machines: {plan.short}")
            return False
        for note in plan.notes:
            self.log.append(note)
        return True

    def _run(self, members: Sequence[Replica]) -> Decision:
        self.buckets.prepare(members, self.record.output_prefix)
        alone = len(members) == 1
        folders = {member.name: self._folders(member, alone=alone) for member in members}
        first = folders[members[0].name]
        preparation = Preparation(
            self.record,
            self.cloud,
            folder=self.folder,
            tmp=first.tmp,
            log=self.log,
            own_mount=self.buckets.view is not None,
            cancelled=self.cancelled,
            gpus=self.gpus,
        )
        with ExitStack() as stack:
            programs: dict[str, Program] = {}
            for member in members:
                program = preparation.program(member, folders[member.name], alone=alone)
                programs[member.name] = stack.enter_context(closing(program))
            named = all(isinstance(program, HostProgram) for program in programs.values())
            at = hosts.choose(self.record.job_id, members, named=named)
            hosts.write_hosts(self._hosts_file, at)
            cluster = hosts.cluster_of(members, at)
            made: list[Member] = []
            for member in members:
                name = member.name
                at_host = (programs[name], folders[name], at[name])
                made.append(self._member(member, *at_host, cluster))
            move = partial(self.jobs.move, self.record.job_id)
            can_begin = (JobState.PENDING, JobState.RUNNING)
            gang = Gang(
                made,
                life=LifeCycle.of(members[0].name, self._scheduling),
                faults=self.faults,
                account=self.record.spec.get("serviceAccount", ""),
                began=partial(move, JobState.RUNNING, only_from=can_begin),
                paused=partial(move, JobState.PENDING, only_from=(JobState.RUNNING,)),
                tick=self.buckets.sync,
                notes=self.cloud.home.children,
                cancelled=self.cancelled,
                timeout_seconds=self._seconds("timeout", _DEFAULT_TIMEOUT),
            )
            return gang.run()

    def _folders(self, member: Replica, *, alone: bool) -> environment.Folders:
        base = self.folder if alone else self.folder / "replicas" / member.name
        made = environment.Folders(work=base / "work", tmp=base / "tmp", gcs=self.gcs)
        for folder in (made.work, made.tmp):
            make_folder(folder)
        return made

    def _member(
        self,
        member: Replica,
        program: Program,
        folders: environment.Folders,
        host: Host,
        cluster: Mapping[str, Sequence[str]],
    ) -> Member:
        log = JobLog(log_path(self.cloud.home, self.record.job_id, member.name))

        def launch() -> Launch:
            service = environment.service_variables(
                job_id=self.record.job_id,
                project_number=self.record.number,
                spec=self.record.spec,
                pool=member.pool,
                index=member.index,
                cluster=cluster,
            )
            if self.trial:
                environment.metrics_file(self.gcs, member.name).parent.mkdir(exist_ok=True)
                service |= environment.trial_variables(self.trial, program.gcs, member.name)
            service |= environment.api_variables(self.cloud.api_url)
            user = environment.user_variables(member.task, service, program.gcs)
            made = program.launch(service, user)
            view = self.buckets.view if isinstance(program, HostProgram) else None
            at = (host, self._hosts_file, made.argv, made.env)
            try:
                argv = hosts.command_on(*at, work=folders.work, buckets=view)
            except CommandNotFoundError as error:
                raise CommandNotFoundError(str(error), member.name) from None
            return replace(made, argv=argv, descriptors=self.gpus.descriptors(member.name))

        primary = member.pool == member.index == 0
        return Member(member.name, folders, self.log if primary else log, launch)

    def _finish(self, decision: Decision, lost: str) -> None:
        if decision.action is Action.SUCCEED and lost:
            self._end(JobState.FAILED, (RpcCode.FAILED_PRECONDITION, lost))
        elif decision.action is Action.SUCCEED:
            self._end(JobState.SUCCEEDED)
        elif decision.stockout:
            text = stockout_message(self.record.region)
            self._end(JobState.FAILED, (RpcCode.RESOURCE_EXHAUSTED, text))
        elif not decision.ends:
            # As users reported, a job that exceeds its timeout is cancelled, not failed.
            limit = self._seconds("timeout", _DEFAULT_TIMEOUT)
            text = f"The job was cancelled: it ran longer than scheduling.timeout ({limit:g}s)."
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, text))
        else:
            end = decision.ends[0]
            option = "" if end.name == PRIMARY else f" --replica {end.name}"
            text = (
                f"The replica {end.name} exited with a non-zero status of {end.code}. Termination "
                f"reason: {replica.signal_name(end.code) or 'Error'}. To find out more about why "
                f"your job exited please check the logs: vt jobs logs {self.record.job_id}{option}"
            )
            self._end(JobState.FAILED, (RpcCode.INVALID_ARGUMENT, text))

    def _end_cancelled(self) -> None:
        current = self.jobs.get(self.record.job_id)
        if not self.stopping.is_set() or (current and current.state is JobState.CANCELLING):
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, "The job was cancelled."))
        elif current and current.state is JobState.RUNNING and not self.trial:
            self._end(JobState.FAILED, (RpcCode.UNAVAILABLE, STOPPED))
        else:  # The code had not begun, or the job is a trial: the next server runs the job.
            self.jobs.move(self.record.job_id, JobState.QUEUED)

    def _end(self, state: JobState, error: tuple[int, str] | None = None) -> None:
        # A cancel that arrives after the end of the work has no effect, as in the service
        # (T:job_service: CANCELLING may end as SUCCEEDED or FAILED). The log is written first,
        # because a reader of the log stops at the end of the job.
        why = f": {error[1]}" if error else ""
        self.log.append(f"job {self.record.job_id} {state.word}{why}")
        self.jobs.move(self.record.job_id, state, error=error)


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
