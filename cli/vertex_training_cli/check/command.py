"""The command line of ``vt check``. Exit code: 0 clean, 1 mistakes, 2 it could not run."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CheckUnavailableError
from vertex_training.secret_rules.redaction import masked
from vertex_training_cli.check import checking, fixing, machine_reports
from vertex_training_cli.check.report import FileReport, text_lines
from vertex_training_cli.console import plain
from vertex_training_cli.engine import paths
from vertex_training_cli.status import print_line

#: How often files are looked at. An editor that saves twice within it is checked once.
SECONDS: Final = 0.3
#: Files below a folder that are looked at.
MAX_FILES: Final = 2_000

#: File -> when it was changed, and its size.
Snapshot = dict[str, tuple[int, int]]


class FindingFormat(StrEnum):
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
StackName = Annotated[
    str, typer.Option("--stack", "-s", help="Judge against this stack (Pulumi.STACK.yaml).")
]
FormatOption = Annotated[
    FindingFormat,
    typer.Option("--format", "-f", metavar="FORMAT", help="text, json, sarif or github."),
]
ShowAll = Annotated[
    bool, typer.Option("--all", "-a", help="Show notes as well as errors and warnings.")
]
Fix = Annotated[
    bool, typer.Option("--fix", help="Mend what is certain in the files; shows the diff.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --fix: show the diff, write nothing.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Check again whenever a file changes.")]
ListRules = Annotated[
    bool, typer.Option("--rules", help="List every rule instead, with its source.")
]


def check(
    files: Files = None,
    stack: StackName = "",
    format_: FormatOption = FindingFormat.TEXT,
    show_all: ShowAll = False,
    ask_registries: AskRegistries = False,
    fix: Fix = False,
    dry_run: DryRun = False,
    watch: Watch = False,
    list_rules: ListRules = False,
) -> None:
    """Find every mistake in job files that can be known before they are sent.

    Examples: `vt check --fix --dry-run`, `kustomize build jobs | vt check -`.

    Exit code: 0 clean (there may be warnings), 1 mistakes, 2 it could not run.
    """
    _accept_any_name()
    if list_rules:
        _list_rules(format_)
        return
    _run(Task(files or [], stack, format_, show_all, ask_registries, fix, dry_run, watch))


@dataclass(frozen=True, slots=True)
class Task:
    """What the command line asks for."""

    files: list[str]
    stack: str
    format: FindingFormat
    show_all: bool
    ask_registries: bool
    fix: bool
    dry_run: bool
    watch: bool

    def ensure_possible(self) -> None:
        """Refuse what cannot be combined.

        Raises:
            CheckUnavailableError: two options exclude one another, or one needs another.
        """
        if self.ask_registries and not self.stack:
            raise CheckUnavailableError("--registry needs --stack: images are a stack's")
        if self.dry_run and not self.fix:
            raise CheckUnavailableError("--dry-run belongs to --fix")
        if self.fix and self.watch:
            raise CheckUnavailableError("choose one of --fix and --watch")
        if self.fix and self.format is not FindingFormat.TEXT:
            raise CheckUnavailableError("--fix shows a diff: it takes no --format")
        if (self.fix or self.watch) and "-" in self.files:
            what = "--fix" if self.fix else "--watch"
            raise CheckUnavailableError(f"{what} is for files, not for standard input")


def _run(task: Task) -> None:
    """Do it; the exit code is that of the command."""
    task.ensure_possible()
    if task.watch:
        _watch(task)
    if task.fix:
        _fix(task)
    if not _check(task):
        raise typer.Exit(1)


def _check(task: Task) -> bool:
    """Check once and print; whether there are no mistakes."""
    found = _whole_reports(task.files, task.stack, ask_registries=task.ask_registries)
    _print_reports(
        found if task.show_all else [report.without_notes() for report in found], task.format
    )
    return not any(report.count("error") for report in found)


def _fix(task: Task) -> None:
    """Mend files and show the diff; what is left is reported as ever."""
    count = 0
    for fixed in fixing.fix_all(task.files, task.stack):
        for line in fixed.diff():
            print(masked(plain(line.rstrip("\r\n"))))
        count += fixed.count
        if fixed.count and not task.dry_run:
            fixed.write()
    mended = f"{count} mistake{'' if count == 1 else 's'}"
    if count:
        hint = "Nothing is written: --dry-run. Mendable" if task.dry_run else "Mended"
        print_line(f"{hint}: {mended}.")


def _watch(task: Task) -> None:
    """Check after each change until Ctrl-C, which is exit code 130."""

    def check_once() -> None:
        try:
            _check(task)
        except CheckUnavailableError as reason:  # the next change may mend it
            print_line(f"vt check: {reason}")
        print_line(f"[{time.strftime('%H:%M:%S')}] waiting for changes; Ctrl-C ends")

    root = paths.root_of(Path.cwd())
    watch_files(lambda: watched(task.files, root, task.stack), check_once)


def _accept_any_name() -> None:
    """A file's name may hold any byte, and a terminal may not speak UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _whole_reports(arguments: list[str], stack: str, *, ask_registries: bool) -> list[FileReport]:
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


def _print_reports(reports: list[FileReport], format_: FindingFormat) -> None:
    if format_ is FindingFormat.JSON:
        print(machine_reports.as_json(reports))
    elif format_ is FindingFormat.SARIF:
        print(machine_reports.as_sarif(reports))
    elif format_ is FindingFormat.GITHUB:
        for line in machine_reports.as_workflow_commands(reports):
            print(line)
    else:
        color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for line in text_lines(reports, color=color):
            print(line)


def _list_rules(format_: FindingFormat) -> None:
    rows = machine_reports.all_rules()
    if format_ is FindingFormat.TEXT:
        for line in machine_reports.rules_as_text(rows):
            print(line)
    elif format_ is FindingFormat.JSON:
        print(machine_reports.rules_as_json(rows))
    else:
        print_line(f"vt check: --rules has no format {format_.value}: use text or json")
        raise typer.Exit(2)


def watched(arguments: Iterable[str], root: Path | None, stack: str) -> Iterator[Path]:
    """The files whose change is a reason to check again: job files, stack files, packages."""
    given = [Path(argument) for argument in arguments]
    if root is not None and (stack or not given):
        yield from root.glob("Pulumi*.yaml")
        given.append(root / "jobs")
    for path in given:
        yield from _inside(path)


def _inside(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for number, found in enumerate(path.rglob("*")):
        if number >= MAX_FILES:
            return
        if "__pycache__" not in found.parts:
            yield found


def snapshot(files: Iterable[Path]) -> Snapshot:
    """The files that are there, as they are now."""
    found: Snapshot = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:  # an editor has it between two names
            continue
        found[str(file)] = status.st_mtime_ns, status.st_size
    return found


def watch_files(files: Callable[[], Iterable[Path]], check: Callable[[], None]) -> None:
    """Call ``check`` now and after each change, until Ctrl-C."""
    while True:
        seen = snapshot(files())  # before: a change meanwhile is one more reason
        check()
        while snapshot(files()) == seen:
            time.sleep(SECONDS)
