"""The command line of ``vt iam``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from vertex_training.errors import CommandError, ConfigError, UnknownStackError
from vertex_training_cli.status import print_line


class IamFormat(enum.StrEnum):
    """How the grants are printed."""

    TABLE = enum.auto()
    JSON = enum.auto()
    MARKDOWN = enum.auto()


def iam(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(help="Environments; dev and prod if absent.", metavar="STACK..."),
    ] = None,
    format_: Annotated[
        IamFormat, typer.Option("--format", "-f", metavar="FORMAT", help="table, json or markdown.")
    ] = IamFormat.TABLE,
) -> None:
    """Show who can do what: every grant that bootstrap and the stacks declare.

    Nothing is asked of the cloud. Exit codes: 0 done, 1 a file has mistakes, 2 wrong usage.
    """
    from vertex_training_cli.iam import tables
    from vertex_training_cli.iam.recording import record

    try:
        found = [record(Path.cwd(), name) for name in stacks or ["dev", "prod"]]
    except ConfigError as error:
        print_line(error.report())
        raise typer.Exit(1) from None
    except CommandError as error:
        print_line(str(error))
        raise typer.Exit(1) from None
    except UnknownStackError as error:
        print_line(f"vt iam: {error}")
        raise typer.Exit(2) from None
    show = {
        IamFormat.TABLE: tables.as_table,
        IamFormat.JSON: tables.as_json,
        IamFormat.MARKDOWN: tables.as_markdown,
    }[format_]
    typer.echo(show(found).rstrip("\n"))
