"""Prints lines for people to stderr. stdout is for results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from vertex_training_cli.console import plain_lines
from vertex_training_cli.engine.values import redact

#: Package that only an extra of this distribution installs -> name of the extra.
EXTRAS: Final[Mapping[str, str]] = {
    "typer": "cli",
    "rich": "cli",
    "jinja2": "cli",
    "psutil": "cli",
    "google.cloud.secretmanager": "cli",
    "google.cloud.devtools": "cli",
    "localgcp": "cli",
}


def print_line(text: object) -> None:
    """Print ``text`` to stderr, without secrets and control characters."""
    print(plain_lines(redact(str(text))), file=sys.stderr, flush=True)


def print_status(text: str) -> None:
    """Print a status line of ``vt`` to stderr. stdout has results and the output of ``pulumi``."""
    print_line(f"vt: {text}")


def extra_hint(module: str) -> str:
    """Return the command that installs the extra with a module; empty without such an extra."""
    extras = [extra for name, extra in EXTRAS.items() if f"{module}.".startswith(f"{name}.")]
    return f"install vertex-training[{extras[0]}] from its wheels" if extras else ""
