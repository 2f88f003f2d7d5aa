"""Replaces executor images by cached Python environments with the same framework version.

Records in the folder of a job why the job waits, and what replaces its image and its GPUs.

An environment is built in a temporary folder under a lock, renamed, shared by all checkouts and
never changed. Packages of a job are installed on top (``localgcp.runner.preparation``).
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import yaml
from packaging.specifiers import SpecifierSet

from localgcp.errors import ExecutorError, LocalCloudError
from localgcp.home import Home, cache_dir, open_private
from localgcp.home.environment import installer_environment
from localgcp.system.gpus import VISIBLE
from localgcp.system.root_directory import delete_folder, make_folder

#: Python version of a prebuilt image whose name has no version.
IMAGE_PYTHON: Final = "3.10"
#: Time limit for the index of CPU wheels; after that the default wheels are used.
_PROBE_SECONDS: Final = 12.0

#: Builds of PyTorch, and the line of ``torch/version.py`` that only a build with CUDA has.
_CPU, _CUDA = "cpu", "cuda"
_WITH_CUDA: Final = re.compile(r"^cuda\b[^=\n]*=\s*['\"]", re.MULTILINE)

#: Optional part of an image name in the executor table.
_NAME: Final = re.compile(r"\(([^()|]*)\)\?")
#: Framework, processor, major and minor version in the name of a prebuilt image.
_VERSION: Final = re.compile(r"([a-z]+)-(\(.*\)|[a-z]+)\.(\d+)-(\d+)")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Executor:
    """One row of the executor table, with the libraries that all rows share."""

    name: str
    image: str
    python: str
    framework: str
    """Requirement of the framework, like ``torch==2.4.1``."""
    libraries: tuple[str, ...]
    cuda: str = ""
    """The requirement of the framework with CUDA, if it has another name."""
    on_gpus: bool = False
    """True if the code uses GPUs."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """The pip requirements: the image's ML framework and its other libraries."""
        name = self.framework.partition("==")[0]
        others = (library for library in self.libraries if library.partition("==")[0] != name)
        return (self.framework, *others)


