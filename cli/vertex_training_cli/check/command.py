"""Command line of ``vt check``. Exit code: 0 clean, 1 mistakes, 2 no check possible."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Literal

import typer

from vertex_training.errors import CheckUnavailableError, counted
from vertex_training.secret_rules.redaction import masked
from vertex_training_cli.check import checking, fixing
from vertex_training_cli.check.report import (
    FileReport,
    all_rules,
    as_json,
    as_workflow_commands,
    rules_as_json,
    rules_as_text,
    text_lines,
)
from vertex_training_cli.console import plain, print_line
from vertex_training_cli.process import configure_streams

FindingFormat = Literal["text", "json", "github"]
Files = Annotated[
    list[str] | None,
    typer.Argument(
        help="Job files, folders with job files, or - for standard input. Default: all jobs of "
        "the stack, or jobs/*.yaml.",
        metavar="FILES",
    ),
]
AskRegistries = Annotated[
    bool,
    typer.Option(
        "--registry",
        help="With --stack: also look up the pinned images in their registries (needs a network).",
    ),
]
StackName = Annotated[
    str,
    typer.Option(
        "--stack", "-s", help="Also check the job files against this stack (Pulumi.STACK.yaml)."
    ),
]
FormatOption = Annotated[
    FindingFormat,
    typer.Option("--format", "-f", metavar="FORMAT", help="Output format: text, json or github."),
]
ShowAll = Annotated[
    bool, typer.Option("--all", "-a", help="Show notes as well as errors and warnings.")
]
Fix = Annotated[
    bool,
    typer.Option("--fix", help="Correct unambiguous mistakes in the files, and show the diff."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --fix: only show the diff.")]
ListRules = Annotated[
    bool, typer.Option("--rules", help="List every rule with its source, without checking files.")
]


def check(
    files: Files = None,
    stack: StackName = "",
    format_: FormatOption = "text",
    show_all: ShowAll = False,
    ask_registries: AskRegistries = False,
    fix: Fix = False,
    dry_run: DryRun = False,
    list_rules: ListRules = False,
) -> None:
    """Check job files and report every mistake before a submission.

    Examples: `vt check --fix --dry-run`, `kustomize build jobs | vt check -`.

    Exit code: 0 no mistakes (warnings are possible), 1 mistakes, 2 the check could not run.
    """
    configure_streams("backslashreplace")  # File names may have any bytes.
    if list_rules:
        _list_rules(format_)
        return
    if ask_registries and not stack:
        raise CheckUnavailableError("--registry requires --stack, because a stack pins images")
    if dry_run and not fix:
        raise CheckUnavailableError("--dry-run requires --fix")
    if fix and format_ != "text":
        raise CheckUnavailableError("--fix shows a diff and cannot be combined with --format")
    named = files or []
    if fix and checking.STDIN in named:
        raise CheckUnavailableError("--fix cannot change standard input (-)")
    if fix:
        _fix(named, stack, dry_run=dry_run)
    root = checking.project_of(stack)
    if stack and root:
        chosen = checking.files_of(named) if named else []
        reports = checking.check_in_stack(chosen, root, stack, ask_registries=ask_registries)
    else:
        names = checking.files_to_check(named, root)
        reports = [checking.check_without_stack(name) for name in names]
    shown = reports if show_all else [report.without_notes() for report in reports]
    _print_reports(shown, format_)
    if any(report.count("error") for report in reports):
        raise typer.Exit(1)


def _fix(files: list[str], stack: str, *, dry_run: bool) -> None:
    count = 0
    for fixed in fixing.fix_all(files, stack):
        for line in fixed.diff():
            print(masked(plain(line.rstrip("\r\n"))))
        count += fixed.count
        if fixed.count and not dry_run:
            fixed.write()
    if count:
        action = "Not written (--dry-run), fixable" if dry_run else "Fixed"
        print_line(f"{action}: {counted(count, 'mistake')}.")


def _print_reports(reports: list[FileReport], format_: FindingFormat) -> None:
    if format_ == "json":
        print(as_json(reports))
    elif format_ == "github":
        for line in as_workflow_commands(reports):
            print(line)
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for line in text_lines(reports, color=color):
            print(line)


def _list_rules(format_: FindingFormat) -> None:
    rows = all_rules()
    if format_ == "text":
        for line in rules_as_text(rows):
            print(line)
    elif format_ == "json":
        print(rules_as_json(rows))
    else:
        print_line(f"vt check: --rules does not support format {format_}. Use text or json")
        raise typer.Exit(2)
