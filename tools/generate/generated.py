"""The command line of scripts that generate a file, or compare the file with the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(target: Path, generate: Callable[[], str], module: str) -> int:
    """Write ``target``, or with ``--check`` compare ``target`` with the result of ``generate``.

    The message about an outdated file names ``module``. Exit codes: 0 written or up to date, 1
    outdated.
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
