"""Creates folders that may exist, and deletes folders that may be missing."""

from __future__ import annotations

import shutil
from pathlib import Path


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents, unless it exists."""
    path.mkdir(mode, parents=True, exist_ok=True)


def delete_folder(path: Path) -> None:
    """Delete a folder as far as permissions allow; it may be missing."""
    shutil.rmtree(path, ignore_errors=True)
