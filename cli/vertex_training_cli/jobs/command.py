"""The command lines of ``vt jobs``."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.data import command as data
from vertex_training_cli.engine import stacks
from vertex_training_cli.jobs import compare, log, show, view, waiting
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import Format, FormatOption, SelectedStack, matching, seconds
from vertex_training_cli.status import print_status

#: Exit code when the deadline passed, as of timeout(1).
TIME_IS_UP: Final = 124
#: Exit code where a question cannot be asked.
REFUSED: Final = 2
_LABEL: Final = re.compile(r"([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})")
_REPLICA: Final = re.compile(r"workerpool[0-9]+-[0-9]+|task-[0-9]+")

JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="Name in the stack (newest run), id, or resource name.")
]


class AwaitedState(StrEnum):
    """What to wait for."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"


def _jobs_of(stack: str | None) -> Jobs:
    """The stack's jobs; for a local stack also the runs of scripts."""
    ref, scripts = stacks.find_with_scripts(stack)
    ref.connect_clients()
    return Jobs(ref, scripts)


def list_(
    stack: SelectedStack = None,
    all_stacks: Annotated[
        bool, typer.Option("--all", help="All jobs of the project and region, not this stack's.")
    ] = False,
    state: Annotated[
        list[str] | None, typer.Option(help="Only in this state, like running; repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Only with this label, like team=ml; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="With the numbers that each job wrote.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List jobs, newest first."""
    parts = [matching(_LABEL, text, "--label", "team=ml") for text in label or []]
    labels = {match[1]: match[2] for match in parts}
    states = [show.known_state(text) for text in state or []]
    found = _jobs_of(stack)
    chosen = found.list(all_stacks=all_stacks, states=states, labels=labels)
    reader = MetricsReader(found.ref.project, print_status) if metrics else None
    if metrics or found.ref.is_local:  # of trials: what the best one measured, what each ran on
        chosen[:limit] = [found.whole(job) for job in chosen[:limit]]
    as_json = format_ is Format.JSON
    show.table_of(chosen, found.ref, limit, as_json=as_json, log=print_status, reader=reader)


def show_(
    job: JobArgument, stack: SelectedStack = None, format_: FormatOption = Format.TEXT
) -> None:
    """Show one job with its metrics, or a tuning job with its trials.

    As JSON the whole message, as REST has it.
    """
    found = _jobs_of(stack)
    as_json = format_ is Format.JSON
    reader = None if as_json else MetricsReader(found.ref.project, print_status)
    chosen = found.find(job)
    show.one(chosen, found.of(chosen).ref, as_json=as_json, reader=reader)


def compare_(
    job: Annotated[list[str], typer.Argument(metavar="JOB...", help="As for `vt jobs show`.")],
    stack: SelectedStack = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with plots.")
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Compare jobs: parameters that differ, metrics, curves, duration, cost at list prices.

    Metrics are the numbers of metrics.json below the output directory, curves the columns of a
    file that ends in history.csv, and both TensorBoard's scalars; of a tuning job, those of its
    best trial.
    """
    found = _jobs_of(stack)
    reader = MetricsReader(found.ref.project, print_status)
    each = [compare.compared(found.find(one), found.ref.region, reader) for one in job]
    if html:
        _write_page(html, each)
    show.compared(each, as_json=format_ is Format.JSON)


def _write_page(file: Path, jobs: list[compare.Compared]) -> None:
    from vertex_training_cli.jobs import page  # loads the template engine

    try:
        file.write_text(page.render(jobs), encoding="utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
    print_status(f"wrote {file}")


def logs(
    job: JobArgument,
    stack: SelectedStack = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    replica: Annotated[
        str | None, typer.Option(help="Only of this one, like workerpool0-0.")
    ] = None,
    trial: Annotated[
        str | None, typer.Option(help="Only of this trial of a tuning job, like 3.")
    ] = None,
    tail: Annotated[int | None, typer.Option(min=1, help="Only the last lines.")] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Print what a job's replicas wrote. Exit code 0 whatever became of the job."""
    if replica:
        matching(_REPLICA, replica, "--replica", "workerpool0-0")
    if follow and tail:
        raise typer.BadParameter("choose one of --follow and --tail", param_hint="--tail")
    found = _jobs_of(stack)
    chosen = found.find(job)
    log.show(
        found.of(chosen), chosen, replica=replica, follow=follow, tail=tail,
        as_json=format_ is Format.JSON, log=print_status, trial=trial,
    )  # fmt: skip


def artifacts(
    job: JobArgument,
    folder: Annotated[
        Path | None, typer.Argument(help="Fetch them into this folder; without it: list them.")
    ] = None,
    stack: SelectedStack = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace files that differ from the bucket's.")
    ] = False,
) -> None:
    """List what a job wrote below its output directory, or fetch it."""
    found = _jobs_of(stack)
    chosen = found.find(job)
    where = view.spec_of(chosen).base_output_directory.output_uri_prefix
    if not where:
        hint = "baseOutputDirectory in its file gives it one"
        raise CommandError(f"job {job} has no output directory.", hint)
    if folder is None:
        data.ls(where, stack)
    else:
        data.pull(where, folder, stack, replace=replace)


def wait(
    job: Annotated[list[str], typer.Argument(metavar="JOB...", help="As for `vt jobs show`.")],
    stack: SelectedStack = None,
    goal: Annotated[
        AwaitedState, typer.Option("--for", metavar="GOAL", help="running or succeeded.")
    ] = AwaitedState.SUCCEEDED,
    deadline: Annotated[str, typer.Option(help="How long: 90s, 30m, 2h, 1d.")] = "1h",
) -> None:
    """Wait for jobs, all at once; progress goes to stderr.

    Exit code: 0 they got there, 1 one ended otherwise, 124 time was up. A job is never touched:
    Ctrl-C ends the waiting alone.
    """
    limit = seconds(deadline, "--deadline")
    found = _jobs_of(stack)
    result = waiting.wait_for([found.find(one) for one in job], found, goal.value, limit)
    for text in result.messages:
        print_status(text)
    if result.failed:
        raise typer.Exit(1)
    if result.messages:
        raise typer.Exit(TIME_IS_UP)


def cancel(
    job: Annotated[list[str], typer.Argument(metavar="JOB...", help="As for `vt jobs show`.")],
    stack: SelectedStack = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Cancel jobs; asks first, and without a terminal wants --yes. Ended jobs are left alone."""
    found = _jobs_of(stack)
    chosen = [found.find(one) for one in job]
    live = [one for one in chosen if not view.has_ended(one)]
    for one in chosen:
        if view.has_ended(one):
            print_status(f"job {view.title(one)} ({view.job_id(one)}) has ended: {view.state(one)}")
    if live and not yes:
        _confirm([f"{view.title(one)} ({view.job_id(one)})" for one in live])
    for one in live:
        found.cancel(one)
        print_status(f"job {view.title(one)} ({view.job_id(one)}): asked to cancel")


def _confirm(names: list[str]) -> None:
    if not sys.stdin.isatty():
        print_status("nobody can be asked here: add --yes. Nothing was cancelled.")
        raise typer.Exit(REFUSED)
    try:
        agreed = typer.confirm(f"Cancel {', '.join(names)}?", err=True)
    except typer.Abort:  # Ctrl-C at the question
        raise KeyboardInterrupt from None
    if not agreed:
        print_status("nothing was cancelled")
        raise typer.Exit(1)
