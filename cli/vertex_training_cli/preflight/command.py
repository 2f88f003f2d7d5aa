"""The command line of ``vt preflight``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks
from vertex_training_cli.preflight import context, parts
from vertex_training_cli.preflight.answers import WRITERS, Preflight, Verdict, as_json, markdown

#: Exit code: a deployment would be refused.
REFUSED: Final = 3


class PreflightFormat(enum.StrEnum):
    """How the answers are printed."""

    TEXT = enum.auto()
    MARKDOWN = enum.auto()
    JSON = enum.auto()


def preflight(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="The stack to ask for (Pulumi.STACK.yaml).")
    ],
    account: Annotated[
        str, typer.Option("--as", help="Ask as this service account.", metavar="ACCOUNT")
    ] = "",
    format_: Annotated[
        PreflightFormat,
        typer.Option("--format", "-f", metavar="FORMAT", help="text, markdown or json."),
    ] = PreflightFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write FILE.md and FILE.json.", metavar="FILE"),
    ] = None,
) -> None:
    """Ask the project what a deployment of the stack would be refused; changes nothing.

    Project, billing, APIs, rights, names, images: each answer says what a deployment would meet and
    what mends it. What could not be asked is listed with the permission that was missing.

    Exit code: 0 nothing would be refused, 1 it could not be asked at all, 3 something would be
    refused.
    """
    if output is not None and output.name in ("", ".."):
        raise CommandError(f"--output {str(output)!r} names no file.")
    ref = stacks.find(stack)
    made, unread = context.connect(ref, account)
    answers = (*unread, *parts.ask_all(made))
    found = Preflight(stack, ref.project, account, answers, made.client.calls)
    print(WRITERS[format_](found), end="")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        for ending, write in (("md", markdown), ("json", as_json)):
            (output.parent / f"{output.name}.{ending}").write_text(write(found), encoding="utf-8")
    if len(found.of(Verdict.UNKNOWN)) == len(answers):
        raise CommandError("nothing could be asked.")
    raise typer.Exit(REFUSED if found.of(Verdict.REFUSED) else 0)
