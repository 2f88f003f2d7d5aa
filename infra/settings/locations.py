"""Where in a stack file a mistake stands: paths become lines and columns."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable
from typing import Any

from infra.errors import ConfigError, Path, Problem
from infra.located_yaml import document


def locate(problems: Iterable[Problem], folder: pathlib.Path) -> list[Problem]:
    """The same problems with the line and column that a file in ``folder`` has for their paths.

    A problem that has a line keeps it. A path that is not in the file (a missing key, a value that
    ``Pulumi.yaml`` gives) stays without.
    """
    parsed: dict[str, document.Document | None] = {}
    located = []
    for problem in problems:
        file = problem.location.file
        if problem.path and not problem.location.line and file not in parsed:
            parsed[file] = _parse(folder / file)
        found = parsed.get(file)
        located.append(_located(problem, found) if found else problem)
    return located


def _parse(file: pathlib.Path) -> document.Document | None:
    try:
        return document.read(file.read_bytes(), file.name)
    except (OSError, ConfigError):
        return None  # the reader of the config reports problems of the file itself


def _located(problem: Problem, parsed: document.Document) -> Problem:
    """At the longest part of its path that is there; as it is if not even its key is."""
    if problem.location.line:
        return problem
    found = _longest(parsed, ("config", *problem.path))
    if len(found) < 2:
        return problem
    return problem.at(parsed.location(found, key=not isinstance(found[-1], int)))


def _longest(parsed: document.Document, path: Path) -> Path:
    """The longest beginning of ``path`` that is in the document."""
    value = parsed.root
    for index, part in enumerate(path):
        inside = _inside(value.content, part)
        if inside is None:
            return path[:index]
        value = inside
    return path


def _inside(content: Any, part: str | int) -> document.Value | None:
    if isinstance(content, dict):
        return content.get(part)
    if isinstance(content, list) and isinstance(part, int) and part < len(content):
        return content[part]
    return None
