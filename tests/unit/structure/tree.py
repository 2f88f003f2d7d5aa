"""The files of this repository, as git lists them."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
#: Source root -> the package in it.
SOURCES: Final = {
    "infra": "vertex_training",
    "cli": "vertex_training_cli",
    "localcloud": "localgcp",
}
#: Folders with code that is shipped or run; not tests and benchmarks.
PRODUCT: Final = ("bootstrap", "jobs", "policy", "tools", *SOURCES)


@functools.cache
def files() -> tuple[str, ...]:
    """Every file of the working tree that git knows or would add, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return tuple(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def modules(*folders: str) -> tuple[Path, ...]:
    """The Python files below these folders, relative to the root."""
    return tuple(
        Path(name)
        for name in files()
        if name.endswith(".py") and name.startswith(tuple(f"{folder}/" for folder in folders))
    )


def packages(*folders: str) -> tuple[Path, ...]:
    """The packages below these folders, relative to the root."""
    return tuple(path.parent for path in modules(*folders) if path.name == "__init__.py")
