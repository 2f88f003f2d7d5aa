"""What a stack has otherwise than the files that it includes: ``overrides``, by dotted path. Pure.

Each exception is one line of the stack's own file: ``buckets.data.protect: false``. It stands for a
value that an included file gives, or leaves to its default; null leaves it out
(docs/adr/0052-a-stack-overrides-what-it-includes-by-path.md).
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.located_yaml.document import Document

#: The key that has the exceptions.
OVERRIDES: Final = "overrides"


def apply(
    namespace: str,
    merged: dict[str, Any],
    own: Mapping[str, Any],
    included: Collection[tuple[str, ...]],
) -> Iterator[Problem]:
    """Change ``merged``, the config by full key, and yield what is no exception from anything.

    ``own`` is the config of the stack's own file; ``included`` are full keys, and entries of
    mappings of names, that included files give.
    """
    given = own.get(f"{namespace}:{OVERRIDES}")
    paths = {str(key): value for key, value in given.items()} if isinstance(given, dict) else {}
    known = {(full.partition(":")[2], *entry): (full, *entry) for full, *entry in included}
    for text, value in paths.items():
        path = tuple(text.split("."))
        if whole := next((other for other in paths if text.startswith(f"{other}.")), None):
            what = f"is a part of {whole}, which is overridden as a whole"
            found = (what, "keep one of them")
        else:
            found = _unknown(path, known, own, namespace) or _set(merged, namespace, path, value)
        if found:
            yield Problem(found[0], "", found[1], (f"{namespace}:{OVERRIDES}", text))


def _unknown(
    path: tuple[str, ...],
    known: Mapping[tuple[str, ...], tuple[str, ...]],
    own: Mapping[str, Any],
    namespace: str,
) -> tuple[str, str] | None:
    """What is wrong with a path into nothing that an included file has, and what to do."""
    if path[:1] in known or path[:2] in known:
        return None
    names = sorted(".".join(key) for key in known)
    entries = [name for name in names if name.startswith(f"{path[0]}.")]
    if entries and len(path) == 1:
        return "is a mapping of names", f"override one of them, like {entries[0]}"
    mine = own.get(f"{namespace}:{path[0]}")
    if mine is not None and (not entries or (isinstance(mine, dict) and path[1] in mine)):
        return "stands in this file", "change it there"
    wanted = ".".join(path[:2] if entries else path[:1])
    return f"no included file has {wanted}", did_you_mean(wanted, names)


def _set(
    merged: dict[str, Any], namespace: str, path: tuple[str, ...], value: Any
) -> tuple[str, str] | None:
    """Write the value at the path, or leave it out; else what is wrong, and what to do."""
    first = f"{namespace}:{path[0]}"
    merged[first] = copy.deepcopy(merged[first])
    inside, parents = merged, (first, *path[1:-1])[: len(path) - 1]
    for index, part in enumerate(parents):
        inside = inside.setdefault(part, {})
        if not isinstance(inside, dict):
            return f"{'.'.join(path[: index + 1])} is no mapping", "shorten the path"
    last = path[-1] if len(path) > 1 else first
    if value is not None:
        inside[last] = value
    elif last in inside:
        del inside[last]
    else:
        return "there is nothing to leave out", "remove it"
    return None


def place(file: Document, path: Path) -> Path:
    """Where a stack's file overrides the value at ``path``, or a part around it; empty if nowhere.

    ``path`` begins with a full key, as paths of problems do.
    """
    config = file.root.content.get("config") if isinstance(file.root.content, dict) else None
    for full, given in (
        config.content if config and isinstance(config.content, dict) else {}
    ).items():
        namespace, _, key = str(full).partition(":")
        if key != OVERRIDES or not isinstance(given.content, dict):
            continue
        for text in given.content:
            first, *rest = str(text).split(".")
            overridden = (f"{namespace}:{first}", *rest)
            if path[: len(overridden)] == overridden:
                return ("config", full, text, *path[len(overridden) :])
    return ()
