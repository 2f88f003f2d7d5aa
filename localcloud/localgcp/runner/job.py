"""Runs one job from PENDING until it ends: prepares it, runs all replicas, sets the final state.

What happens when a replica ends is decided in ``localgcp.runner.gang``.
Preemptions, stock-outs and killed replicas happen as faults only.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
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
from localgcp.runner import environment, replica, substitutes
from localgcp.runner.allotment import Allotment, GpuShortage, allot
from localgcp.runner.buckets import JobBuckets
from localgcp.runner.environment import Placement
from localgcp.runner.gang import cluster, hosts
from localgcp.runner.gang.cluster import PRIMARY, Replica
from localgcp.runner.gang.hosts import Host
from localgcp.runner.gang.life_cycle import Action, Decision, LifeCycle
from localgcp.runner.gang.running import Gang, Member
from localgcp.runner.joblog import JobLog, log_path
from localgcp.runner.preparation import Preparation
from localgcp.runner.programs import CloudHost, ContainerProgram, HostProgram, Launch, Program
from localgcp.system.gpus import VISIBLE
from localgcp.system.root_directory import make_folder
from localgcp.vertex import capacity
from localgcp.vertex.admission import access_of, admit
from localgcp.vertex.records import JobRecord, JobState, JobTable

STOPPED: Final = "The local cloud was stopped while the job ran; submit the job again as a new run."

#: Default of ``scheduling.timeout`` (T:custom_job): the maximum time in RUNNING, in seconds.
_DEFAULT_TIMEOUT: Final = 7 * 24 * 3600.0
#: Default of ``scheduling.maxWaitDuration``, in seconds (T:custom_job).
_DEFAULT_WAIT: Final = 24 * 3600.0


@dataclass(frozen=True)
class JobHost:
    """Shared objects of all jobs: the local cloud's services, records and faults."""

    cloud: CloudHost
    jobs: JobTable
    faults: FaultTable
    trial_id: Callable[[str], str | None] = lambda _job_id: None
    """Returns the id of the trial that a job runs; None if the job is not a trial."""

    def make_run(
        self, job_id: str, cancelled: threading.Event, stopping: threading.Event
    ) -> JobRun | None:
        """Return an object that runs a job; None if the job does not exist."""
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
        """``trial`` is the id of the trial that this job runs, or None."""
        self.record, self.jobs, self.trial = record, host.jobs, trial
        self.cloud, self.faults = host.cloud, faults_of(host.faults, record)
        self.cancelled, self.stopping = cancelled, stopping
        home = self.cloud.home
        self.folder = home.jobs / record.job_id
        self.gcs = self.folder / "gcs"
        #: Log of the primary replica, which also has the lines about all replicas.
        self.log = JobLog(log_path(home, record.job_id, PRIMARY))
        self.buckets = JobBuckets(
            self.gcs, self.cloud, access_of(self.cloud.store, record), self.log.append
        )
        self.gpus = Allotment()
        self._names: Sequence[str] = ()

    def execute(self) -> bool:
        """Run the job to its end; return False if it stays PENDING and must be tried again.

        Raises nothing that belongs to the job.
        """
        try:
            return self._execute()
        finally:
            make_private(self.folder)  # a job sets the rights of its files as it likes

    def _execute(self) -> bool:
        waiting = (JobState.QUEUED, JobState.PENDING)
        if not self.jobs.move(self.record.job_id, JobState.PENDING, only_from=waiting):
            self._end_cancelled()
            return True
        try:
            admit(self.cloud.store, self.record)
            members = cluster.replicas(self.record.spec)
            cluster.check_memory(len(members), psutil.virtual_memory().available)
            self._wait_for_machines()
            if not (self._claim_gpus(members) and self._claim_machines()):
                return False
            substitutes.note_wait(self.folder, "")
            try:
                decision = self._run(members)
            finally:  # also of a job that was cancelled: it may have saved on SIGTERM
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
        """Wait until the job has its machines: at once, unless a fault delays them.

        A FLEX_START job waits until there are some, or for ``maxWaitDuration``.
        Raises StartRefusedError, and JobCancelledError if it is cancelled meanwhile.
        """
        met = self.faults.stockout()
        if met is None:
            return
        text = stockout_message(self.record.region)
        scheduling = self.record.spec.get("scheduling", {})
        wait, limit = met.fault.seconds, math.inf
        if scheduling.get("strategy") == "FLEX_START":
            limit = max_wait(scheduling)
            wait = math.inf if wait is None else wait
        if wait is None:
            raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)
        self.log.append(f"{text} Waiting.")
        longest = min(wait, limit)
        if self.cancelled.wait(None if longest == math.inf else longest):
            raise JobCancelledError
        if limit < wait:
            text = (
                f"{text} No machine became available within scheduling.maxWaitDuration "
                f"({limit:g}s)."
            )
            raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)

    def _claim_gpus(self, members: Sequence[Replica]) -> bool:
        """Reserve GPUs of this machine for the job; return False if the job must wait."""
        waited = self.record.state is not JobState.QUEUED
        allotted = allot(members, GpuShortage.of(self.cloud.home), waited=waited)
        if isinstance(allotted, str):
            self._wait(allotted)
            return False
        self.gpus = allotted
        if allotted.note:
            substitutes.note(self.folder, allotted.note)
            self.log.append(f"runs {allotted.note}")
        for name, gpus in allotted.by_replica.items():
            if gpus:
                self.log.append(f"{name} has {', '.join(f'{gpu.name} ({gpu.id})' for gpu in gpus)}")
        names = (variable["name"] for member in members for variable in member.task.get("env", []))
        if VISIBLE in names:
            self.log.append(f"{VISIBLE} of the job selects among the GPUs that the replica has")
        return True

    def _wait(self, reason: str) -> None:
        if substitutes.note_wait(self.folder, reason):  # logged once, not at every try
            self.log.append(f"waiting: {reason}")

    def _claim_machines(self) -> bool:
        """Claim machines of the job's reservations; return False if the job must wait."""
        plan = capacity.plan(self.cloud.store, self.jobs, self.record)
        if plan.short or not self.jobs.claim(self.record.job_id, plan.wanted, plan.limits):
            self._wait(f"the reservation has too few free machines: {plan.short}")
            return False
        for note in plan.notes:
            self.log.append(note)
        return True

    def _run(self, members: Sequence[Replica]) -> Decision:
        """Run all replicas until the job ends."""
        self.buckets.prepare(members, self.record.output_prefix)
        self._names = [member.name for member in members]
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
        with ExitStack() as programs:
            program_of = {
                member.name: programs.enter_context(
                    closing(preparation.program(member, folders[member.name], alone=alone))
                )
                for member in members
            }
            named = not any(
                isinstance(program, ContainerProgram) for program in program_of.values()
            )
            at = hosts.choose(self.record.job_id, members, named=named)
            hosts.write_hosts(self._hosts_file(), at)
            placed = cluster.placements(members, {name: host.entry for name, host in at.items()})
            gang = Gang(
                members=[
                    self._member(
                        member, program_of[member.name], placed[member.name], at[member.name]
                    )
                    for member in members
                ],
                life=LifeCycle.of(members[0].name, self.record.spec.get("scheduling", {})),
                job=self,
                notes=self.cloud.home.children,
                cancelled=self.cancelled,
                timeout_seconds=_timeout(self.record.spec),
            )
            return gang.run()

    def _folders(self, member: Replica, *, alone: bool) -> environment.Folders:
        """Create and return a replica's folders; all replicas share the buckets' folder."""
        base = self.folder if alone else self.folder / "replicas" / member.name
        made = environment.Folders(work=base / "work", tmp=base / "tmp", gcs=self.gcs)
        for folder in (made.work, made.tmp):
            make_folder(folder)
        return made

    def _hosts_file(self) -> Path:
        return self.folder / "hosts"

    def _member(
        self, member: Replica, program: Program, placement: Placement, host: Host
    ) -> Member:
        log = JobLog(log_path(self.cloud.home, self.record.job_id, member.name))
        folders = self._folders(member, alone=placement.alone)

        def launch() -> Launch:
            service = environment.service_variables(
                job_id=self.record.job_id,
                project_number=self.record.number,
                spec=self.record.spec,
                placement=placement,
            )
            if self.trial:
                environment.metrics_file(self.gcs, member.name).parent.mkdir(exist_ok=True)
                service |= environment.trial_variables(self.trial, program.gcs, member.name)
            service |= environment.api_variables(self.cloud.api_url)
            user = environment.user_variables(member.task, service, program.gcs)
            made = program.launch(service, user)
            buckets = self.buckets.view if isinstance(program, HostProgram) else None
            work, hosts_file = folders.work, self._hosts_file()
            try:
                argv = hosts.command_on(
                    host, hosts_file, made.argv, made.env, work=work, buckets=buckets
                )
            except CommandNotFoundError as error:
                raise CommandNotFoundError(str(error), member.name) from None
            return replace(made, argv=argv, descriptors=self.gpus.descriptors(member.name))

        primary = member.pool == member.index == 0
        account = self.record.spec.get("serviceAccount", "")
        return Member(member.name, folders, self.log if primary else log, launch, account)

    def _finish(self, decision: Decision, lost: str) -> None:
        """Set the final state; ``lost`` is the error for files outside of all buckets."""
        if decision.action is Action.SUCCEED and lost:
            self._end(JobState.FAILED, (RpcCode.FAILED_PRECONDITION, lost))
        elif decision.action is Action.SUCCEED:
            self._end(JobState.SUCCEEDED)
        elif decision.stockout:
            text = stockout_message(self.record.region)
            self._end(JobState.FAILED, (RpcCode.RESOURCE_EXHAUSTED, text))
        elif not decision.ends:
            # In public threads a job past its timeout ends as cancelled, not as failed.
            limit = _timeout(self.record.spec)
            text = f"The job was cancelled: it ran longer than scheduling.timeout ({limit:g}s)."
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, text))
        else:
            end = decision.ends[0]
            text = self._exit_message(end.name, end.code)
            self._end(JobState.FAILED, (RpcCode.INVALID_ARGUMENT, text))

    def _exit_message(self, name: str, code: int) -> str:
        ended_by = replica.signal_name(code)
        reason = f"Termination reason: {ended_by or 'Error'}."
        return (
            f"The replica {name} exited with a non-zero status of {code}. {reason} "
            f"To find out more about why your job exited please check the logs: "
            f"vt jobs logs {self.record.job_id}" + ("" if name == PRIMARY else f" --replica {name}")
        )

    def _end_cancelled(self) -> None:
        current = self.jobs.get(self.record.job_id)
        if not self.stopping.is_set() or (current and current.state is JobState.CANCELLING):
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, "The job was cancelled."))
        elif current and current.state is JobState.RUNNING and not self.trial:
            self._end(JobState.FAILED, (RpcCode.UNAVAILABLE, STOPPED))
        else:  # the code had not begun, or is a trial's: the next server runs it
            self.jobs.move(self.record.job_id, JobState.QUEUED)

    def _end(self, state: JobState, error: tuple[int, str] | None = None) -> None:
        # A cancel that arrived when the work was already done loses, as in the service
        # (T:job_service: CANCELLING may end as SUCCEEDED or FAILED).
        # The log is first: a reader stops at the end of the job.
        self.log.append(
            f"job {self.record.job_id} {state.word}" + (f": {error[1]}" if error else "")
        )
        self.jobs.move(self.record.job_id, state, error=error)

    def began(self) -> bool:
        """Set the job RUNNING when all replicas can start. Return False if it was cancelled."""
        state, before = JobState.RUNNING, (JobState.PENDING, JobState.RUNNING)
        return self.jobs.move(self.record.job_id, state, only_from=before)

    def paused(self) -> None:
        """Set the job PENDING before a retry of the whole job."""
        self.jobs.move(self.record.job_id, JobState.PENDING, only_from=(JobState.RUNNING,))

    def preempted(self, ran_seconds: float) -> Sequence[str]:
        """Return the names of the replicas that now lose their machines."""
        return self.faults.preempted(self._names, ran_seconds)

    def killed(self, name: str, ran_seconds: float) -> bool:
        """Return whether a fault kills this replica now."""
        return self.faults.killed(name, ran_seconds)

    def tick(self) -> None:
        """Synchronize the buckets, every other second and after each attempt."""
        self.buckets.sync()


def _timeout(spec: dict[str, Any]) -> float:
    text = spec.get("scheduling", {}).get("timeout", "")
    return float(text.removesuffix("s")) if text else _DEFAULT_TIMEOUT


def max_wait(scheduling: Mapping[str, Any]) -> float:
    """Return ``maxWaitDuration`` in seconds; ``0s`` means without limit."""
    text = scheduling.get("maxWaitDuration", "")
    seconds = float(text.removesuffix("s")) if text else _DEFAULT_WAIT
    return seconds or math.inf