def for_image(image_uri: str, *, nearest: bool = False) -> Executor | None:
    """Return the executor that replaces an image, or with ``nearest`` the nearest version's."""
    name = image_uri.rpartition("/")[2].partition("@")[0].partition(":")[0]
    prebuilt = re.match(r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/", image_uri)
    rows = (row for row in table() if prebuilt and re.fullmatch(row.image, name))
    first = next(rows, None)
    if prebuilt and nearest and first is None and (near := nearest_to(image_uri)):
        return for_image(f"{prebuilt[0]}{near}")
    return first


def names() -> list[str]:
    """Return the names of prebuilt images that have a stand-in, without optional parts."""
    return [_NAME.sub(r"\1", row.image).replace("\\", "") for row in table()]


def nearest_to(image_uri: str) -> str | None:
    """Return the supported image of the framework with the closest version, or None."""
    requested = _VERSION.match(image_uri.rpartition("/")[2])
    if requested is None:
        return None

    def number(match: re.Match[str]) -> int:
        return 100 * int(match[3]) + int(match[4])

    framework = requested[1]
    same = [match for name in names() if (match := _VERSION.match(name)) and match[1] == framework]
    near = min(same, key=lambda match: abs(number(match) - number(requested)), default=None)
    kind = "gpu" if requested[2] == "gpu" else "xla" if framework == "pytorch" else "cpu"
    return near and re.sub(r"-\(.*?\)", f"-{kind}", near.string)


@cache
def table() -> tuple[Executor, ...]:
    file = Path(__file__).with_name("executors.yaml")
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    libraries = tuple(data["libraries"])
    return tuple(Executor(**row, libraries=libraries) for row in data["executors"])


def for_gpus(executor: Executor, image_uri: str) -> Executor:
    """Return the executor, with CUDA libraries if the image has CUDA."""
    if "-gpu." not in image_uri.rpartition("/")[2]:
        return executor
    return replace(executor, framework=executor.cuda or executor.framework, on_gpus=True)


def environment(executor: Executor, report: Report) -> Path:
    """Return the environment's folder; build the environment if it does not exist.

    The folder's name contains the build of PyTorch. Raises ExecutorError if no suitable Python
    exists or the packages cannot be installed.
    """
    python, version = _python(executor)
    parts = [*executor.requirements, version, platform.system(), platform.machine()]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    key = f"{executor.name}-py{version}-{digest}"
    try:
        folder = cache_dir() / "executors" / key
    except LocalCloudError as error:
        raise ExecutorError(str(error)) from None
    if (present := _present(executor, folder)) is not None:
        return present
    make_folder(folder.parent)
    with folder.with_name(f"{key}.lock").open("w") as lock:
        report(f"building environment {key} (once; {len(executor.requirements)} packages)")
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another job may have built the environment while this job waited for the lock.
        if (present := _present(executor, folder)) is None:
            partial = folder.with_name(f"{key}.partial")
            delete_folder(partial)
            _build(executor, python, partial, report)
            present = _complete(executor, partial, folder)
    report(f"environment {present.name} is ready")
    return present


def _present(executor: Executor, folder: Path) -> Path | None:
    if not _is_torch(executor):
        return folder if folder.is_dir() else None
    builds = [_CUDA] if executor.on_gpus else [_CPU, _CUDA]
    named = [folder.with_name(f"{folder.name}-{build}") for build in builds]
    older = [folder] if folder.is_dir() and _build_of(folder) in builds else []
    return next((path for path in (*named, *older) if path.is_dir()), None)


def _complete(executor: Executor, partial: Path, folder: Path) -> Path:
    if not _is_torch(executor):
        return partial.rename(folder)
    if executor.on_gpus and _build_of(partial) != _CUDA:
        raise ExecutorError(
            f"the package index has {executor.framework} without CUDA for {platform.machine()}, "
            "and the job uses a GPU. Hint: set UV_DEFAULT_INDEX to an index with CUDA builds, or "
            f"start the local cloud with an empty {VISIBLE}."
        )
    return partial.rename(folder.with_name(f"{folder.name}-{_build_of(partial)}"))


def _is_torch(executor: Executor) -> bool:
    return executor.framework.startswith("torch==")


def _build_of(folder: Path) -> str:
    for file in folder.glob("lib/python3.*/site-packages/torch/version.py"):
        if _WITH_CUDA.search(file.read_text("utf-8", "replace")):
            return _CUDA
    return _CPU


def python_version(executor: Executor) -> str:
    """Return the minor version of the environment's Python. Raises ExecutorError."""
    return _python(executor)[1]


def _build(executor: Executor, python: str, folder: Path, report: Report) -> None:
    # The environment is relocatable, because the complete folder is renamed.
    create = ("venv", "--quiet", "--relocatable", "--python", python, str(folder))
    _run(uv_command(*create), report)
    install = uv_command("pip", "install", "--python", str(folder / "bin" / "python"))
    if not _is_torch(executor):
        if executor.framework != executor.cuda:
            report(f"{executor.framework} without CUDA: the job runs on CPUs")
    elif executor.on_gpus:
        report(f"installing {executor.framework} with CUDA")
    elif _cpu_wheels(install, executor):
        install += ["--torch-backend", "cpu"]
    else:
        report("the index of CPU wheels is not reachable: installing the default wheels (larger)")
    _run([*install, *executor.requirements], report)


def _cpu_wheels(install: list[str], executor: Executor) -> bool:
    probe = ["--torch-backend", "cpu", "--no-deps", "--dry-run", "--quiet"]
    bound = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_RETRIES": "0"}
    command = [*install, *probe, executor.framework]
    try:
        return _output(command, _PROBE_SECONDS, **bound).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _output(
    command: list[str], seconds: float | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**installer_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@cache
def _python(executor: Executor) -> tuple[str, str]:
    """Return path and version of a Python for the executor (a search takes half a second)."""
    supported = SpecifierSet(executor.python)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [IMAGE_PYTHON, *([running] if supported.contains(running) else [])]
    find = ("python", "find", "--no-python-downloads", "--no-project", "--system")
    error = ""
    for candidate in (*candidates, executor.python):
        process = _output(uv_command(*find, candidate))
        path = process.stdout.strip()
        if process.returncode == 0 and (version := version_of(path)):
            return path, version
        error = process.stderr.strip()
    raise ExecutorError(
        f"{executor.name} needs Python {executor.python}, which is not installed (vt runs on "
        f"{running}). Install Python {IMAGE_PYTHON}." + (f" uv reports: {error}" if error else "")
    )


def version_of(python: str) -> str | None:
    """Return the minor version of an interpreter; None if it does not start."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    process = _output([python, "-I", "-c", code])
    return process.stdout.strip() or None if process.returncode == 0 else None


def uv_command(*arguments: str) -> list[str]:
    """Return a command line of uv, which runs in ``/``: there it reads no settings of a checkout.

    Paths in ``arguments`` must be absolute. Raises ExecutorError if uv is not installed.
    """
    beside = Path(sys.executable).with_name("uv")
    path = str(beside) if beside.exists() else shutil.which("uv")
    if path is None:
        raise ExecutorError("uv is not installed. Hint: run `python -m pip install uv`")
    return [path, "--directory", "/", *arguments]


def _run(command: list[str], report: Report) -> None:
    process = subprocess.Popen(
        command,
        env=installer_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    last = ""
    try:
        for line in process.stdout:
            last = line.strip() or last
            report(line.rstrip())
    except BaseException:  # ``report`` raises an error if the job was cancelled.
        process.kill()
        raise
    finally:
        process.stdout.close()
        process.wait()
    if process.returncode != 0:
        raise ExecutorError(f"cannot build the environment: {last}")


_FILE: Final = "substitutes"
_WAIT: Final = "waits"
#: Python version in the name of a prebuilt image, or of Docker Hub's ``python``.
_PYTHON: Final = re.compile(r"\.py(\d)(\d+)|(?:^|/)python:(\d)\.(\d+)")


def host_substitute(image: str) -> str:
    """Return the text about a command that ran on this host instead of in its image."""
    return f"on this host, not in {image}"


def command_substitute(image: str, executor: Executor | None) -> str:
    """Return the log line for a command that runs on this host instead of in its image."""
    having = f", with the Python and packages of {executor.name}" if executor else ""
    return f"no container: the command runs on this host in place of {image}{having}"


def take_nearest(home: Home, *, on: bool) -> None:
    """Enable or disable the nearest version for unsupported prebuilt images."""
    if on:
        home.nearest_images.touch(0o600)
    else:
        home.nearest_images.unlink(missing_ok=True)


def takes_nearest(home: Home) -> bool:
    return home.nearest_images.is_file()


def version_substitute(image: str, executor: Executor) -> str:
    """Return the text about another framework version than the image's; empty if equal."""
    if for_image(image):
        return ""
    name = image.rpartition("/")[2].partition(":")[0]
    return f"on {executor.framework.replace('==', ' ')}, not in {name}"


def python_substitute(image: str, version: str) -> str:
    """Return the text about another Python version than the image's; empty if equal."""
    own = python_of(image) or IMAGE_PYTHON
    return "" if version == own else f"on Python {version}, not the image's {own}"


def python_of(image: str) -> str:
    """Return the Python minor version in an image's name; empty if the name has none.

    >>> python_of("us-docker.pkg.dev/x/gcr.io/pytorch-gpu.2-0.py310"), python_of("python:3.12-slim")
    ('3.10', '3.12')
    """
    match = _PYTHON.search(image)
    return f"{match[1] or match[3]}.{match[2] or match[4]}" if match else ""


def note_substitute(folder: Path, text: str) -> None:
    """Record a substitute in the folder of a job, unless it is already recorded."""
    known = _lines(folder)
    if text and text not in known:
        with open_private(folder / _FILE, "w") as file:
            file.write("\n".join([*known, text]) + "\n")


def note_wait(folder: Path, reason: str) -> bool:
    """Record why a job waits, or no reason; return whether the reason is new."""
    file = folder / _WAIT
    if not reason:
        file.unlink(missing_ok=True)
    if not reason or _lines(folder, _WAIT) == [reason]:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with open_private(file, "w") as written:
        written.write(f"{reason}\n")
    return True


def read_wait(home: Home, job_id: str) -> str:
    """Return why a job waits; empty if the job does not wait."""
    return " ".join(_lines(home.jobs / job_id, _WAIT))


def read_substitutes(home: Home, job_id: str) -> list[str]:
    """Return the recorded substitutes of a job."""
    return _lines(home.jobs / job_id)


def with_substitutes(state: str, substitutes: list[str]) -> str:
    """Return a job's state for display, followed by what replaces its image.

    >>> with_substitutes("SUCCEEDED", ["on Python 3.11, not the image's 3.10"])
    "SUCCEEDED (on Python 3.11, not the image's 3.10)"
    """
    return f"{state} ({'; '.join(substitutes)})" if substitutes else state


def _lines(folder: Path, file: str = _FILE) -> list[str]:
    try:
        return (folder / file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
