"""The command line of ``vt diff``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vertex_training.errors import UnknownStackError
from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from vertex_training.stack import Stack

#: Exit codes.
DIFFERENT: Final = 1
TROUBLE: Final = 2


class Format(StrEnum):
    """How differences are written."""

    TEXT = "text"
    JSON = "json"


def diff(
    one: Annotated[str, typer.Argument(help="A stack (Pulumi.ONE.yaml).")],
    other: Annotated[str, typer.Argument(help="The stack to compare it with.")],
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="How differences are told.")
    ] = Format.TEXT,
) -> None:
    """Show what differs between two stacks: settings, and the requests of their jobs.

    What differs only because names carry the project and the stack is no difference. Exit code, as
    of diff: 0 the same, 1 they differ, 2 trouble.
    """
    from vertex_training.errors import ConfigError
    from vertex_training_cli.diff import comparing

    try:
        found = comparing.compare(_stack(one), _stack(other))
    except ConfigError as wrong:
        print_line(f"vt diff: {wrong.report()}")
        raise typer.Exit(TROUBLE) from None
    except OSError as error:
        print_line(f"vt diff: {error.filename}: {error.strerror}")
        raise typer.Exit(TROUBLE) from None
    written = {Format.TEXT: comparing.as_text, Format.JSON: comparing.as_json}
    print(written[format_](found), end="")
    if not found.same:
        raise typer.Exit(DIFFERENT)


def _stack(name: str) -> Stack:
    """The stack; ends the command if the project does not have it.

    Raises:
        ConfigError: its file has mistakes.
    """
    from vertex_training.stack import load
    from vertex_training_cli.engine.paths import root_of

    root = root_of(Path.cwd())
    reason = "no Pulumi.yaml here or above: a stack needs a project"
    if root is not None:
        try:
            return load(root, name)
        except UnknownStackError as missing:
            reason = str(missing)
    print_line(f"vt diff: {reason}")
    raise typer.Exit(TROUBLE)
