"""The command line of ``vt check``. Exit code: 0 clean, 1 mistakes, 2 it could not run."""

from __future__ import annotations

import io
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.errors import CheckUnavailableError
from vt.status import print_line

if TYPE_CHECKING:  # imported where it is used: `vt --help` needs none of it
    from vt.check.report import FileReport


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


Files = Annotated[
    list[str] | None,
    typer.Argument(
        help="Job files, folders of them, or - for standard input. Without any: all jobs of "
        "the stack, or jobs/*.yaml.",
        metavar="FILES",
    ),
]
AskRegistries = Annotated[
    bool,
    typer.Option(
        "--registry",
        help="With --stack: look the pinned images up in their registries (network).",
    ),
]


def check(
    files: Files = None,
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="Judge against this stack (Pulumi.STACK.yaml).")
    ] = "",
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="How findings are told.")
    ] = Format.TEXT,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Show notes as well as errors and warnings.")
    ] = False,
    ask_registries: AskRegistries = False,
    list_rules: Annotated[
        bool, typer.Option("--rules", help="List every rule instead, with its source.")
    ] = False,
) -> None:
    """Find every mistake in job files that can be known before they are sent.

    Exit code: 0 clean (there may be warnings), 1 mistakes, 2 it could not run.
    """
    _accept_any_name()
    if list_rules:
        _list_rules(format_)
        return

    try:
        if ask_registries and not stack:
            raise CheckUnavailableError("--registry needs --stack: images are a stack's")
        found = _whole_reports(files or [], stack, ask_registries=ask_registries)
        reports = found if show_all else [report.without_notes() for report in found]
    except CheckUnavailableError as reason:
        print_line(f"vt check: {reason}")
        raise typer.Exit(2) from None
    _print_reports(reports, format_)
    if any(report.count("error") for report in reports):
        raise typer.Exit(1)


def _accept_any_name() -> None:
    """A file's name may hold any byte, and a terminal may not speak UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _whole_reports(arguments: list[str], stack: str, *, ask_registries: bool) -> list[FileReport]:
    from vt.check import checking
    from vt.engine import paths

    root = paths.root_of(Path.cwd())
    if stack:
        if root is None:
            raise CheckUnavailableError("no Pulumi.yaml here or above: --stack needs a project")
        files = checking.files_of(arguments) if arguments else []
        return checking.check_in_stack(files, root, stack, ask_registries=ask_registries)
    if not arguments:
        jobs = (root or Path.cwd()) / "jobs"
        if not jobs.is_dir():
            raise CheckUnavailableError("name the files to check: there is no folder jobs here")
        arguments = [paths.from_here(jobs)]
    return [checking.check_without_stack(file) for file in checking.files_of(arguments)]


def _print_reports(reports: list[FileReport], format_: Format) -> None:
    from vt.check import json_report, text_report

    if format_ is Format.JSON:
        print(json_report.as_json(reports))
    elif format_ is Format.SARIF:
        from vt.check import sarif

        print(sarif.as_sarif(reports))
    elif format_ is Format.GITHUB:
        from vt.check import workflow_commands

        for line in workflow_commands.as_workflow_commands(reports):
            print(line)
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for line in text_report.lines(reports, color=color):
            print(line)


def _list_rules(format_: Format) -> None:
    from vt.check import listing

    rows = listing.all_rules()
    if format_ is Format.TEXT:
        for line in listing.as_text(rows):
            print(line)
    elif format_ is Format.JSON:
        print(listing.as_json(rows))
    else:
        print_line(f"vt check: --rules has no format {format_.value}: use text or json")
        raise typer.Exit(2)
