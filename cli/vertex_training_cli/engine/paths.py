"""The Pulumi project around the current folder, and its files as messages name them."""

from __future__ import annotations

import os
from pathlib import Path

from vertex_training.settings.project_files import PROJECT_FILE, file_name


def root_of(start: Path) -> Path | None:
    """The nearest folder, from ``start`` upwards, that holds a Pulumi project."""
    folder = start.absolute()
    candidates = (folder, *folder.parents)
    return next((path for path in candidates if (path / PROJECT_FILE).is_file()), None)


def stack_file(root: Path, stack: str) -> str:
    """A stack's file, as messages show it."""
    return from_here(root / file_name(stack))


def from_here(path: Path) -> str:
    """``path`` from the current folder if it lies below it, in full otherwise."""
    full, here = path.absolute(), Path.cwd()
    return os.path.relpath(full, here) if full.is_relative_to(here) else str(full)
