"""The job's own packages: fetched from the bucket, installed on top of the executor environment.

The job gets an environment of its own in its folder. A ``.pth`` file lets it see what the executor
has, and what it installs comes first. pip counts what it sees there as installed, so a package
whose requirements the image has needs no network.

Building a package runs its code (``setup.py``). That code gets neither variables of this machine
nor the package index of the user, whose address may hold a password.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vertex_training.localcloud.environment import installer_environment
from vertex_training.localcloud.errors import PackageError
from vertex_training.localcloud.runner.gcsfuse import storage_client
from vertex_training.localcloud.runner.joblog import JobLog

_PIP: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input")

#: Runs a command with an environment and returns its exit code; ends early when cancelled.
Install = Callable[[list[str], Mapping[str, str]], int]


def fetch(uris: list[str], folder: Path, storage_url: str) -> list[Path]:
    """Download the packages. Raises PackageError if one is not there."""
    from google.api_core.exceptions import NotFound

    client = storage_client(storage_url)
    files: list[Path] = []
    for number, uri in enumerate(uris):
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        # pip reads a package's name and version off its file; two folders may hold the same one.
        target = folder / str(number) / Path(name).name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            client.bucket(bucket).blob(name).download_to_filename(target)
        except NotFound as error:
            raise PackageError(f"The package {uri} does not exist.") from error
        files.append(target)
    return files


def layer(executor: Path, folder: Path) -> Path:
    """A new environment at ``folder`` that sees the executor's packages; returns its Python."""
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


def install(python: Path, files: list[Path], tmp: Path, log: JobLog, run: Install) -> None:
    """Build the packages without network, then install them with pip.

    Raises PackageError if pip refuses.
    """
    names = ", ".join(file.name for file in files)
    log.append(f"installing {names}")
    wheels = tmp / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)  # of a server that was killed
    wheels.mkdir(parents=True)
    # Not isolated: the executor has setuptools, and an isolated build would fetch its own.
    common = [*_PIP, "--no-cache-dir"]
    build = [*common, "wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [str(python), *build, "--wheel-dir", str(wheels), *map(str, files)]
    if code := run(command, _build_environment(python, tmp)):
        raise PackageError(f"Installing {names} failed: pip exited with status {code}.")
    made = sorted(map(str, wheels.glob("*.whl")))
    options = ["--no-build-isolation", "--no-warn-script-location"]
    command = [str(python), *common, "install", *options, *made]
    if code := run(command, {**installer_environment(), "TMPDIR": str(tmp)}):
        raise PackageError(f"Installing {names} failed: pip exited with status {code}.")
    shutil.rmtree(wheels)


def _build_environment(python: Path, tmp: Path) -> dict[str, str]:
    """All that the code of a package sees while it is built."""
    return {
        "PATH": os.pathsep.join([str(python.parent), os.defpath]),
        "HOME": str(tmp),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        "PIP_CONFIG_FILE": os.devnull,
    }
