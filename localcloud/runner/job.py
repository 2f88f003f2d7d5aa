"""One job from PENDING to its end: prepare, run the replica, set the final state.

Runs one worker pool with one replica: more would begin at
``machines.only_pool`` and get a ``Placement`` each. A worker that exits
with an error is not restarted (the service restarts it up to five times, which only repeats a
mistake here), so its first exit decides. Preemption and stock-outs happen as faults only.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from localcloud.containers.host import ContainerHost
from localcloud.containers.images import registry_path
from localcloud.errors import (
    CommandNotFoundError,
    JobCancelledError,
    PreparationError,
    StartRefusedError,
)
from localcloud.faults.jobs import PREEMPTIONS, JobFaults, stockout_message
from localcloud.home import Home, make_private
from localcloud.inventory.store import Store
from localcloud.rpc_code import RpcCode
from localcloud.runner import environment, executors, machines, packages, replica
from localcloud.runner.gcsfuse import Mount
from localcloud.runner.joblog import JobLog
from localcloud.runner.programs import ContainerProgram, HostProgram, Program
from localcloud.vertex.admission import access_of, admit
from localcloud.vertex.records import JobRecord, JobState, JobTable

STOPPED: Final = "The local cloud was stopped while the job ran; submit it again (a new run)."

#: Default of ``scheduling.timeout`` (T:custom_job): the maximum time in RUNNING, in seconds.
_DEFAULT_TIMEOUT: Final = 7 * 24 * 3600.0


class JobRun:
    """Runs one job in the calling thread; ``cancelled`` may be set by any other."""

    def __init__(
        self,
        record: JobRecord,
        *,
        home: Home,
        store: Store,
        jobs: JobTable,
        storage_url: str,
        faults: JobFaults,
        containers: ContainerHost,
        cancelled: threading.Event,
        stopping: threading.Event,
    ) -> None:
        self.record = record
        self.home = home
        self.store = store
        self.jobs = jobs
        self.storage_url = storage_url
        self.faults = faults
        self.containers = containers
        self.cancelled = cancelled
        self.stopping = stopping
        self.folder = home.jobs / record.job_id
        self.folders = environment.Folders(
            work=self.folder / "work", tmp=self.folder / "tmp", gcs=self.folder / "gcs"
        )
        self.placement = environment.single_replica()
        self.log = JobLog(log_path(home, record.job_id, self.placement.name))

    def execute(self) -> bool:
        """Take the job to a terminal state; False if it stays PENDING and has to be tried again.

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
            admit(self.store, self.record)
            self._wait_for_machines()
            pool = machines.only_pool(self.record)
            if not machines.claim_machines(self.store, self.jobs, self.record, self.log.append):
                return False
            for folder in (self.folders.work, self.folders.tmp, self.folders.gcs):
                folder.mkdir(parents=True, exist_ok=True)
            mounts = self._mounts(_task(pool))
            with closing(self._program(pool)) as program:
                outcome = self._run(program, _task(pool), mounts)
            for mount in mounts:
                mount.sync(final=True)
            self._finish(outcome)
        except StartRefusedError as error:
            self._end(JobState.FAILED, (error.code, error.message))
        except PreparationError as error:
            self._end(JobState.FAILED, (RpcCode.FAILED_PRECONDITION, str(error)))
        except CommandNotFoundError as error:
            text = f"The replica {self.placement.name} could not be started: {error}."
            self._end(JobState.FAILED, (RpcCode.INVALID_ARGUMENT, text))
        except JobCancelledError:
            self._end_cancelled()
        return True

    def _wait_for_machines(self) -> None:
        """There are always machines, but for a fault that says otherwise."""
        fault = self.faults.stockout(self.record)
        if fault is None:
            return
        text = stockout_message(self.record.region)
        if fault.seconds is None:
            raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)
        self.log.append(f"{text} Waiting.")
        if self.cancelled.wait(fault.seconds):
            raise JobCancelledError

    def _mounts(self, task: dict[str, Any]) -> list[Mount]:
        access = access_of(self.store, self.record)
        found: list[Mount] = []
        names = environment.mounted_buckets(task)
        if registry_path(task.get("imageUri", "")):  # its code may name the mount itself
            names = environment.named_buckets(task, self.record.output_prefix)
        for bucket in names:
            if self.store.bucket(bucket) is None:
                self.log.append(f"/gcs/{bucket}: there is no such bucket.")
                continue
            folder = self.folders.gcs / bucket
            mount = Mount(folder, bucket, access, self.storage_url, self.log.append)
            mount.fill(self.home.storage / bucket)
            found.append(mount)
        return found

    def _program(self, pool: dict[str, Any]) -> Program:
        if container := pool.get("containerSpec"):
            if registry_path(container["imageUri"]):
                return self._image(container)
            return self._container(container)
        package = pool["pythonPackageSpec"]
        image = package["executorImageUri"]
        executor = executors.for_image(image)
        if executor is None:
            known = ", ".join(row.image.replace("\\", "") for row in executors.table())
            text = f"the executor image {image} has no stand-in here (there are: {known})."
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        self.log.append(f"{image} is stood in for by an environment with torch {executor.torch}")
        base = executors.environment(executor, self._log_step)
        uris = list(package["packageUris"])
        files = packages.fetch(uris, self.folder / "packages", self.storage_url)
        python = packages.layer(base, self.folder / "venv")
        packages.install(python, files, self.folders.tmp, self.log, self._prepare_with)
        command = [str(python), "-m", package["pythonModule"], *package.get("args", [])]
        return self._host_program(command, os.pathsep.join([str(python.parent), os.defpath]))

    def _image(self, container: dict[str, Any]) -> Program:
        if text := self.containers.refusal(self.record.spec):
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        engine = self.containers.engine
        assert engine is not None
        self.log.append(f"{container['imageUri']} runs in a container, by {engine.name}")
        return ContainerProgram(
            self.containers,
            engine,
            container,
            name=f"vt-{self.record.job_id}",
            folders=self.folders,
            storage_url=self.storage_url,
            run=self._prepare_with,
        )

    def _host_program(self, command: list[str], path: str) -> Program:
        return HostProgram(command, path, self.folders, self.storage_url)

    def _container(self, container: dict[str, Any]) -> Program:
        image = container["imageUri"]
        if not container.get("command"):
            text = (
                f"the image {image} cannot run here: this local cloud has no containers, and what "
                "its ENTRYPOINT does is unknown. Give containerSpec.command to run it on the host."
            )
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        path = os.environ.get("PATH", os.defpath)
        executor = executors.for_image(image)
        if executor:
            base = executors.environment(executor, self._log_step)
            path = os.pathsep.join([str(base / "bin"), path])
        self.log.append(f"no container: the command runs on this host in place of {image}")
        return self._host_program([*container["command"], *container.get("args", [])], path)

    def _log_step(self, text: str) -> None:
        """Log a line of the preparation; ends it if the job was cancelled meanwhile."""
        self.log.append(text)
        if self.cancelled.is_set():
            raise JobCancelledError

    def _prepare_with(self, command: list[str], env: Mapping[str, str]) -> int:
        outcome = replica.run(
            command,
            env=env,
            cwd=self.folders.tmp,
            log=self.log,
            notes=self.home.children,
            cancelled=self.cancelled,
        )
        if outcome.ending is replica.Ending.CANCELLED:
            raise JobCancelledError
        return outcome.code

    def _run(self, program: Program, task: dict[str, Any], mounts: list[Mount]) -> replica.Outcome:
        """Run the replica; a preempted one begins again, on a new machine with an empty disk."""
        once = self.record.spec.get("scheduling", {}).get("disableRetries", False)
        for restart in range(1 if once else PREEMPTIONS + 1):
            outcome = self._run_once(program, task, mounts)
            if outcome.ending is not replica.Ending.PREEMPTED:
                return outcome
            _sync_all(mounts)
            self.log.append(f"preempted: {self.placement.name} lost its machine ({restart + 1})")
            self.jobs.move(self.record.job_id, JobState.PENDING, only_from=(JobState.RUNNING,))
            for folder in (self.folders.work, self.folders.tmp):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
        raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, stockout_message(self.record.region))

    def _run_once(
        self, program: Program, task: dict[str, Any], mounts: list[Mount]
    ) -> replica.Outcome:
        service = environment.service_variables(
            job_id=self.record.job_id,
            project_number=self.record.number,
            spec=self.record.spec,
            placement=self.placement,
        )
        launch = program.launch(service, environment.user_variables(task, service, program.gcs))
        if self.cancelled.is_set() or not self.jobs.move(
            self.record.job_id, JobState.RUNNING, only_from=(JobState.PENDING,)
        ):
            raise JobCancelledError
        return replica.run(
            launch.argv,
            env=launch.env,
            umask=launch.umask,
            terminate=launch.terminate,
            cwd=self.folders.work,
            log=self.log,
            notes=self.home.children,
            cancelled=self.cancelled,
            timeout_seconds=_timeout(self.record.spec),
            tick=partial(_sync_all, mounts),
            preempted=partial(self.faults.preempted, self.record),
        )

    def _finish(self, outcome: replica.Outcome) -> None:
        if outcome.ending is replica.Ending.CANCELLED:
            raise JobCancelledError
        if outcome.ending is replica.Ending.TIMED_OUT:
            # In public threads a job past its timeout ends as cancelled, not as failed.
            limit = _timeout(self.record.spec)
            text = f"The job was cancelled: it ran longer than scheduling.timeout ({limit:g}s)."
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, text))
        elif outcome.code == 0:
            self._end(JobState.SUCCEEDED)
        else:
            self._end(JobState.FAILED, (RpcCode.INVALID_ARGUMENT, self._exit_message(outcome.code)))

    def _exit_message(self, code: int) -> str:
        ended_by = replica.signal_name(code)
        reason = f"Termination reason: {ended_by or 'Error'}."
        return (
            f"The replica {self.placement.name} exited with a non-zero status of {code}. {reason} "
            f"To find out more about why your job exited please check the logs: "
            f"vt local logs {self.record.job_id}"
        )

    def _end_cancelled(self) -> None:
        current = self.jobs.get(self.record.job_id)
        if not self.stopping.is_set() or (current and current.state is JobState.CANCELLING):
            self._end(JobState.CANCELLED, (RpcCode.CANCELLED, "The job was cancelled."))
        elif current and current.state is JobState.RUNNING:
            self._end(JobState.FAILED, (RpcCode.UNAVAILABLE, STOPPED))
        else:  # the code had not begun: the next server runs it
            self.jobs.move(self.record.job_id, JobState.QUEUED)

    def _end(self, state: JobState, error: tuple[int, str] | None = None) -> None:
        # A cancel that arrived when the work was already done loses, as in the service
        # (T:job_service: CANCELLING may end as SUCCEEDED or FAILED).
        self.jobs.move(self.record.job_id, state, error=error)
        self.log.append(
            f"job {self.record.job_id} {state.word}" + (f": {error[1]}" if error else "")
        )


def log_path(home: Home, job_id: str, replica_name: str) -> Path:
    """Log file of one replica."""
    return home.jobs / job_id / "logs" / f"{replica_name}.log"


def _task(pool: dict[str, Any]) -> dict[str, Any]:
    return pool.get("containerSpec") or pool.get("pythonPackageSpec", {})


def _timeout(spec: dict[str, Any]) -> float:
    text = spec.get("scheduling", {}).get("timeout", "")
    return float(text.removesuffix("s")) if text else _DEFAULT_TIMEOUT


def _sync_all(mounts: list[Mount]) -> None:
    for mount in mounts:
        mount.sync(final=False)
