"""The command line of ``vt iam``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from vertex_training.settings import project_files
from vertex_training_cli.engine.paths import root_of
from vertex_training_cli.iam import tables
from vertex_training_cli.iam.recording import environments, record
from vertex_training_cli.status import print_line


class IamFormat(enum.StrEnum):
    """How the grants are printed."""

    TABLE = enum.auto()
    JSON = enum.auto()
    MARKDOWN = enum.auto()


def iam(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(help="Environments; all that bootstrap/ has if absent.", metavar="STACK..."),
    ] = None,
    format_: Annotated[
        IamFormat, typer.Option("--format", "-f", metavar="FORMAT", help="table, json or markdown.")
    ] = IamFormat.TABLE,
) -> None:
    """Show who can do what: every grant that bootstrap and the stacks declare.

    Nothing is asked of the cloud. Exit codes: 0 done, 1 a file has mistakes, 2 wrong usage.
    """
    here = Path.cwd()
    root = here if project_files.names(here) else root_of(here) or here
    names = stacks or environments(root)
    found = [record(root, name) for name in names]
    if not names:
        print_line("vt iam: bootstrap/ has no environment here. Hint: vt iam STACK")
        raise typer.Exit(2)
    for name in names:
        if name not in project_files.names(root / "bootstrap"):
            what = f"bootstrap has no {name}: its grants are those of the stack alone"
            print_line(f"vt iam: {what}")
    show = {
        IamFormat.TABLE: tables.as_table,
        IamFormat.JSON: tables.as_json,
        IamFormat.MARKDOWN: tables.as_markdown,
    }[format_]
    typer.echo(show(found).rstrip("\n"))
