"""Removes the file beside a state file if a kill truncated it.

A file backend keeps an object's attributes as ``STACK.json.attrs``. It replaces the state in one
step, but writes this file in place and first (gocloud.dev v0.46.1, blob/fileblob/attrs.go). After
a kill in between, every ``pulumi`` fails with ``failed to load checkpoint: EOF``. The state is
whole, and does not need the other file. One that is not whole (a crash of the machine, a copy that
a full disk cut off) is refused: of it the engine says ``unexpected end of JSON input``, no file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from vertex_training.errors import CommandError
from vertex_training_cli.engine import locks


def remove_truncated(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[Path]:
    """Remove the truncated files beside the stack's state in a ``file://`` backend; returns it.

    Call it only while no other process uses the stack: a file that is being written looks the same.

    Raises:
        CommandError: the state itself is truncated; with the way back.
    """
    folder = locks.folder_of(backend)
    if folder is None:
        return []
    beside = folder / ".pulumi" / "stacks" / project
    if _is_truncated(state := beside / f"{stack}.json"):
        raise _truncated_state(state, stack)
    files = [beside / f"{stack}.json{compressed}.attrs" for compressed in ("", ".gz", ".zst")]
    found = [file for file in files if _is_truncated(file)]
    for file in found:
        file.unlink(missing_ok=True)
        log(f"a killed run left {file.name} cut off: removed; the state beside it is whole")
    return found


def _truncated_state(file: Path, stack: str) -> CommandError:
    before = file.with_name(f"{file.name}.bak")
    way = "docs/operations.md#the-state-is-lost"
    if before.exists() and not _is_truncated(before):
        way = f"`cp {before} {file}`, then `vt up --stack {stack} --refresh`."
    return CommandError(f"the state of stack {stack} is cut off: {file} is no JSON.", way)


def _is_truncated(file: Path) -> bool:
    try:
        return not isinstance(json.loads(file.read_bytes()), dict)
    except ValueError:
        return True
    except FileNotFoundError:
        return False
