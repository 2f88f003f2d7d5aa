"""Installs a job's Python packages on top of the executor environment.

A ``.pth`` file adds the executor's packages, so pip downloads only missing requirements. The code
of a build must not read this machine's variables or the password of a package index.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
import zipfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement

from localgcp.errors import JobCancelledError, PackageError
from localgcp.home.environment import installer_environment
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.programs import Run
from localgcp.system.root_directory import delete_folder, make_folder

_COMMON: Final = (
    *("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"),
)

#: Version specifier that allows only one version.
_PINNED: Final = re.compile(r"===?[^,*]+")
#: Seconds between checks for cancellation while another job builds the same packages.
_LOOK_SECONDS: Final = 0.1


def fetch(uris: list[str], folder: Path, storage_url: str) -> list[Path]:
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


def layer(executor: Path, folder: Path) -> Path:
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


def build(python: Path, files: Sequence[Path], target: Path, tmp: Path, run: Run) -> None:
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


def install(python: Path, wheels: Sequence[Path], tmp: Path, run: Run) -> None:
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
