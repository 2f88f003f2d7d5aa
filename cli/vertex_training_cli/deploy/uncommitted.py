"""Code and YAML that a program would read and that no commit has."""

from __future__ import annotations

import importlib.machinery
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

#: Suffixes of what Python imports: sources, bytecode without a source, and extension modules.
CODE: Final = tuple(importlib.machinery.all_suffixes())
#: Also read by the program: stack files, what they include, and job files.
READ: Final = (*CODE, ".yaml", ".yml")
#: What ``make setup`` installs in a repository that ``vt init`` made.
INSTALLED: Final = frozenset({"requirements.lock", "requirements.txt"})
#: Nothing is imported from these; ``stacks.own_bytecode`` keeps bytecode from being read.
_NOT_IMPORTED: Final = frozenset({"__pycache__", ".git"})


def uncommitted_inputs(
    root: Path, tracked: Collection[str], untracked: Iterable[str], links: Iterable[str]
) -> list[str]:
    """Names of what a program in ``root`` could read beside the ``tracked`` files, sorted.

    ``untracked`` are the files that git neither tracks nor ignores. Of ignored ones only those
    count that can be imported from ``root``. ``links`` are tracked symbolic links: git binds
    their text, so what they lead to must be tracked in ``root``, too.
    """
    links = set(links)
    found = {
        file for name in untracked for file in _files_of(root, name) if _is_read(root, file)
    } | {name for name in _importable(root, links) if name not in tracked}
    return sorted(found) + [
        f"{name} -> {os.readlink(root / name)}"
        for name in sorted(links)
        if _is_read(root, name) and not _stays(root, name, tracked)
    ]


def _files_of(root: Path, name: str) -> Iterator[str]:
    """``name``, or the files of a repository of its own, of which git lists the folder only."""
    if not name.endswith("/"):
        yield name
        return
    for file in (root / name).rglob("*"):
        if file.is_file() and _NOT_IMPORTED.isdisjoint(file.parts):
            yield file.relative_to(root).as_posix()


def _is_read(root: Path, name: str) -> bool:
    path = root / name
    linked_folder = path.is_symlink() and path.is_dir()
    return (
        name in INSTALLED
        or name.endswith(READ)
        or linked_folder
        or (path.is_symlink() and not path.exists())
    )


def _importable(root: Path, links: Collection[str]) -> Iterator[str]:
    """Modules below ``root``, also where no ``__init__`` is; what ``links`` lead to aside."""
    seen = set[str]()
    for folder, folders, files in os.walk(root, followlinks=True):
        place = Path(folder).relative_to(root)
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [
            name
            for name in folders
            if name.isidentifier()
            and name not in _NOT_IMPORTED
            and (place / name).as_posix() not in links
        ]
        for name in files:
            if name.endswith(CODE) and name.partition(".")[0].isidentifier():
                yield (place / name).as_posix()


def _stays(root: Path, link: str, tracked: Collection[str]) -> bool:
    """Whether a link leads to a tracked file below ``root``, or to a folder with some."""
    target, top = (root / link).resolve(), root.resolve()
    if not target.is_relative_to(top):
        return False
    name = PurePosixPath(target.relative_to(top))
    return str(name) in tracked or any(name in PurePosixPath(each).parents for each in tracked)
