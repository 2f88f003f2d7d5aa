"""``vt local up``: start, ``pulumi up``, wait for the stack's jobs, and a table at the end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from localgcp import lifecycle
from localgcp.environment import environment
from localgcp.home import Home
from localgcp.orphaned_plugins import end_orphaned_plugins
from localgcp.runner import substitutes
from localgcp.tuning.parameters import to_text
from localgcp.tuning.records import TuningRecord, TuningTable, best_trial
from vertex_training_cli.console import console, show_facts, table
from vertex_training_cli.engine import stack_state, stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stack_state import StackJob, StackState
from vertex_training_cli.local import results
from vertex_training_cli.local.commands import private_files, report
from vertex_training_cli.local.results import JobLookup, JobRecords, LocalJob
from vertex_training_cli.local.watch import watch
from vertex_training_cli.up.flow import bring_up

Report = Callable[[str], None]
#: The state of success, of every kind of job.
SUCCEEDED: Final = "SUCCEEDED"


def up(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack to bring up.")] = "local",
    wait: Annotated[bool, typer.Option(help="Wait until all jobs of the stack ended.")] = True,
    images: Annotated[
        bool,
        typer.Option(
            "--images",
            help="Run jobs as images, in stack STACK-image, if this machine can build them.",
        ),
    ] = False,
    endpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Then make the models and endpoints of FILE, in stack STACK-endpoint.",
        ),
    ] = None,
) -> None:
    """Start the local cloud, run `pulumi up`, wait for the jobs, show what came out.

    Exit code 0 only if `pulumi up` and all jobs succeeded. An `up` that changes nothing submits
    nothing.
    """
    with private_files():
        home = Home.find()
        if endpoints is None:
            raise typer.Exit(run(home, stack, wait=wait, images=images, report=report))
        from vertex_training_cli.local import endpoint_form

        train = partial(run, home, wait=True, report=report)
        then = partial(_bring_up, home, report=report)
        raise typer.Exit(endpoint_form.run(home, stack, endpoints, train, then, report))


def run(
    home: Home, stack: str, *, wait: bool, report: Report,
    images: bool = False, only: Collection[str] | None = None,
) -> int:  # fmt: skip
    """The exit code: pulumi's if it failed, 1 if a job did not succeed, else 0.

    ``images``: jobs run as images where this machine can build them.
    ``only``: the jobs that are waited for, shown and counted; without it, all of the stack.

    Raises CommandError if there is no such stack here, the cloud does not start, or the stack is in
    use.
    """
    if images:
        from vertex_training_cli.local import image_form

        stack = image_form.choose(home, stack, lambda name: _bring_up(home, name, report), report)
    if code := _bring_up(home, stack, report):
        return code
    info, where = lifecycle.start(home, report), stacks.find(stack, home.repo)
    state = stack_state.read(home, where.pulumi_project, where.stack)
    jobs = JobRecords(home)
    wanted = [job for job in state.jobs if only is None or job.name in only]
    if wait:
        watch(home, jobs, wanted)
    _show_counts(stack, state)
    return _show_jobs(home, wanted, jobs, info.storage_port)


def _bring_up(home: Home, stack: str, report: Report) -> int:
    """Start the local cloud, and return the exit code of ``pulumi up``."""
    where = stacks.find(stack, home.repo)
    info = lifecycle.start(home, report)
    pulumi = PulumiCli(where.root, environment(home, info.ports))
    # No preview first: this is a rehearsal, and the preview would take as long again.
    # After a kill, a plugin of that run could go on beside the next one: `on_dead_lock` ends it.
    arguments = ["--yes", "--skip-preview"]
    return bring_up(
        where, pulumi, arguments, report, on_dead_lock=lambda: end_orphaned_plugins(home)
    )


def _show_counts(stack: str, state: StackState) -> None:
    out = console()
    rows = [(type_, str(count)) for type_, count in sorted(state.counts.items())]
    rows.append(("total", str(state.counts.total())))
    out.print()
    out.print(table(f"RESOURCES OF {stack}", "COUNT", rows=rows))


def _show_jobs(home: Home, wanted: Sequence[StackJob], jobs: JobLookup, storage_port: int) -> int:
    """A table for each job; 1 if one of them failed, else 0."""
    out, failed = console(), 0
    for job in wanted:
        record = jobs.get(job.job_id)
        out.print()
        show_facts(out, ("JOB", job.name), _job_rows(home, job, record, storage_port))
        if record and record.state.terminal and record.state.word != SUCCEEDED:
            failed += 1
    return 1 if failed else 0


def _job_rows(
    home: Home, job: StackJob, record: LocalJob | None, storage_port: int
) -> list[tuple[str, str]]:
    if record is None:
        return [("state", "its record was deleted"), ("id", job.job_id)]
    state = substitutes.marked(record.state.word, substitutes.read(home, record.job_id))
    rows = [("state", state), ("id", record.job_id)]
    if reason := results.why(record):
        rows.append(("error" if record.error_message else "waits", reason))
    if isinstance(record, TuningRecord):
        return rows + _tuning_rows(home, record)
    if record.state.word == SUCCEEDED:
        numbers = results.metrics(record, storage_port)
        rows += [(name, f"{value:.6g}") for name, value in numbers.items()]
        if where := results.artifacts(home, record):
            rows += [("artifacts", where[0]), ("", where[1])]
    return rows


def _tuning_rows(home: Home, tuning: TuningRecord) -> list[tuple[str, str]]:
    """How many trials are over, and the best one."""
    trials = TuningTable(home.database).trials(tuning.job_id)
    over = sum(trial.state.over for trial in trials)
    rows = [("trials", f"{over} of {tuning.max_trials}")]
    best = best_trial(tuning, trials)
    if best is None or best.measurement is None:
        return rows
    rows.append(("best trial", str(best.number)))
    rows += [(name, f"{value:.6g}") for name, value in best.measurement.metrics.items()]
    rows += [(name, to_text(value)) for name, value in best.parameters.items()]
    if base := tuning.output_prefix:
        folder = home.storage / base.removeprefix("gs://") / str(best.number)
        rows += [("artifacts", f"{base}/{best.number}/"), ("", str(folder))]
    return rows
