"""Runs one Batch job until it ends; only injected faults preempt machines or kill processes.

A task that has failed ends the job: tasks that run are ended, those that have not begun never will.
Which of the two the service does with tasks that run is documented nowhere.
"""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from localgcp.batch import checks
from localgcp.batch.records import LOST, OTHER, PREEMPTED, BatchJob, BatchTable, State, TaskState
from localgcp.batch.runnables import Machine
from localgcp.batch.tasks import Attempt, is_retried
from localgcp.batch.volumes import Volumes
from localgcp.errors import PreparationError, StartRefusedError
from localgcp.faults.table import FaultTable, JobFaults
from localgcp.home import make_private
from localgcp.runner import environment, replica
from localgcp.runner.environment import Folders
from localgcp.runner.gang import hosts
from localgcp.runner.gang.cluster import Replica
from localgcp.runner.gang.hosts import Host
from localgcp.runner.joblog import JobLog
from localgcp.runner.programs import CloudHost
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder, make_folder

_SPOT: Final = ("SPOT", "PREEMPTIBLE")
_TICK_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.1


class BatchRun:
    """Runs one Batch job in the calling thread; any other thread may set ``ending``."""

    def __init__(
        self,
        cloud: CloudHost,
        jobs: BatchTable,
        faults: FaultTable,
        job: BatchJob,
    ) -> None:
        self.job, self.cloud, self.jobs = job, cloud, jobs
        self.faults = faults_of(faults, job)
        #: Set if the job is cancelled or deleted, one of its tasks has failed, or the server stops.
        self.ending = threading.Event()
        self.stopping = False
        self.folder = cloud.home.batch / job.uid
        self.agent = JobLog(self.folder / "logs" / "agent.log")
        self.volumes = Volumes(job, cloud, self.agent.append)
        self._failure = ""
        self._left = list(reversed(range(job.task_count)))
        self._lock = threading.Lock()

    def execute(self) -> None:
        """Run a SCHEDULED job until it ends, is cancelled or is deleted."""
        try:
            self._execute()
        except (PreparationError, StartRefusedError) as error:
            self.agent.append(str(error))
            self._end(State.FAILED, f"Job failed: {error}")
        except Exception as error:  # a mistake of the runner: the job must not hang
            traceback.print_exc()
            self._end(State.FAILED, f"Internal error of the local cloud: {type(error).__name__}.")
        finally:
            make_private(self.folder)

    def _execute(self) -> None:
        width = min(int(self.job.group["parallelism"]), self.job.task_count, checks.WIDTH)
        if self.job.policy.get("accelerators"):
            self.agent.append("tasks get no GPU of this machine: they run on CPUs")
        try:
            self.volumes.prepare()
            at = self._machines(width)
            workers = [make_thread(self._work, node, at[node]) for node in range(width)]
            for worker in workers:
                worker.start()
            self._watch(workers)
        finally:
            self.volumes.close()
        if self._failure:
            self._end(State.FAILED, f"Job failed due to task failure. {self._failure}")
        elif not self.ending.is_set():
            self._end(State.SUCCEEDED)

    def _machines(self, width: int) -> Sequence[Host]:
        """Return the hosts of the machines; write the hosts file if the job requires it."""
        members = [Replica(0, node, {}) for node in range(width)]
        machines = [*hosts.choose(self.job.uid, members, named=False).values()]
        if self.job.group.get("requireHostsFile"):
            text = "".join(f"{host.name or host.address}\n" for host in machines)
            self.volumes.hosts_file.write_text(text, encoding="utf-8")
            self.volumes.hosts_file.chmod(0o644)
        return machines

    def _watch(self, workers: Sequence[threading.Thread]) -> None:
        ticked = time.monotonic()
        while running := [worker for worker in workers if worker.is_alive()]:
            running[0].join(_POLL_SECONDS)
            if time.monotonic() - ticked > _TICK_SECONDS:
                ticked = time.monotonic()
                self.volumes.sync()

    def _work(self, node: int, host: Host) -> None:
        """Run tasks on one machine until no task is pending."""
        digest = hashlib.sha256(f"{self.job.uid}/{node}".encode()).digest()
        where = f"{self._zone()}/instances/{int.from_bytes(digest[:8]) >> 1}"
        while not self.ending.is_set():
            with self._lock:
                if not self._left:
                    return
                number = self._left.pop()
            try:
                self._task(number, node, host, where)
            except Exception as error:
                traceback.print_exc()
                self._move(number, TaskState.FAILED, where, OTHER)
                self._fail(f"Internal error of the local cloud: {type(error).__name__}.")

    def _task(self, number: int, node: int, host: Host, where: str) -> None:
        base = self.folder / "tasks" / str(number)
        folders = Folders(base / "work", base / "tmp", self.volumes.root)
        retries = 0
        while not self.ending.is_set():
            for folder in (folders.work, folders.tmp):
                make_folder(folder)
            self._move(number, TaskState.ASSIGNED, where)
            self.jobs.move(self.job.name, State.RUNNING, (State.SCHEDULED,))
            self._move(number, TaskState.RUNNING, where)
            code = self._attempt(number, node, host, folders, retries).run()
            if code == 0:
                self._move(number, TaskState.SUCCEEDED, where)
                return
            if code is None:  # the job ended it
                code = LOST if self.stopping else OTHER
                self._move(number, TaskState.FAILED, where, code)
                return
            event = self._move(number, TaskState.FAILED, where, code)
            if not is_retried(self.job.spec, code, retries):
                text = f"task with index {number} failed due to the following task event"
                self._fail(f'Specifically, {text}: "{event}"')
                return
            retries += 1
            self.agent.append(f"retry {retries} of task {number} after exit code {code}")
            self._move(number, TaskState.PENDING)
            if code == PREEMPTED:  # another machine: only buckets outlive it
                delete_folder(base)

    def _attempt(
        self, number: int, node: int, host: Host, folders: Folders, retries: int
    ) -> Attempt:
        service = {
            "BATCH_TASK_INDEX": str(number),
            "BATCH_TASK_COUNT": str(self.job.task_count),
            "BATCH_NODE_INDEX": str(node),
            "BATCH_TASK_RETRY_ATTEMPT": str(retries),
            "BATCH_JOB_UID": self.job.uid,
            **environment.api_variables(self.cloud.api_url),
        }
        machine = Machine(
            job=self.job,
            cloud=self.cloud,
            volumes=self.volumes,
            folders=folders,
            host=host,
            run=self._runner(folders.tmp),
            report=self.agent.append,
        )
        return Attempt(
            machine=machine,
            number=number,
            log=JobLog(self.folder / "logs" / f"task-{number}.log"),
            service=service,
            ending=self.ending,
            preempted=lambda ran: bool(self.faults.preempted([f"task-{number}"], ran)),
            killed=lambda ran: self.faults.killed(f"task-{number}", ran),
        )

    def _runner(self, folder: Path) -> Callable[[list[str], Mapping[str, str]], int]:
        def run(command: list[str], env: Mapping[str, str]) -> int:
            notes = self.cloud.home.children
            return replica.run(
                command, env=env, cwd=folder, log=self.agent, notes=notes, cancelled=self.ending
            ).code

        return run

    def _fail(self, text: str) -> None:
        self._failure = self._failure or text
        self.ending.set()

    def _move(self, number: int, to: TaskState, where: str = "", code: int | None = None) -> str:
        return self.jobs.move_task(self.job.uid, number, to, where, code)

    def _zone(self) -> str:
        allowed = self.job.body["allocationPolicy"]["location"]["allowedLocations"]
        zones = [location for location in allowed if location.startswith("zones/")]
        return zones[0] if zones else f"zones/{self.job.region}-a"

    def _end(self, state: State, why: str = "") -> None:
        # A cancel that came when the work was done already wins: only these states are left.
        self.jobs.skip_tasks(self.job.uid)
        if self.jobs.move(self.job.name, state, (State.SCHEDULED, State.RUNNING), why):
            self.agent.append(f"job {self.job.job_id} {state}{why and f': {why}'}")


def faults_of(table: FaultTable, job: BatchJob) -> JobFaults:
    """Return the faults that apply to a Batch job; each of its tasks counts as a replica."""
    subjects = (job.job_id, job.uid, *job.body.get("labels", {}).values())
    return JobFaults(table, subjects, "task-0", job.policy.get("provisioningModel") in _SPOT)
