"""Where in ``Pulumi.<stack>.yaml`` a mistake stands: config paths become lines and columns."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from infra.errors import ConfigError, Problem
from infra.located_yaml import document

#: ``Pulumi.dev.yaml: vertex-training:buckets.data``, as ``stack_file`` writes places.
PLACE = re.compile(r"(Pulumi\.[^/:]+\.yaml): ([a-z-]+):(.+)\Z")
STEP = re.compile(r"[^.\[\]]+")


def locate(problems: Iterable[Problem], root: Path) -> list[Problem]:
    """The same problems with ``file:line:column`` as place where the file says it.

    ``root`` is the folder of the stack file. A place that is not in the file (a missing key, a
    stack file elsewhere) stays as it is.
    """
    parsed: dict[str, document.Document | None] = {}
    located = []
    for problem in problems:
        match = PLACE.match(problem.where)
        if match is None:
            located.append(problem)
            continue
        file, namespace, path = match.groups()
        if file not in parsed:
            parsed[file] = _parse(root / file)
        stack_document = parsed[file]
        found = stack_document and _find(stack_document, f"{namespace}:{path}")
        located.append(
            dataclasses.replace(problem, where=found, what=f"{namespace}:{path}: {problem.what}")
            if found
            else problem
        )
    return located


def _parse(file: Path) -> document.Document | None:
    try:
        return document.parse(file.read_bytes(), file.name)
    except (OSError, ConfigError):
        return None  # whoever reads the config tells what is wrong with the file itself


def _find(parsed: document.Document, full: str) -> str | None:
    """Place of the longest part of the path that is there; None if not even its key is."""
    config = parsed.root.content.get("config")
    keys = config.content if config and isinstance(config.content, dict) else {}
    top = next(
        (key for key in keys if full == key or re.match(re.escape(key) + r"[.\[]", full)), ""
    )
    if not top:
        return None
    path: list[str | int] = ["config", top]
    value = keys[top]
    rest = full.removeprefix(top)
    while rest and value is not None:
        step, rest, value = _step(rest, value)
        if value is None:
            break
        path.append(step)
    return parsed.where(tuple(path), key=not isinstance(path[-1], int))


def _step(rest: str, value: document.Value) -> tuple[str | int, str, document.Value | None]:
    """The next key of ``rest``; a key may hold dots, so the longest that is there wins."""
    if isinstance(value.content, list) and (item := re.match(r"\[?\.?(\d+)\]?", rest)):
        index = int(item[1])
        inside = index < len(value.content)
        return index, rest[item.end() :], value.content[index] if inside else None
    rest = rest.removeprefix(".")
    if isinstance(value.content, dict):
        known = [k for k in value.content if rest == k or rest.startswith((f"{k}.", f"{k}["))]
        if known:
            key = max(known, key=len)
            return key, rest.removeprefix(key), value.content[key]
    return rest, "", None
