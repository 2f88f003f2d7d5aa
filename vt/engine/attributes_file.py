"""The file beside a state file: one that a kill cut off is removed.

A file backend keeps an object's attributes as `STACK.json.attrs`. It replaces the state in one
step, but writes this in place and first (gocloud.dev v0.46.1, blob/fileblob/attrs.go): killed
there, every later `pulumi` says `failed to load checkpoint: EOF`. The state is whole, and nothing
in the other file matters to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from vt.engine import locks


def remove_truncated(
    backend: str, project: str, stack: str, log: Callable[[str], None]
) -> list[Path]:
    """Remove what is cut off beside the stack's state in a `file://` backend; returns it.

    Only while nobody works on the stack: a file that is being written looks the same.
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
