"""Runs one Batch job until it ends. Only injected faults preempt machines or kill processes.

A failed task ends the job: running tasks are ended, pending tasks are skipped. The service's
behavior for running tasks is not documented.
"""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from localgcp.batch import checks
from localgcp.batch.checks import seconds
from localgcp.batch.records import (
    LOST,
    OTHER,
    OVER_TIME,
    PREEMPTED,
    BatchJob,
    BatchTable,
    State,
    TaskState,
)
from localgcp.batch.runnables import Machine, Volumes
from localgcp.errors import CommandNotFoundError, ImageError, PreparationError, StartRefusedError
from localgcp.faults.table import FaultTable, JobFaults
from localgcp.home import make_private
from localgcp.runner import environment, hosts, replica
from localgcp.runner.environment import Folders
from localgcp.runner.hosts import Host, Replica
from localgcp.runner.programs import CloudHost
from localgcp.runner.replica import Launch
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder, make_folder
from localgcp.vertex.job_logs import JobLog

_LOOK_SECONDS: Final = 0.25


def is_retried(spec: Mapping[str, Any], code: int, retries: int) -> bool:
    """Return whether a task runs again after this exit code and number of retries.

    >>> spec = {"maxRetryCount": 2, "lifecyclePolicies": [
    ...     {"action": "RETRY_TASK", "actionCondition": {"exitCodes": [50001]}}]}
    >>> is_retried(spec, 50001, 1), is_retried(spec, 50001, 2), is_retried(spec, 1, 0)
    (True, False, False)
    """
    if retries >= int(spec.get("maxRetryCount", 0)):
        return False
    for policy in spec.get("lifecyclePolicies", []):
        listed = code in policy["actionCondition"]["exitCodes"]
        return listed == (policy["action"] == "RETRY_TASK")
    return True


