"""Folders that may be there already, and folders that may be gone."""

from __future__ import annotations

import shutil
from pathlib import Path


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder and those above it, unless it is there."""
    path.mkdir(mode, parents=True, exist_ok=True)


def delete_folder(path: Path) -> None:
    """Delete a folder with all that can be deleted in it; it may be gone."""
    shutil.rmtree(path, ignore_errors=True)
