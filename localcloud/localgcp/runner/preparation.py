"""Prepares the programs of a job: installs packages, inspects images."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localgcp.containers.engines import registry_path
from localgcp.errors import JobCancelledError, RpcCode, StartRefusedError
from localgcp.runner import executors, packages, refusals, replica, substitutes
from localgcp.runner.allotment import Allotment
from localgcp.runner.environment import Folders
from localgcp.runner.hosts import Replica
from localgcp.runner.programs import CloudHost, ContainerProgram, HostProgram, Program
from localgcp.runner.replica import Launch
from localgcp.system.gpus import Gpu
from localgcp.vertex.job_logs import JobLog
from localgcp.vertex.records import JobRecord


@dataclass
class Preparation:
    """Creates the programs of one job; ``log`` and ``tmp`` belong to its primary replica."""

    record: JobRecord
    cloud: CloudHost
    folder: Path
    tmp: Path
    log: JobLog
    own_mount: bool
    """True if programs of this machine have a ``/gcs`` of their own."""
    cancelled: threading.Event
    gpus: Allotment = field(default_factory=Allotment)
    _pythons: dict[tuple[str, ...], Path] = field(default_factory=dict[tuple[str, ...], Path])
    _logged: set[str] = field(default_factory=set[str])

    def program(self, member: Replica, folders: Folders, *, alone: bool) -> Program:
        """Return a replica's program.

        Raises StartRefusedError, PreparationError and JobCancelledError.
        """
        gpus = self.gpus.of(member.name)
        if container := member.spec.get("containerSpec"):
            if registry_path(container["imageUri"]):
                name = f"vt-{self.record.job_id}" + ("" if alone else f"-{member.name}")
                return self._image(container, name, folders, gpus)
            return self._container(container, folders, gpus)
        package = member.spec["pythonPackageSpec"]
        python = self._python(package["executorImageUri"], tuple(package["packageUris"]))
        command = [str(python), "-m", package["pythonModule"], *package.get("args", [])]
        path = os.pathsep.join([str(python.parent), os.defpath])
        return self._on_host(command, path, folders, gpus)

    def _on_host(
        self, command: list[str], path: str, folders: Folders, gpus: tuple[Gpu, ...]
    ) -> HostProgram:
        mount, url = self.own_mount, self.cloud.storage_url
        return HostProgram(command, path, folders, url, own_mount=mount, gpus=gpus)

    def _python(self, image: str, uris: tuple[str, ...]) -> Path:
        if known := self._pythons.get((image, *uris)):
            return known
        executor = self._executor(image)
        if executor is None:
            text = " Hint: ".join(filter(None, refusals.no_stand_in(image)))
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        where = f"in an environment with {executor.framework} in place of {image}"
        self._log_once(f"no container: the code runs {where}")
        base = self._environment(executor, image)
        number = f"-{len(self._pythons)}" if self._pythons else ""
        folder = self.folder / f"packages{number}"
        files = packages.fetch(list(uris), folder, self.cloud.storage_url)
        python = self._with_packages(base, files, self.folder / f"venv{number}")
        self._pythons[(image, *uris)] = python
        return python

    def _with_packages(self, base: Path, files: list[Path], own: Path) -> Path:
        names = ", ".join(file.name for file in files)

        def build(target: Path) -> None:
            self.log.append(f"building {names}")
            packages.build(packages.layer(base, own), files, target, self.tmp, self._run)

        def install(folder: Path) -> None:
            self.log.append(f"installing {names}")
            python = packages.layer(base, folder)
            packages.install(python, wheels, self.tmp, self._run)

        cache = self.cloud.home.wheels
        wheels = packages.built_wheels(cache, base.name, files, build, self.cancelled)
        shared = packages.shared_environment(wheels, install, self.cancelled)
        if shared is None:
            install(own)
        return (shared or own) / "bin" / "python"

    def _image(
        self, container: Mapping[str, Any], name: str, folders: Folders, gpus: tuple[Gpu, ...]
    ) -> Program:
        if text := self.cloud.containers.refusal(self.record.spec):
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        engine = self.cloud.containers.engine
        assert engine is not None
        if gpus and (text := self.cloud.containers.gpu_refusal()):
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
        self._log_once(f"{container['imageUri']} runs in a container, by {engine.name}")
        return ContainerProgram(
            self.cloud.containers,
            engine,
            container,
            name=name,
            folders=folders,
            storage_url=self.cloud.storage_url,
            run=self._run,
            gpus=gpus,
        )

    def _container(
        self, container: Mapping[str, Any], folders: Folders, gpus: tuple[Gpu, ...]
    ) -> Program:
        image = container["imageUri"]
        if not container.get("command"):
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, refusals.no_command(image))
        path = os.environ.get("PATH", os.defpath)
        if executor := self._executor(image):
            path = os.pathsep.join([str(self._environment(executor, image) / "bin"), path])
        substitutes.note(self.folder, substitutes.host_for(image))
        self._log_once(substitutes.command_for(image, executor))
        command = [*container["command"], *container.get("args", [])]
        return self._on_host(command, path, folders, gpus)

    def _executor(self, image: str) -> executors.Executor | None:
        nearest = substitutes.takes_nearest(self.cloud.home)
        executor = executors.for_image(image, nearest=nearest)
        # All replicas share one environment, also replicas without GPUs.
        return executors.for_gpus(executor, image) if executor and self.gpus.locks else executor

    def _environment(self, executor: executors.Executor, image: str) -> Path:
        substitutes.note(self.folder, substitutes.version_for(image, executor))
        other = substitutes.python_for(image, executors.python_version(executor))
        substitutes.note(self.folder, other)
        return executors.environment(executor, self._log_step)

    def _log_once(self, text: str) -> None:
        if text not in self._logged:  # The log has each text once.
            self._logged.add(text)
            self.log.append(text)

    def _log_step(self, text: str) -> None:
        self.log.append(text)
        if self.cancelled.is_set():
            raise JobCancelledError

    def _run(self, command: list[str], env: Mapping[str, str]) -> int:
        outcome = replica.run(
            Launch(command, env),
            cwd=self.tmp,
            log=self.log,
            notes=self.cloud.home.children,
            cancelled=self.cancelled,
        )
        if outcome.ending is replica.Ending.CANCELLED:
            raise JobCancelledError
        return outcome.code
