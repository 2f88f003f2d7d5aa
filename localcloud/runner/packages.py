"""The job's own packages: fetched from the bucket, installed on top of the executor environment.

The job gets an environment of its own in its folder. A ``.pth`` file lets it see what the executor
has, and what it installs comes first. pip counts what it sees there as installed, so a package
whose requirements the image has needs no network.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from localcloud.errors import PackageError
from localcloud.runner.gcsfuse import storage_client
from localcloud.runner.joblog import JobLog

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
        [str(base), "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True
    )
    below = next((executor / "lib").glob("python3.*/site-packages"))
    own = next((folder / "lib").glob("python3.*/site-packages"))
    (own / "executor.pth").write_text(f"{below}\n")
    return folder / "bin" / "python"


def install(python: Path, files: list[Path], tmp: Path, log: JobLog, run: Install) -> None:
    """Install the packages with pip. Raises PackageError if pip refuses."""
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--no-cache-dir",
        "--no-warn-script-location",
    ]
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": str(tmp)}
    env.pop("PYTHONPATH", None)
    log.append(f"installing {', '.join(file.name for file in files)}")
    if code := run([*command, *map(str, files)], env):
        names = ", ".join(file.name for file in files)
        raise PackageError(f"Installing {names} failed: pip exited with status {code}.")
