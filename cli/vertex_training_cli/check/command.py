"""Command line of ``vt check``. Exit code: 0 clean, 1 mistakes, 2 no check possible.

``--fix`` tries each fix on a copy and keeps the fix if its problem disappears. A guessed fix, such
as a GPU without a memory size, must also cause no new error.
"""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from vertex_training.errors import CheckUnavailableError, Problem, counted
from vertex_training.located_yaml.editing import mended
from vertex_training.secret_rules.redaction import masked
from vertex_training_cli.check import checking
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
from vertex_training_cli.engine.paths import from_here, link_out
from vertex_training_cli.process import configure_streams

if TYPE_CHECKING:  # Without a stack, pydantic is not imported.
    from vertex_training.stack import Stack

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
    for fixed in fix_all(files, stack):
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


#: Maximum number of fixes in one file. Each fix is verified by a new check of the file.
MAX_MENDS: Final = 100
#: Byte order mark, which some editors add.
BOM: Final = b"\xef\xbb\xbf"

#: Function that returns the problems of a file's content.
Judge = Callable[[bytes], Sequence[Problem]]


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file with its content before and after the fixes."""

    file: str
    before: bytes
    after: bytes
    count: int

    def diff(self) -> Iterator[str]:
        """Yield the lines of a unified diff; no lines for an unchanged file."""
        before, after = (
            part.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
            for part in (self.before, self.after)
        )
        yield from difflib.unified_diff(before, after, self.file, self.file)

    def write(self) -> None:
        """Replace the file atomically, with the same permissions. A symbolic link is kept."""
        path = Path(os.path.realpath(os.path.abspath(self.file)))
        if link := link_out(Path(os.path.abspath(self.file))):
            raise CheckUnavailableError(
                f"{self.file}: {from_here(link)} is a link to a file outside the checkout"
            )
        try:
            if path.read_bytes() != self.before:
                raise CheckUnavailableError(
                    f"another program changed {self.file}. Run `vt check` again"
                )
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
                try:
                    new.write(self.after)
                    new.flush()
                    Path(new.name).chmod(path.stat().st_mode & 0o7777)
                    Path(new.name).replace(path)
                except BaseException:
                    Path(new.name).unlink(missing_ok=True)
                    raise
        except OSError as failed:
            raise CheckUnavailableError(f"{self.file}: {failed.strerror or failed}") from None


def fix(file: str, data: bytes, judge: Judge) -> FixedFile:
    """Return the file with all safe fixes applied."""
    mark, text = (BOM, data[3:]) if data.startswith(BOM) else (b"", data)
    count, problems = 0, list(judge(data))
    try:
        current = text.decode()
    except UnicodeDecodeError:
        return FixedFile(file, data, data, 0)
    refused = set[str]()
    while count < MAX_MENDS:
        step = _next(current, problems, refused)
        if step is None:
            break
        problem, candidate = step
        after = list(judge(mark + candidate.encode()))
        identities = {_identity(finding) for finding in after}
        is_certain = problem.mend is None or not problem.mend.guessed
        fewer = is_certain or _errors(after) < _errors(problems)
        if fewer and _identity(problem) not in identities:
            current, problems, count = candidate, after, count + 1
            refused.clear()
        else:
            refused.add(_identity(problem))
    return FixedFile(file, data, mark + current.encode(), count)


def _next(text: str, problems: Sequence[Problem], refused: set[str]) -> tuple[Problem, str] | None:
    for problem in problems:
        if problem.mend is None or _identity(problem) in refused:
            continue
        candidate = mended(text, problem.mend.at or problem.path, problem.mend)
        if candidate is not None:
            return problem, candidate
        refused.add(_identity(problem))
    return None


def _identity(problem: Problem) -> str:
    return f"{problem.path} {problem.rule} {problem.mend}"


def _errors(problems: Sequence[Problem]) -> int:
    return sum(problem.level == "error" for problem in problems)


def fix_all(arguments: Sequence[str], stack_name: str) -> Iterator[FixedFile]:
    """Yield files with safe fixes: the named files, or all files of the stack or project."""
    root, loaded = checking.project_of(stack_name), None
    if stack_name and root:
        reports = checking.stack_or_reports(root, stack_name)
        loaded = None if isinstance(reports, list) else reports
    for file in checking.files_to_check(arguments, root, loaded):
        yield fix(file, checking.read(file), judge_of(file, loaded))


def judge_of(file: str, loaded: Stack | None = None) -> Judge:
    """Return the function that returns this file's problems, with or without a stack."""
    job = checking.job(file)
    check = checking.check_content if loaded is None else loaded.check_other
    return lambda data: check(data, file, job).problems
