"""A file that is written from the code, or held against it: the command line of such tools."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(target: Path, generate: Callable[[], str], module: str) -> int:
    """Write ``target``; with ``--check`` only say whether it is what ``generate`` gives.

    ``module`` is what ``python -m`` runs to write it. Exit codes: 0 done or as it should be, 1 it
    is not.
    """
    text = generate()
    if "--check" not in sys.argv[1:]:
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target.name}")
        return 0
    if target.is_file() and target.read_text(encoding="utf-8") == text:
        return 0
    print(f"{target.name} is stale: run python -m {module}", file=sys.stderr)
    return 1
