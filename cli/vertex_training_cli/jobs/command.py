"""The command lines of ``vt jobs``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.errors import (
    CommandError,
    OperatorError,
    WaitDeadlineError,
    did_you_mean,
)
from vertex_training_cli.console import (
    console,
    json_document,
    plain,
    print_status,
    show_facts,
    table,
)
from vertex_training_cli.data import cloud, download
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import deployed, log, view
from vertex_training_cli.jobs.metrics import MetricsReader, compared, comparison_table
from vertex_training_cli.jobs.service import Jobs, declared_elsewhere, kind_of
from vertex_training_cli.options import Format, FormatOption, SelectedStack, matching, seconds

#: Exit code after the deadline, like that of timeout(1).
TIME_IS_UP: Final = 124
#: Exit code if a confirmation cannot be requested.
REFUSED: Final = 2
_LABEL: Final = re.compile(r"([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})")
_REPLICA: Final = re.compile(r"workerpool[0-9]+-[0-9]+|task-[0-9]+")

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Job: name in the stack (newest run), id, or resource name."
    ),
]
JobsArgument = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="Jobs: names, ids or resource names.")
]


class AwaitedState(StrEnum):
    """States that ``vt jobs wait`` can wait for."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"


def _jobs_of(stack: str | None) -> Jobs:
    ref, scripts = stacks.find_with_scripts(stack)
    ref.connect_clients()
    return Jobs(ref, scripts)


def list_(
    stack: SelectedStack = None,
    all_stacks: Annotated[
        bool,
        typer.Option(
            "--all", help="List all jobs of the project and region, also of other stacks."
        ),
    ] = False,
    state: Annotated[
        list[str] | None,
        typer.Option(help="List only jobs in this state, such as running. Repeatable."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="List only jobs with this label, such as team=ml. Repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of jobs, newest first.")] = 20,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="Also show the numbers in each job's metrics.json.")
    ] = False,
    format_: FormatOption = Format.TEXT,
) -> None:
    """List jobs, newest first.

    Example: `vt jobs list --state running --label team=ml`.
    """
    parts = [matching(_LABEL, text, "--label", "team=ml") for text in label or []]
    labels = {match[1]: match[2] for match in parts}
    states = [known_state(text) for text in state or []]
    stack_jobs = _jobs_of(stack)
    chosen = stack_jobs.list(all_stacks=all_stacks, states=states, labels=labels)
    reader = MetricsReader(stack_jobs.ref.project) if metrics else None
    if metrics:  # Lists omit the trials of tuning jobs.
        chosen[:limit] = [stack_jobs.whole(job) for job in chosen[:limit]]
    as_json = format_ is Format.JSON
    print_jobs(chosen, stack_jobs.ref, limit, as_json=as_json, reader=reader)


def show_(
    job: JobArgument, stack: SelectedStack = None, format_: FormatOption = Format.TEXT
) -> None:
    """Show one job with its metrics, or a tuning job with its trials.

    With --format json, the command prints the complete message of the REST API. A running job with
    accelerators also has `acceleratorUse`. A job of the local cloud also has `substitutes` (the
    hardware and software that replace the requested ones) and `waits` (the reason why the job
    waits).
    """
    stack_jobs = _jobs_of(stack)
    as_json = format_ is Format.JSON
    reader = None if as_json else MetricsReader(stack_jobs.ref.project)
    chosen = stack_jobs.find(job)
    print_job(chosen, stack_jobs.of(chosen).ref, as_json=as_json, reader=reader)


