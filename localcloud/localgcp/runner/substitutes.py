"""Records what stood in for a job's image: lines in a file of its folder.

A run on this host, or on another Python, proves less than one in the image: commands say so where
they tell how a job ended.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from localgcp.home import Home, open_private
from localgcp.runner import executors
from localgcp.runner.executors import IMAGE_PYTHON, Executor

_FILE: Final = "substitutes"
#: The Python in the name of one of Google's images, and of Docker Hub's ``python``.
_PYTHON: Final = re.compile(r"\.py(\d)(\d+)|(?:^|/)python:(\d)\.(\d+)")


def host_for(image: str) -> str:
    """Of a command that ran on this host."""
    return f"on this host, not in {image}"


def command_for(image: str, executor: Executor | None) -> str:
    """Return the line of the log for a command that runs on this host."""
    having = f", with the Python and packages of {executor.name}" if executor else ""
    return f"no container: the command runs on this host in place of {image}{having}"


def take_nearest(home: Home, *, on: bool) -> None:
    """Let the nearest version stand in for a prebuilt image that is not here, or not."""
    if on:
        home.nearest_images.touch(0o600)
    else:
        home.nearest_images.unlink(missing_ok=True)


def takes_nearest(home: Home) -> bool:
    """Return whether ``take_nearest`` was asked for."""
    return home.nearest_images.is_file()


def version_for(image: str, executor: Executor) -> str:
    """Of the environment of another version; empty if it is that of the image."""
    if executors.for_image(image):
        return ""
    name = image.rpartition("/")[2].partition(":")[0]
    return f"on {executor.framework.replace('==', ' ')}, not in {name}"


def python_for(image: str, version: str) -> str:
    """Of an environment with this Python; empty if the image has the same."""
    own = python_of(image) or IMAGE_PYTHON
    return "" if version == own else f"on Python {version}, not the image's {own}"


def python_of(image: str) -> str:
    """The minor version of an image's Python as its name has it; empty if it has none.

    >>> python_of("us-docker.pkg.dev/x/gcr.io/pytorch-gpu.2-0.py310"), python_of("python:3.12-slim")
    ('3.10', '3.12')
    """
    match = _PYTHON.search(image)
    return f"{match[1] or match[3]}.{match[2] or match[4]}" if match else ""


def note(folder: Path, text: str) -> None:
    """Add a line to the folder of a job, once."""
    known = _lines(folder)
    if text and text not in known:
        with open_private(folder / _FILE, "w") as file:
            file.write("\n".join([*known, text]) + "\n")


def read(home: Home, job_id: str) -> list[str]:
    """Return what stood in for the image of a job; empty if nothing did, or it has not begun."""
    return _lines(home.jobs / job_id)


def marked(state: str, found: list[str]) -> str:
    """A state with what the job ran on otherwise, for people.

    >>> marked("SUCCEEDED", ["on Python 3.11, not the image's 3.10"])
    "SUCCEEDED (on Python 3.11, not the image's 3.10)"
    """
    return f"{state} ({'; '.join(found)})" if found else state


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / _FILE).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
