"""The job's own packages: fetched from the bucket, installed on top of the executor environment.

The job gets an environment of its own in its folder. A ``.pth`` file lets it see what the executor
has, and what it installs comes first. pip counts what it sees there as installed, so a package
whose requirements the image has needs no network.

Building a package runs its code (``setup.py``). That code gets neither variables of this machine
nor the package index of the user, whose address may hold a password.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from localgcp.errors import JobCancelledError, PackageError
from localgcp.home.environment import installer_environment
from localgcp.runner.gcsfuse import storage_client
from localgcp.system.folders import delete_folder, make_folder

_COMMON: Final = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--no-cache-dir")

#: Seconds between two looks at the cancel, while another job builds the same.
_LOOK_SECONDS: Final = 0.1

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
        make_folder(target.parent)
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


def build(python: Path, files: Sequence[Path], target: Path, tmp: Path, run: Install) -> None:
    """Build the packages without network; the wheels are then in ``target``.

    Raises PackageError if pip refuses.
    """
    # Not isolated: the executor has setuptools, and an isolated build would fetch its own.
    options = ["wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    command = [str(python), *_COMMON, *options, "--wheel-dir", str(target), *map(str, files)]
    _check(run(command, _build_environment(python, tmp)), "Building", files)


def install(python: Path, wheels: Sequence[Path], tmp: Path, run: Install) -> None:
    """Install wheels with pip, and what they require.

    Raises PackageError if pip refuses.
    """
    options = ["install", "--no-build-isolation", "--no-warn-script-location"]
    command = [str(python), *_COMMON, *options, *map(str, wheels)]
    _check(run(command, {**installer_environment(), "TMPDIR": str(tmp)}), "Installing", wheels)


def _check(code: int, step: str, files: Sequence[Path]) -> None:
    if code:
        names = ", ".join(file.name for file in files)
        raise PackageError(f"{step} {names} failed: pip exited with status {code}.")


def _build_environment(python: Path, tmp: Path) -> dict[str, str]:
    """All that the code of a package sees while it is built."""
    return {
        "PATH": os.pathsep.join([str(python.parent), os.defpath]),
        "HOME": str(tmp),
        "TMPDIR": str(tmp),
        "LANG": "C.UTF-8",
        "PIP_CONFIG_FILE": os.devnull,
    }


#: Of this process: a lock a digest.
_locks: Final[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)


def built_wheels(
    folder: Path,
    executor: str,
    files: Sequence[Path],
    build: Callable[[Path], None],
    cancelled: threading.Event,
) -> list[Path]:
    """Return the wheels of these packages, kept in ``folder``; ``build`` writes missing ones there.

    Trials of a tuning job have the same packages. Building runs their code, which takes longer than
    installing what came of it. A package is built anew when it, its name or the executor changes.
    One server at a time uses the folder.

    Raises what ``build`` raises, and JobCancelledError while another job builds the same.
    """
    key = _digest(executor, files)
    target = folder / key
    lock = _locks[key]
    while not lock.acquire(timeout=_LOOK_SECONDS):
        if cancelled.is_set():
            raise JobCancelledError
    try:
        if not target.is_dir():
            partial = target.with_suffix(".partial")
            delete_folder(partial)  # of a server that was killed
            partial.mkdir(parents=True)
            build(partial)
            partial.rename(target)  # all or nothing
    finally:
        lock.release()
    return sorted(target.glob("*.whl"))


def _digest(executor: str, files: Sequence[Path]) -> str:
    found = hashlib.sha256(executor.encode())
    for file in files:
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        found.update(f"\0{file.name}\0{content}".encode())
    return found.hexdigest()