def compare_(
    job: JobsArgument,
    stack: SelectedStack = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Compare parameters, metrics, durations and costs (at list prices) of jobs.

    Metrics are the numbers in metrics.json below the output directory. For a tuning job, the
    command uses the metrics of the best trial.

    Example: `vt jobs compare titanic run_titanic --format json`.
    """
    stack_jobs = _jobs_of(stack)
    reader = MetricsReader(stack_jobs.ref.project)
    sides = [compared(stack_jobs.find(one), stack_jobs.ref.region, reader) for one in job]
    if format_ is Format.JSON:
        print(json_document(sides))
        return
    heads, rows = comparison_table(sides)
    console().print(table(*heads, rows=[tuple(map(plain, row)) for row in rows]))


def logs(
    job: JobArgument,
    stack: SelectedStack = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Continue to print new lines until the job has ended."),
    ] = False,
    replica: Annotated[
        str | None, typer.Option(help="Print only lines of this replica, such as workerpool0-0.")
    ] = None,
    trial: Annotated[
        str | None, typer.Option(help="Print only lines of this trial of a tuning job, such as 3.")
    ] = None,
    tail: Annotated[
        int | None,
        typer.Option(min=1, help="Print only this number of lines at the end of the log."),
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> None:
    """Print the log of a job's replicas.

    The exit code is 0 even if the job failed.

    Example: `vt jobs logs titanic --replica workerpool1-0`.
    """
    if replica:
        matching(_REPLICA, replica, "--replica", "workerpool0-0")
    if follow and tail:
        raise typer.BadParameter(
            "--follow and --tail exclude each other: choose one", param_hint="--tail"
        )
    stack_jobs = _jobs_of(stack)
    chosen = stack_jobs.find(job)
    log.show(
        stack_jobs.of(chosen), chosen, replica=replica, follow=follow, tail=tail,
        as_json=format_ is Format.JSON, trial=trial,
    )  # fmt: skip


def artifacts(
    job: JobArgument,
    folder: Annotated[
        Path | None, typer.Argument(help="Download the files into this folder. Default: list them.")
    ] = None,
    stack: SelectedStack = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace local files that differ from files in the bucket."),
    ] = False,
) -> None:
    """List or download the files in a job's output directory.

    Example: `vt jobs artifacts titanic ./results --stack dev`.
    """
    stack_jobs = _jobs_of(stack)
    chosen = stack_jobs.find(job)
    where = view.spec_of(chosen).base_output_directory.output_uri_prefix
    if not where:
        hint = "set baseOutputDirectory in the job file"
        raise CommandError(f"job {job} has no output directory.", hint)
    client = cloud.connect(stack_jobs.of(chosen).ref, print_status)
    if folder is None:
        download.list_objects(client, cloud.place_of(where))
    else:
        download.download(client, cloud.place_of(where), folder, replace=replace)


def wait(
    job: JobsArgument,
    stack: SelectedStack = None,
    goal: Annotated[
        AwaitedState,
        typer.Option("--for", metavar="GOAL", help="State to wait for: running or succeeded."),
    ] = AwaitedState.SUCCEEDED,
    deadline: Annotated[str, typer.Option(help="Maximum time: 90s, 30m, 2h, 1d.")] = "1h",
) -> None:
    """Wait until jobs are running or have succeeded. Progress is printed to stderr.

    Example: `vt jobs wait titanic other --for running`.

    Exit code: 0 if all jobs reached the state, 1 if a job ended in another state, 124 after the
    deadline. Ctrl-C ends the command, and the jobs continue.
    """
    limit = seconds(deadline, "--deadline")
    stack_jobs = _jobs_of(stack)
    errors = log.wait_for([stack_jobs.find(one) for one in job], stack_jobs, goal.value, limit)
    for error in errors:
        print_status(str(error))
    if errors:
        is_late = all(isinstance(error, WaitDeadlineError) for error in errors)
        raise typer.Exit(TIME_IS_UP if is_late else 1)


def cancel(
    job: JobsArgument,
    stack: SelectedStack = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
) -> None:
    """Cancel jobs after confirmation. Without a terminal, --yes is required.

    Jobs that have ended are not changed.
    """
    stack_jobs = _jobs_of(stack)
    chosen = [stack_jobs.find(one) for one in job]
    live = [one for one in chosen if not view.has_ended(one)]
    for one in chosen:
        if view.has_ended(one):
            print_status(
                f"job {view.title(one)} ({view.job_id(one)}) has already ended: {view.state(one)}"
            )
    if live and not yes:
        _confirm([f"{view.title(one)} ({view.job_id(one)})" for one in live])
    for one in live:
        stack_jobs.cancel(one)
        print_status(f"job {view.title(one)} ({view.job_id(one)}): cancellation requested")


def _confirm(names: list[str]) -> None:
    if not sys.stdin.isatty():
        print_status("without a terminal, a cancellation requires --yes. No job was cancelled.")
        raise typer.Exit(REFUSED)
    try:
        agreed = typer.confirm(f"Cancel {', '.join(names)}?", err=True)
    except typer.Abort:  # Ctrl-C at the prompt
        raise KeyboardInterrupt from None
    if not agreed:
        print_status("no job was cancelled")
        raise typer.Exit(1)


#: Maximum number of metric columns in a list.
MOST_METRICS: Final = 4
#: Mark after the state of a job that ran on another machine type or Python version than requested.
MARK: Final = "*"


def known_state(text: str) -> str:
    """Return the API's name of a state, without the prefix ``JOB_STATE_``."""
    from vertex_training.customjob.google.vertex_api import JobState

    word = text.upper().removeprefix("JOB_STATE_")
    known = [state.name.removeprefix("JOB_STATE_") for state in JobState]
    if word not in known:
        hint = did_you_mean(word.lower(), [name.lower() for name in known])
        raise typer.BadParameter(f"unknown state {text!r}: {hint}", param_hint="--state")
    return word


def print_jobs(
    jobs: Sequence[AnyJob],
    ref: StackRef,
    limit: int,
    *,
    as_json: bool,
    reader: MetricsReader | None = None,
) -> None:
    """Print the newest ``limit`` jobs; with ``reader``, also their metrics."""
    now, listed = datetime.now(UTC), jobs[:limit]
    measured = reader.of_all(listed) if reader else {}
    if as_json:
        entries = [view.list_entry(job, now) | _local_facts(job, ref) for job in listed]
        for job, entry in zip(listed, entries, strict=True):
            entry |= {"metrics": measured[job.name]} if reader else {}
        print(json_document(entries))
        return
    if not jobs:
        print_status(f"no matching jobs{declared_elsewhere(ref, 'jobs', 'vt jobs list')}")
        return
    runs = view.run_texts(jobs)
    marks = {job.name for job in listed if substitutes_of(job, ref)}
    names = [*dict.fromkeys(name for metrics in measured.values() for name in metrics)]
    names = names[:MOST_METRICS]
    several = len({view.stack(job) for job in listed}) > 1
    cells = [view.row(job, now) for job in listed]
    for job, row in zip(listed, cells, strict=True):
        row |= {"run": runs[job.name], "stack": view.stack(job) if several else ""}
        row["job"] += " (tuning)" if view.is_tuning(job) else ""
        row["state"] += MARK if job.name in marks else ""
    filled = {key for row in cells for key, cell in row.items() if cell}
    used = [key for key in view.COLUMNS if key not in view.OPTIONAL or key in filled]
    rows = [
        (
            *(row.get(key, "") for key in used),
            *(view.shown(measured[job.name].get(name)) for name in names),
        )
        for job, row in zip(listed, cells, strict=True)
    ]
    console().print(table(*map(str.upper, used), *names, rows=rows))
    if marks:
        print_status(
            f"{MARK} The job ran on another machine or Python version than requested: see "
            "`vt jobs show`"
        )
    if len(jobs) > limit:
        print_status(f"{len(jobs) - limit} older jobs are not shown (raise --limit)")


def print_job(
    job: AnyJob, ref: StackRef, *, as_json: bool, reader: MetricsReader | None = None
) -> None:
    """Print the properties of a job; with ``reader``, also its metrics."""
    use = _accelerator_use(job, ref)
    local = _local_facts(job, ref) if ref.is_local else {}
    if as_json:
        added = {"acceleratorUse": use} if use else {}
        print(json_document(view.message(job) | added | local))
        return
    rows = view.facts(job, ref.project, ref.region, datetime.now(UTC))
    # `idleStop` cancels only jobs with accelerators. Reading the state takes time.
    if view.state(job) in ("CANCELLED", "CANCELLING") and view.has_accelerators(job):
        try:
            why = deployed.stop_reason(job, ref)
        except OperatorError as error:
            why = f"the reason is unknown: {error}"
        rows[1:1] = [("why", plain(why))] if why else []
    if use:
        rows.insert(1, ("accelerators", plain(view.use_text(use))))
    if substitutes := local.get("substitutes"):
        rows.insert(1, ("ran", "; ".join(substitutes)))
    if waits := local.get("waits"):
        rows.insert(1, ("waits", waits))
    if reader and not view.is_tuning(job):
        rows += [(name, view.shown(value)) for name, value in reader.metrics(job).items()]
    head = "TUNING JOB" if view.is_tuning(job) else "JOB"
    show_facts(console(), (head, view.title(job)), rows)
    if view.is_tuning(job):
        heads, lines = view.trial_table(view.message(job))
        console().print()
        console().print(table(*heads, rows=lines))


def _accelerator_use(job: AnyJob, ref: StackRef) -> dict[str, Any]:
    measured = kind_of(job) is CUSTOM_JOB and view.has_accelerators(job)
    if not measured or view.state(job) != "RUNNING":
        return {}
    from vertex_training.customjob.google.logs import read_utilization

    try:
        reading = read_utilization(ref.project, job.name, 60.0 * view.USE_MINUTES, account="")
    except OperatorError as error:
        return {"minutes": view.USE_MINUTES, "error": str(error)}
    return view.accelerator_use(reading.series)


def _local_facts(job: AnyJob, ref: StackRef) -> dict[str, Any]:
    waits = ""
    if ref.is_local and not view.has_ended(job):
        from localgcp.home import Home
        from localgcp.runner.executors import read_wait

        waits = read_wait(Home.find(cwd=ref.root), view.job_id(job))
    return {"substitutes": substitutes_of(job, ref), "waits": waits}


def substitutes_of(job: AnyJob, ref: StackRef) -> list[str]:
    """Return what the local cloud used instead of a job's machine and Python version."""
    if not ref.is_local:
        return []
    from localgcp.home import Home
    from localgcp.runner.executors import read_substitutes
    from localgcp.tuning.records import TuningTable

    home, ids = Home.find(cwd=ref.root), [view.job_id(job)]
    if view.is_tuning(job):  # Lists omit trials.
        ids = [trial.job_id for trial in TuningTable(home.database).trials(ids[0])]
    return list(dict.fromkeys(line for id_ in ids for line in read_substitutes(home, id_)))
