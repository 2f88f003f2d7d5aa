"""The command line of scripts that generate a file, or compare the file with the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(target: Path, generate: Callable[[], str], module: str) -> int:
    """Write ``target``, or with ``--check`` compare it with the result of ``generate``.

    ``module`` names the script in the message about a stale file. Exit codes: 0 written or up to
    date, 1 stale.
    """
    text = generate()
    if "--check" not in sys.argv[1:]:
        target.write_text(text, encoding="utf-8")
        print(f"wrote {target.name}")
        return 0
    if target.is_file() and target.read_text(encoding="utf-8") == text:
        return 0
    print(f"{target.name} is out of date: run python -m {module}", file=sys.stderr)
    return 1
