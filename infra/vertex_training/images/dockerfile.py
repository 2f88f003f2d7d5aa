"""What keeps a Dockerfile from being built, as far as it shows without building."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

COPY: Final = re.compile(r"^[ \t]*(?:COPY|ADD)[ \t]+(\S.*)$", re.IGNORECASE | re.MULTILINE)
#: A comment, also between joined lines. It ends with its line, whatever that ends with.
COMMENT: Final = re.compile(r"^[ \t]*#.*\n?", re.MULTILINE)
#: Where a line goes on in the next one.
JOINED: Final = re.compile(r"\\[ \t]*\n")
#: Docker takes a first line such as ``FROM python:3.11``, after comments and ARG.
FROM: Final = re.compile(r"^[ \t]*FROM[ \t]+\S", re.IGNORECASE | re.MULTILINE)


def problems(
    folder: Path, dockerfile: str, included: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """What is wrong with a context, each with a hint; nothing if an image could be built of it.

    ``included`` are names that the context has beside the folder's own.
    """
    file = folder / dockerfile
    if not file.is_file():
        yield f"has no {dockerfile}", "name the folder that holds it, or set dockerfile"
        return
    if not is_inside(folder, dockerfile):
        yield f"its {dockerfile} is a link out of the folder", "copy what it leads to"
        return
    text = JOINED.sub(" ", COMMENT.sub("", file.read_text("utf-8", errors="replace")))
    if not FROM.search(text):
        yield f"its {dockerfile} has no FROM", "begin with FROM and a base image"
    for source in _copied(text):
        if source.lstrip("/").partition("/")[0] in included:
            continue
        if not (folder / source.lstrip("/")).exists():
            yield (
                f"its {dockerfile} copies {source}, which is not there",
                "paths start in the folder; include puts other folders into the context",
            )


def is_inside(folder: Path, dockerfile: str) -> bool:
    """Whether the folder has the file itself, and no link to one elsewhere."""
    file = folder / dockerfile
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())


def _copied(text: str) -> Iterator[str]:
    """Plain paths that COPY and ADD take from the context: no patterns, variables or addresses."""
    for line in COPY.findall(text):
        words = line.split()
        if line.lstrip().startswith("[") or any(word.startswith("--from") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")][:-1]
        yield from (path for path in paths if not re.search(r"[*?\[$<]|://|@", path))
