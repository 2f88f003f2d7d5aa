"""Programs of replicas: a command on this machine, or a container."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from localgcp.clients import cloud_sdk, python_clients
from localgcp.containers.engines import MOUNT, Engine
from localgcp.containers.host import ContainerHost
from localgcp.errors import ImageError
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner import environment
from localgcp.runner.environment import Folders
from localgcp.runner.replica import Launch
from localgcp.system import processes
from localgcp.system.gpus import VISIBLE, Gpu, visible
from localgcp.system.root_directory import RootDirectory

#: The usual umask in containers. The home folder is private, so no other user can read the files.
_CONTAINER_UMASK: Final = 0o022
#: The process of buildah that waits for the container's first process.
_BUILDAH_PARENT: Final = "buildah-chroot-exec"

#: Runs a command with an environment and returns its exit code; ends early when cancelled.
Run = Callable[[list[str], Mapping[str, str]], int]


@dataclass(frozen=True)
class CloudHost:
    """Services of the local cloud that programs of jobs use."""

    home: Home
    store: Store
    containers: ContainerHost
    storage_url: str
    api_url: str


@dataclass
class HostProgram:
    """A command on this machine."""

    argv: list[str]
    path: str
    folders: Folders
    storage_url: str
    own_mount: bool = False
    """True if the program has a private ``/gcs``; else a folder replaces ``/gcs`` in paths."""
    gpus: tuple[Gpu, ...] = ()
    """The GPUs that the program may use."""

    @property
    def gcs(self) -> Path:
        """The folder of the program's buckets."""
        return Path(MOUNT) if self.own_mount else self.folders.gcs

    def launch(self, service: Mapping[str, str], user: Mapping[str, str]) -> Launch:
        """Return the process of the command, with ``$(VAR)`` and ``/gcs`` replaced."""
        known = {**service, **user}
        argv = [environment.mounted(environment.expand(w, known), self.gcs) for w in self.argv]
        machine = environment.machine_variables(self.folders, self.path, self.storage_url)
        if libraries := os.environ.get("LD_LIBRARY_PATH"):  # may contain the folders of CUDA
            machine["LD_LIBRARY_PATH"] = libraries
        if any(shutil.which(name, path=self.path) for name in ("gcloud", "gsutil")):
            folder = self.folders.tmp / "cloud-sdk"
            cloud_sdk.write_settings(folder)
            machine |= cloud_sdk.storage_environment(folder, self.storage_url)
        if python_clients.VERTEX in service:
            python_clients.write_settings(self.folders.tmp)
            user = {**user, **python_clients.environment(self.folders.tmp, user)}
        # Precedence: variables of the service, of the user, of this machine.
        gpus = environment.gpu_variables(self.gpus, user)
        return Launch(argv, {**machine, **user, **gpus, **service})

    def close(self) -> None:
        """Do nothing, because the command has only files in the job's folders."""


@dataclass
class ContainerProgram:
    """The command of an image, which runs in a container."""

    host: ContainerHost
    engine: Engine
    task: Mapping[str, Any]
    name: str
    folders: Folders
    storage_url: str
    run: Run
    volumes: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """Further mounts: path in the container -> folder or file."""
    gpus: tuple[Gpu, ...] = ()
    """The GPUs that the container gets."""

    @property
    def gcs(self) -> Path:
        return Path(MOUNT)

    @property
    def reference(self) -> str:
        return self.host.reference(self.task["imageUri"]) or ""

    def launch(self, service: Mapping[str, str], user: Mapping[str, str]) -> Launch:
        """Create a container. Raises ImageError if the image cannot be pulled or has no command."""
        self.close()
        engine_env = self.host.environment(self.folders.tmp)
        if self.run(self.engine.prepare(self.name, self.reference), engine_env):
            raise ImageError(f"cannot pull the image {self.task['imageUri']}; see the job's log.")
        known = {**service, **user}
        command = [environment.expand(word, known) for word in self.task.get("command", [])]
        args = [environment.expand(word, known) for word in self.task.get("args", [])]
        argv = self._config(engine_env).command_line(command, args)
        if not argv:
            image = self.task["imageUri"]
            raise ImageError(f"the image {image} has neither ENTRYPOINT nor CMD. Set a command.")
        open_to_container(self.folders.gcs)
        machine = {"PYTHONUNBUFFERED": "1", "STORAGE_EMULATOR_HOST": self.storage_url}
        gpus = visible(self.gpus, user.get(VISIBLE), by_position=True)
        env = {**machine, **user, **environment.container_gpu_variables(gpus), **service}
        volumes = {MOUNT: self.folders.gcs, **self.volumes}
        line = self.engine.run(self.name, self.reference, argv, env, volumes, gpus)
        return Launch(line, engine_env, _CONTAINER_UMASK, _terminate_first)

    def close(self) -> None:
        self.host.remove(self.name)

    def _config(self, env: Mapping[str, str]) -> Any:
        try:
            printed = subprocess.run(
                self.engine.inspect(self.name, self.reference),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            ).stdout
            return self.engine.parse(printed)
        except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
            raise ImageError(f"cannot inspect the image {self.task['imageUri']}: {error}") from None


#: Program of a replica. ``launch`` prepares one attempt with the variables of the service and of
#: the job. ``close`` removes the container of the last attempt.
Program = HostProgram | ContainerProgram


def open_to_container(folder: Path) -> None:
    """Let all users of a container read and write the files below a private folder."""
    RootDirectory(folder).set_rights(of_folders=0o777, of_files=0o666)


def _terminate_first(child: processes.ChildProcess) -> bool:
    """Send SIGTERM to a container's first process; SIGTERM to the group would end buildah, too."""
    import psutil

    try:
        below = psutil.Process(child.pid).children(recursive=True)
    except psutil.Error:
        return False
    terminated = False
    for process in below:
        try:
            parent = process.parent()
            if parent and parent.cmdline()[:1] == [_BUILDAH_PARENT]:
                process.terminate()
                terminated = True
        except psutil.Error:
            continue
    return terminated
