"""The Pulumi project around the current folder, and its files as messages name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from localgcp.root_directory import is_gits

#: Its folder is the root of a Pulumi project.
PROJECT_FILE: Final = "Pulumi.yaml"


def root_of(start: Path) -> Path | None:
    """The nearest folder, from ``start`` upwards, that holds a Pulumi project."""
    folder = start.absolute()
    candidates = (folder, *folder.parents)
    return next((path for path in candidates if (path / PROJECT_FILE).is_file()), None)


def link_out(file: Path) -> Path | None:
    """A link on the way to a file that leaves the checkout or project that it lies in, or none.

    A link that lies in neither is the user's own, unless it is the file itself.
    """
    full = file.absolute()
    for link in (each for each in (full, *full.parents) if each.is_symlink()):
        own = link.parent if link == full else None
        top = next((each for each in link.parents if _is_top(each)), own)
        if top is None:
            continue
        target, inside = link.resolve(), top.resolve()
        if not target.is_relative_to(inside) or any(map(is_gits, target.relative_to(inside).parts)):
            return link
    return None


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or (folder / PROJECT_FILE).is_file()


def stack_file(root: Path, stack: str) -> str:
    """A stack's file, as messages show it."""
    return from_here(root / f"Pulumi.{stack}.yaml")


def from_here(path: Path) -> str:
    """``path`` from the current folder if it lies below it, in full otherwise."""
    full, here = path.absolute(), Path.cwd()
    return os.path.relpath(full, here) if full.is_relative_to(here) else str(full)
