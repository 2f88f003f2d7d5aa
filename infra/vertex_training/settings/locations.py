"""Where in a stack file, or in what it includes, a mistake stands: paths become places."""

from __future__ import annotations

import contextlib
import functools
import pathlib
from collections.abc import Iterable
from typing import Any

from vertex_training.errors import ConfigError, Path, Problem
from vertex_training.located_yaml import document
from vertex_training.settings import includes, overrides


def locate(problems: Iterable[Problem], folder: pathlib.Path) -> list[Problem]:
    """The same problems with the line and column that a file in ``folder`` has for their paths.

    A problem that has a line keeps it. A path that is not in the file (a missing key, a value that
    ``Pulumi.yaml`` gives) stays without. A path that an included file has more of is there.
    """
    parsed = functools.cache(lambda name: _parse(folder, name))
    return [
        problem
        if problem.location.line or not problem.path
        else _located(problem, parsed(problem.location.file))
        for problem in problems
    ]


def _parse(folder: pathlib.Path, name: str) -> list[document.Document]:
    """The file, and those that it includes; without what cannot be read.

    The reader of the config reports problems of the files themselves.
    """
    try:
        own = document.read((folder / name).read_bytes(), name)
    except (OSError, ConfigError):
        return []
    found = [own]
    for included in _included(own):
        with contextlib.suppress(OSError, ConfigError):
            found.append(document.read((folder / included).read_bytes(), included))
    return found


def _included(file: document.Document) -> list[str]:
    content = file.root.plain()
    config = content.get("config") if isinstance(content, dict) else None
    config = config if isinstance(config, dict) else {}
    spaces = sorted({str(key).rpartition(":")[0] for key in config})
    return [path for each in spaces for _, path in includes.numbered_paths(config, each)]


def _located(problem: Problem, parsed: list[document.Document]) -> Problem:
    """At the longest part of its path that is there; as it is if not even its key is."""
    if not parsed:
        return problem
    if overriding := overrides.place(parsed[0], problem.path):
        found = _longest(parsed[0], overriding)
        return problem.at(parsed[0].location(found, key=not isinstance(found[-1], int)))
    path = ("config", *problem.path)
    file = max(parsed, key=lambda each: len(_longest(each, path)))
    found = _longest(file, path)
    if len(found) < 2:
        return problem
    return problem.at(file.location(found, key=not isinstance(found[-1], int)))


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
