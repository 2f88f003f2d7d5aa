"""``vt check FILES`` alone, as editors and hooks call it: without the parser of the command line.

The parser loads pydantic, which takes longer than checking a file. Any option takes the usual way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def files_of(words: Sequence[str]) -> list[str] | None:
    """The files, if the line is ``check FILES`` and nothing else; None for any other line."""
    command, *files = words or [""]
    plain = all(word and (word == "-" or not word.startswith("-")) for word in files)
    return files if command == "check" and files and plain else None


def run(files: list[str]) -> int:
    """The exit code of ``vt check FILES``."""
    import typer

    from vertex_training_cli.check.command import check
    from vertex_training_cli.failures import exit_codes

    try:
        with exit_codes("check"):
            check(files)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `vt check jobs | head`: who reads has what it wants
        sys.stdout = None
        return 1
    return 0
