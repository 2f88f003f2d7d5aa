"""Prepares the programs of a job: installs packages, inspects images.

Packages are installed on top of the executor environment. A ``.pth`` file adds the executor's
packages, so pip downloads only missing requirements. The code of a build must not read this
machine's variables or the password of a package index.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement

from localgcp.containers.engines import registry_path
from localgcp.errors import JobCancelledError, PackageError, RpcCode, StartRefusedError
from localgcp.home.environment import installer_environment
from localgcp.runner import executors, refusals, replica
from localgcp.runner.allotment import Allotment
from localgcp.runner.environment import Folders
from localgcp.runner.executors import (
    command_substitute,
    host_substitute,
    note_substitute,
    python_substitute,
    takes_nearest,
    version_substitute,
)
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.hosts import Replica
from localgcp.runner.programs import CloudHost, ContainerProgram, HostProgram, Program, Run
from localgcp.runner.replica import Launch
from localgcp.system.gpus import Gpu
from localgcp.system.root_directory import delete_folder, make_folder
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
        files = fetch_packages(list(uris), folder, self.cloud.storage_url)
        python = self._with_packages(base, files, self.folder / f"venv{number}")
        self._pythons[(image, *uris)] = python
        return python

    def _with_packages(self, base: Path, files: list[Path], own: Path) -> Path:
        names = ", ".join(file.name for file in files)

        def build(target: Path) -> None:
            self.log.append(f"building {names}")
            build_wheels(make_environment(base, own), files, target, self.tmp, self._run)

        def install(folder: Path) -> None:
            self.log.append(f"installing {names}")
            python = make_environment(base, folder)
            install_wheels(python, wheels, self.tmp, self._run)

        cache = self.cloud.home.wheels
        wheels = built_wheels(cache, base.name, files, build, self.cancelled)
        shared = shared_environment(wheels, install, self.cancelled)
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
        note_substitute(self.folder, host_substitute(image))
        self._log_once(command_substitute(image, executor))
        command = [*container["command"], *container.get("args", [])]
        return self._on_host(command, path, folders, gpus)

    def _executor(self, image: str) -> executors.Executor | None:
        nearest = takes_nearest(self.cloud.home)
        executor = executors.for_image(image, nearest=nearest)
        # All replicas share one environment, also replicas without GPUs.
        return executors.for_gpus(executor, image) if executor and self.gpus.locks else executor

    def _environment(self, executor: executors.Executor, image: str) -> Path:
        note_substitute(self.folder, version_substitute(image, executor))
        other = python_substitute(image, executors.python_version(executor))
        note_substitute(self.folder, other)
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


_COMMON: Final = (
    *("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"),
)

#: Version specifier that allows only one version.
_PINNED: Final = re.compile(r"===?[^,*]+")
#: Seconds between checks for cancellation while another job builds the same packages.
_LOOK_SECONDS: Final = 0.1


def fetch_packages(uris: list[str], folder: Path, storage_url: str) -> list[Path]:
    """Download packages from buckets. Raises PackageError for a missing package."""
    from google.api_core.exceptions import NotFound

    client = storage_client(storage_url)
    files: list[Path] = []
    for number, uri in enumerate(uris):
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        # pip parses the file name, so packages with the same name are in different folders.
        target = folder / str(number) / Path(name).name
        make_folder(target.parent)
        try:
            client.bucket(bucket).blob(name).download_to_filename(target)
        except NotFound as error:
            raise PackageError(f"The package {uri} does not exist.") from error
        files.append(target)
    return files


def make_environment(executor: Path, folder: Path) -> Path:
    """Create an environment at ``folder`` on top of the executor's packages; return its Python."""
    base = executor / "bin" / "python"
    subprocess.run(
        [str(base), "-m", "venv", "--without-pip", str(folder)],
        env={"PATH": os.defpath},
        check=True,
        capture_output=True,
    )
    below = next((executor / "lib").glob("python3.*/site-packages"))
    own = next((folder / "lib").glob("python3.*/site-packages"))
    (own / "executor.pth").write_text(f"{below}\n")
    return folder / "bin" / "python"


def build_wheels(python: Path, files: Sequence[Path], target: Path, tmp: Path, run: Run) -> None:
    """Build wheels of the packages in ``target`` without network. Raises PackageError."""
    # The executor has setuptools, which an isolated build would download again.
    options = ["wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [str(python), *_COMMON, *options, "--wheel-dir", str(target), *map(str, files)]
    env = {
        "PATH": os.pathsep.join([str(python.parent), os.defpath]),
        "HOME": str(tmp),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        "PIP_CONFIG_FILE": os.devnull,
    }
    _check(run(command, env), "Building", files)


def install_wheels(python: Path, wheels: Sequence[Path], tmp: Path, run: Run) -> None:
    """Install wheels and their requirements with pip. Raises PackageError."""
    options = ["install", "--no-build-isolation", "--no-warn-script-location"]
    command = [str(python), *_COMMON, *options, *map(str, wheels)]
    _check(run(command, {**installer_environment(), "TMPDIR": str(tmp)}), "Installing", wheels)


def _check(code: int, step: str, files: Sequence[Path]) -> None:
    if code:
        names = ", ".join(file.name for file in files)
        raise PackageError(f"{step} {names} failed: pip exited with status {code}.")


#: Locks of this process, one for each folder.
_locks: Final[defaultdict[Path, threading.Lock]] = defaultdict(threading.Lock)


def built_wheels(
    folder: Path,
    executor: str,
    files: Sequence[Path],
    build: Callable[[Path], None],
    cancelled: threading.Event,
) -> list[Path]:
    """Return the cached wheels of these packages; ``build`` writes missing wheels.

    The trials of a tuning job share wheels. Raises JobCancelledError, and errors of ``build``.
    """
    digest = hashlib.sha256(executor.encode())
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\0{file.name}\0{content}".encode())
    target = folder / digest.hexdigest()
    _make_once(target, build, cancelled)
    return sorted(target.glob("*.whl"))


def shared_environment(
    wheels: Sequence[Path], make: Callable[[Path], None], cancelled: threading.Event
) -> Path | None:
    """Return a cached environment with these wheels, or None if a requirement is not pinned.

    ``make`` creates a missing environment. Raises JobCancelledError, and errors of ``make``.
    """
    if not wheels or not all(map(_is_pinned, wheels)):
        return None
    target = wheels[0].parent.with_suffix(".environment")
    _make_once(target, make, cancelled)
    return target


def _make_once(target: Path, make: Callable[[Path], None], cancelled: threading.Event) -> None:
    """Fill a folder once. A marker file, written last, shows that the folder is complete."""
    lock, complete = _locks[target], target.with_name(f"{target.name}.complete")
    while not lock.acquire(timeout=_LOOK_SECONDS):
        if cancelled.is_set():
            raise JobCancelledError
    try:
        if not complete.exists():
            delete_folder(target)
            target.mkdir(parents=True)
            make(target)
            complete.touch()
    finally:
        lock.release()


def _is_pinned(wheel: Path) -> bool:
    """Return whether all requirements of a wheel pin one version, like ``numpy==1.26.4``."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = "".join(archive.read(name).decode(errors="replace") for name in metadata[:1])
    try:
        lines = map(Requirement, HeaderParser().parsestr(text).get_all("Requires-Dist", []))
        return all(line.url is None and _PINNED.fullmatch(str(line.specifier)) for line in lines)
    except InvalidRequirement:
        return False
