"""Removes the file beside a state file if a kill truncated it.

A file backend keeps an object's attributes as ``STACK.json.attrs``. It replaces the state in one
step, but writes this file in place and first (gocloud.dev v0.46.1, blob/fileblob/attrs.go). After
a kill in between, every ``pulumi`` fails with ``failed to load checkpoint: EOF``. The state is
whole, and does not need the other file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from vertex_training_cli.engine import locks


def remove_truncated(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[Path]:
    """Remove the truncated files beside the stack's state in a ``file://`` backend; returns it.

    Call it only while no other process uses the stack: a file that is being written looks the same.
    """
    folder = locks.folder_of(backend)
    if folder is None:
        return []
    beside = folder / ".pulumi" / "stacks" / project
    files = [beside / f"{stack}.json{compressed}.attrs" for compressed in ("", ".gz", ".zst")]
    found = [file for file in files if _is_truncated(file)]
    for file in found:
        file.unlink(missing_ok=True)
        log(f"a killed run left {file.name} cut off: removed; the state beside it is whole")
    return found


def _is_truncated(file: Path) -> bool:
    try:
        return not isinstance(json.loads(file.read_bytes()), dict)
    except ValueError:
        return True
    except FileNotFoundError:
        return False