class Attempt:
    """Runs the runnables of a task once, in order.

    Source: doc:batch/troubleshooting#reserved-exit-codes. The first exit code other than 0 fails
    the task, unless ``ignoreExitStatus`` is set. After a failure, only runnables with ``alwaysRun``
    run. Further codes: 50005 after ``timeout`` or ``maxRunDuration``, 50001 after a preemption,
    50000 for a failed preparation, 125 without an image, 126 or 127 if the program cannot be
    started.
    """

    def __init__(
        self, run: BatchRun, number: int, node: int, host: Host, folders: Folders, retries: int
    ) -> None:
        self._run, self._number, self._name = run, number, f"task-{number}"
        self._machine = Machine(run.job, run.volumes, folders, host, self._pull)
        self._log = JobLog(run.folder / "logs" / f"{self._name}.log")
        #: Variables that Batch sets.
        self._service = {
            "BATCH_TASK_INDEX": str(number),
            "BATCH_TASK_COUNT": str(run.job.task_count),
            "BATCH_NODE_INDEX": str(node),
            "BATCH_TASK_RETRY_ATTEMPT": str(retries),
            "BATCH_JOB_UID": run.job.uid,
            **environment.api_variables(run.cloud.api_url),
        }
        self._stop = threading.Event()
        self._code, self._cut, self._began = 0, False, time.monotonic()

    def run(self) -> int | None:
        """Return the task's exit code; None if the end of the job ended the task."""
        ended = threading.Event()
        watch = make_thread(self._watch, ended)
        watch.start()
        try:
            for index, runnable in enumerate(self._run.job.spec["runnables"]):
                if self._stop.is_set() or (self._code and not runnable.get("alwaysRun")):
                    continue
                code = self._execute(index, runnable)
                if code and not runnable.get("ignoreExitStatus"):
                    self._code = self._code or code
        finally:
            ended.set()
            watch.join()
            self._log.stamp()
            delete_folder(self._machine.folders.work.with_name("root"))
        return None if self._cut else self._code

    def _watch(self, ended: threading.Event) -> None:
        limit = seconds(self._run.job.spec.get("maxRunDuration", "inf"))
        while not ended.wait(_LOOK_SECONDS):
            ran = time.monotonic() - self._began
            if self._run.faults.preempted([self._name], ran):
                self._code = PREEMPTED
            elif ran > limit:
                self._code = self._code or OVER_TIME
            elif not self._run.ending.is_set():
                self._log.stamp()
                continue
            else:
                self._cut = True
            self._stop.set()
            return

    def _execute(self, index: int, runnable: Mapping[str, Any]) -> int:
        job, what = self._run.job, runnable.get("displayName") or f"runnable {index}"
        name = f"vt-{job.uid}-{self._number}-{index}"
        try:
            program, launch = self._machine.prepare(index, runnable, self._service, name)
        except (PreparationError, CommandNotFoundError) as error:
            self._run.agent.append(f"task {self._number}, {what}: {error}")
            if isinstance(error, CommandNotFoundError):
                return error.code
            return 125 if isinstance(error, ImageError) else OTHER  # as docker does
        limit = runnable.get("timeout")
        try:
            outcome = replica.run(
                launch,
                cwd=self._machine.folders.work,
                log=self._log,
                notes=self._run.cloud.home.children,
                cancelled=self._stop,
                timeout_seconds=seconds(limit) if limit else None,
                killed=partial(self._run.faults.killed, self._name),
                account=job.account,
            )
        except CommandNotFoundError as error:
            self._run.agent.append(f"task {self._number}, {what}: {error}")
            return error.code
        finally:
            program.close()
        if outcome.ending is replica.Ending.TIMED_OUT:
            return OVER_TIME
        if outcome.code and not self._stop.is_set():
            self._run.agent.append(f"task {self._number}, {what} exited with status {outcome.code}")
        return outcome.code

    def _pull(self, command: list[str], env: Mapping[str, str]) -> int:
        return replica.run(
            Launch(command, env),
            cwd=self._machine.folders.tmp,
            log=self._run.agent,
            notes=self._run.cloud.home.children,
            cancelled=self._run.ending,
        ).code


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
        #: Set if the job is cancelled or deleted, if a task has failed, or if the server stops.
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
        except Exception as error:  # The runner has a bug; the job must not hang.
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
        digest = hashlib.sha256(f"{self.job.uid}/{node}".encode()).digest()
        allowed = self.job.body["allocationPolicy"]["location"]["allowedLocations"]
        zones = (location for location in allowed if location.startswith("zones/"))
        zone = next(zones, f"zones/{self.job.region}-a")
        where = f"{zone}/instances/{int.from_bytes(digest[:8]) >> 1}"
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
        folders = Folders(base / "work", base / "tmp", self.volumes.folder)
        retries = 0
        while not self.ending.is_set():
            for folder in (folders.work, folders.tmp):
                make_folder(folder)
            self._move(number, TaskState.ASSIGNED, where)
            self.jobs.move(self.job.name, State.RUNNING, (State.SCHEDULED,))
            self._move(number, TaskState.RUNNING, where)
            code = Attempt(self, number, node, host, folders, retries).run()
            if code == 0:
                self._move(number, TaskState.SUCCEEDED, where)
                return
            if code is None:  # the job has ended
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
            if code == PREEMPTED:  # a new machine has no files except buckets
                delete_folder(base)

    def _fail(self, text: str) -> None:
        self._failure = self._failure or text
        self.ending.set()

    def _move(self, number: int, to: TaskState, where: str = "", code: int | None = None) -> str:
        return self.jobs.move_task(self.job.uid, number, to, where, code)

    def _end(self, state: State, why: str = "") -> None:
        # A cancellation after the end of the work takes precedence, so only two states may change.
        self.jobs.skip_tasks(self.job.uid)
        if self.jobs.move(self.job.name, state, (State.SCHEDULED, State.RUNNING), why):
            self.agent.append(f"job {self.job.job_id} {state}{why and f': {why}'}")


def faults_of(table: FaultTable, job: BatchJob) -> JobFaults:
    """Return the faults that apply to a Batch job; each of its tasks counts as a replica."""
    subjects = (job.job_id, job.uid, *job.body.get("labels", {}).values())
    is_spot = job.policy.get("provisioningModel") in ("SPOT", "PREEMPTIBLE")
    return JobFaults(table, subjects, "task-0", is_spot)
