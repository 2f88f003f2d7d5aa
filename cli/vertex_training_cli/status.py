"""Lines for people on stderr: stdout has the result of a command."""

from __future__ import annotations

import sys

from vertex_training_cli.engine.values import redact


def print_line(text: object) -> None:
    """Print ``text`` to stderr with what looks like a secret redacted.

    Errors quote the engine, the cloud and files, which may quote a secret.
    """
    print(redact(str(text)), file=sys.stderr, flush=True)
