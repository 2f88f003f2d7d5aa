"""The command line of ``vt init``. Exit code: 0 in order, 1 with conflicts, 2 not made."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from localgcp import git
from vertex_training.errors import CommandError
from vertex_training_cli.init import answers as answers_
from vertex_training_cli.init import changes, manifest, offering, staging
from vertex_training_cli.init.answers import Answers, EnvironmentAnswers, placeholders
from vertex_training_cli.status import print_line

Directory = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Where it goes; the current folder if absent.")
]
Name = Annotated[str, typer.Option("--name", help="Name of the Pulumi project: acme-training.")]
Project = Annotated[str, typer.Option("--project", help="Id of the Google Cloud project.")]
Number = Annotated[str, typer.Option("--number", help="Number of that project.")]
Region = Annotated[str, typer.Option("--region", help="Where everything is made.")]
Team = Annotated[
    str, typer.Option("--team", help="Label of all resources, and team of the code owners.")
]
Submitter = Annotated[
    list[str] | None,
    typer.Option("--submitter", help="IAM member that may run jobs; repeatable."),
]
GitHub = Annotated[
    str, typer.Option("--github", help="Where it will be kept.", metavar="OWNER/NAME")
]
NewEnvironment = Annotated[
    str, typer.Option("--environment", help="Add this environment to the repository around DIR.")
]
Before = Annotated[
    str, typer.Option("--before", help="With --environment: it is deployed before that one.")
]
Write = Annotated[
    bool, typer.Option("--write", help="With --environment: write, after showing the diff.")
]


def init(
    directory: Directory = None,
    name: Name = "",
    project: Project = "",
    project_number: Number = "",
    region: Region = "",
    team: Team = "",
    submitter: Submitter = None,
    github: GitHub = "",
    environment: NewEnvironment = "",
    before: Before = "",
    write: Write = False,
) -> None:
    """Make a repository of stack files with one job, or add an environment to one.

    What is not said is asked on a terminal. Nothing that is there is overwritten. With
    --environment, a diff is shown, and without --write nothing is written. Exit code: 0 in order, 1
    written with conflicts, 2 not made.
    """
    given = {
        "name": name, "project": project, "projectNumber": project_number, "region": region,
        "team": team, "submitters": list(submitter or ()), "github": github,
    }  # fmt: skip
    if environment:
        _add_environment(directory or Path(), environment, before, given, write=write)
    else:
        _ensure_no_options(before=before, write=write)
        _create(directory or Path(), given)


def _ensure_no_options(*, before: str, write: bool) -> None:
    if before or write:
        option = "--before" if before else "--write"
        raise CommandError(f"{option} goes with --environment.", "leave it out")


def _create(directory: Path, given: dict[str, Any]) -> None:
    """A new repository, in a folder that may be there."""
    root = directory.absolute()
    if staging.resume(root, write=True):
        print_line(staging.COMPLETED)
        return
    _ensure_new(root)
    answers = _answers(root, given)
    made_folder = _make(root)
    try:
        proposal = changes.begin(root, answers, offering.release())
        proposal.write()
    except BaseException:
        if made_folder:
            _remove_if_empty(root)
        raise
    for remark in proposal.remarks:
        print_line(f"note: {remark}.")
    for remark in _advice(root, answers):
        print_line(f"note: {remark}.")
    print_line(f"Made {len(proposal.changes)} files in {directory}.")
    go = "" if root == Path.cwd() else f"cd {shlex.quote(str(directory))} && "
    wheels = f"the wheels of this release into {directory / 'wheels'} (README.md)"
    print_line(f"Next: {wheels}, then {go}git init && make local")


def _ensure_new(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise CommandError(f"{root} is a file.", "name a folder")
    if (root / manifest.NAME).exists():
        what = f"{root} was made by `vt init` already."
        raise CommandError(what, "`vt init --environment NAME` adds to it, `vt upgrade` renews it")


def _make(root: Path) -> bool:
    """Make the folder; whether it was not there."""
    if root.is_dir():
        return False
    try:
        root.mkdir(parents=True)
    except OSError as error:
        raise CommandError(f"{root} cannot be made: {error.strerror}.") from None
    return True


def _remove_if_empty(root: Path) -> None:
    with suppress(OSError):
        root.rmdir()


def _answers(root: Path, given: dict[str, Any]) -> Answers:
    """The answers: what was given, then what a person says, then what is usual."""
    said = dict(given)
    if _is_terminal():
        _ask(said, "name", "Name of the project", answers_.name_from(root.name))
        _ask(said, "project", "Google Cloud project for dev", "")
        _ask(said, "projectNumber", "Its number", answers_.PLACEHOLDER_NUMBER)
        _ask(said, "region", "Region", answers_.USUAL_REGION)
        _ask(said, "team", "Team", answers_.USUAL_TEAM)
        _ask(said, "github", "Repository on GitHub", answers_.PLACEHOLDER_REPOSITORY)
        if not said["submitters"]:
            text = typer.prompt("Who may run jobs (group:…, user:…)", default="", err=True)
            said["submitters"] = text.replace(",", " ").split()
    return answers_.of_options(said, root.name)


def _ask(said: dict[str, Any], key: str, question: str, usual: str) -> None:
    if not said[key]:
        said[key] = typer.prompt(question, default=usual or None, err=True).strip()


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _advice(root: Path, answers: Answers) -> Iterator[str]:
    """What is not wrong, and will not do what one may expect."""
    if found := placeholders(answers):
        yield f"replace {' and '.join(found)} in the files before a deployment; README.md says how"
    above = git.checkout_around(root.parent)
    if above is not None and not (root / ".git").exists():
        yield f"{root} is inside of the repository {above}: GitHub runs workflows of its top only"


def _add_environment(
    directory: Path, name: str, before: str, given: dict[str, Any], *, write: bool
) -> None:
    root, release = offering.root_of(directory), offering.release()
    if staging.resume(root, write=write):
        print_line(staging.COMPLETED)
    old = manifest.read(root)
    offering.ensure_release(old, release)
    answers = old.answers.with_environment(_environment(name, given, old.answers), before)
    proposal = changes.update(root, old, answers, release)
    offering.ensure_no_new_file_is_there(proposal, old)
    next_ = f"`vt check --stack {name}`, then put its real ids into the files"
    offering.offer(proposal, write=write, done=f"Added {name}. Next: {next_}.")


def _environment(name: str, given: dict[str, Any], answers: Answers) -> EnvironmentAnswers:
    """The answers of one environment; what nobody said is derived of the first one."""
    first, said = answers.environments[0], dict(given)
    answers_.ensure_only_of_environment(said)
    if _is_terminal():
        _ask(
            said,
            "project",
            f"Google Cloud project for {name}",
            answers_.project_like(first.project, name),
        )
        _ask(said, "projectNumber", "Its number", answers_.PLACEHOLDER_NUMBER)
        _ask(said, "region", "Region", first.region)
    return answers_.environment_of_options(name, said, first)
