"""Records why a job waits, and what replaces its image and its GPUs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from localgcp.home import Home, open_private
from localgcp.runner import executors
from localgcp.runner.executors import IMAGE_PYTHON, Executor

_FILE: Final = "substitutes"
_WAIT: Final = "waits"
#: Python version in the name of a prebuilt image, or of Docker Hub's ``python``.
_PYTHON: Final = re.compile(r"\.py(\d)(\d+)|(?:^|/)python:(\d)\.(\d+)")


def host_for(image: str) -> str:
    """Return the text about a command that ran on this host instead of in its image."""
    return f"on this host, not in {image}"


def command_for(image: str, executor: Executor | None) -> str:
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


def version_for(image: str, executor: Executor) -> str:
    """Return the text about another framework version than the image's; empty if equal."""
    if executors.for_image(image):
        return ""
    name = image.rpartition("/")[2].partition(":")[0]
    return f"on {executor.framework.replace('==', ' ')}, not in {name}"


def python_for(image: str, version: str) -> str:
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


def note(folder: Path, text: str) -> None:
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


def read(home: Home, job_id: str) -> list[str]:
    """Return the recorded substitutes of a job."""
    return _lines(home.jobs / job_id)


def marked(state: str, substitutes: list[str]) -> str:
    """Return a job's state for display, followed by what replaces its image.

    >>> marked("SUCCEEDED", ["on Python 3.11, not the image's 3.10"])
    "SUCCEEDED (on Python 3.11, not the image's 3.10)"
    """
    return f"{state} ({'; '.join(substitutes)})" if substitutes else state


def _lines(folder: Path, file: str = _FILE) -> list[str]:
    try:
        return (folder / file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
