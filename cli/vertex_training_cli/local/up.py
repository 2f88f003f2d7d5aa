"""``vt local up``: starts the local cloud, runs ``pulumi up``, and waits for the jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.home.environment import environment
from localgcp.runner.executors import read_substitutes, read_wait, with_substitutes
from localgcp.tuning.records import TuningRecord, TuningTable, best_trial
from localgcp.tuning.searches import to_text
from vertex_training_cli.console import console, plain, show_facts, table
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.local import results
from vertex_training_cli.local.commands import GpuChoice, keep_gpu_choice, private_files
from vertex_training_cli.local.results import JobRecords, LocalJob, StackJob, log_file
from vertex_training_cli.status import print_status
from vertex_training_cli.up.command import bring_up

Report = Callable[[str], None]
SUCCEEDED: Final = "SUCCEEDED"


def up(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack to deploy.")] = "local",
    wait: Annotated[bool, typer.Option(help="Wait until all jobs of the stack have ended.")] = True,
    endpoints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Afterwards, deploy the models and endpoints of FILE, in stack STACK-endpoint.",
        ),
    ] = None,
    gpus: GpuChoice = None,
) -> None:
    """Start the local cloud, run `pulumi up`, wait for the jobs and show the results.

    If no file has changed, no job is submitted.

    Exit code: 0 if `pulumi up` and all jobs succeeded, else 1.
    """
    with private_files():
        home = Home.find()
        keep_gpu_choice(home, gpus)
        if endpoints is None:
            raise typer.Exit(run(home, stack, wait=wait, report=print_status))
        from vertex_training_cli.local import endpoint_form

        train = partial(run, home, wait=True, report=print_status, last=False)
        then = partial(_bring_up, home, report=print_status)
        code = endpoint_form.run(home, stack, endpoints, train, then)
        served = f"{stack}{endpoint_form.SUFFIX}"
        lists = [f"vt {command} list --stack {served}" for command in ("endpoints", "models")]
        show_next_steps([*lists, "vt local down"])
        raise typer.Exit(code)


def run(
    home: Home, stack: str, *, wait: bool, report: Report,
    only: Collection[str] | None = None, last: bool = True,
) -> int:  # fmt: skip
    """Return the exit code of pulumi if pulumi failed, 1 if a job did not succeed, else 0.

    With ``only``, other jobs are not awaited and not shown. With ``last``, print commands for the
    next steps.
    """
    if code := _bring_up(home, stack, report):
        return code
    where = stacks.find(stack, home.repo)
    state = results.read_state(home, where.pulumi_project, where.stack)
    jobs = JobRecords(home)
    shown_jobs = [job for job in state.jobs if only is None or job.name in only]
    if wait:
        watch(home, jobs, shown_jobs)
    rows = [(type_, str(count)) for type_, count in sorted(state.counts.items())]
    rows.append(("total", str(state.counts.total())))
    console().print()
    console().print(table(f"RESOURCES OF {stack}", "COUNT", rows=rows))
    where.connect_clients()
    code = _show_jobs(home, shown_jobs, jobs)
    if last:
        name = next((job.name for job in shown_jobs), "")
        logs = [f"vt jobs logs {name} --stack {stack}"] if name else []
        show_next_steps([*logs, f"vt jobs list --stack {stack}", "vt local down"])
    return code


def show_next_steps(commands: Sequence[str]) -> None:
    """Print commands for the next steps."""
    console().print()
    show_facts(console(), ("NEXT", ""), [("", command) for command in commands])


def _bring_up(home: Home, stack: str, report: Report) -> int:
    where = stacks.find(stack, home.repo)
    info = lifecycle.start(home, report)
    pulumi = PulumiCli(where.root, environment(home, info.ports))
    # A preview would double the time.
    return bring_up(where, pulumi, ["--yes", "--skip-preview"], report)


def _show_jobs(home: Home, wanted: Sequence[StackJob], jobs: JobRecords) -> int:
    out, failed = console(), 0
    for job in wanted:
        record = jobs.get(job.job_id)
        out.print()
        show_facts(out, ("JOB", job.name), _job_rows(home, job, record))
        if record and record.state.terminal and record.state.word != SUCCEEDED:
            failed += 1
    return 1 if failed else 0


def _job_rows(home: Home, job: StackJob, record: LocalJob | None) -> list[tuple[str, str]]:
    if record is None:
        return [("state", "record deleted"), ("id", job.job_id)]
    state = with_substitutes(record.state.word, read_substitutes(home, record.job_id))
    rows = [("state", state), ("id", record.job_id)]
    if reason := results.why(record) or read_wait(home, record.job_id):
        rows.append(("error" if record.error_message else "waits", reason))
    if isinstance(record, TuningRecord):
        return rows + _tuning_rows(home, record)
    if record.state.word == SUCCEEDED:
        numbers = results.metrics(record)
        rows += [(name, f"{value:.6g}") for name, value in numbers.items()]
        if where := results.artifacts(home, record):
            rows += [("artifacts", where[0]), ("", where[1])]
    return rows


def _tuning_rows(home: Home, tuning: TuningRecord) -> list[tuple[str, str]]:
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


_POLL_SECONDS: Final = 0.25
_FAILED_TAIL_LINES: Final = 20
_TAIL_BYTES: Final = 16_000


def watch(home: Home, jobs: JobRecords, wanted: Sequence[StackJob]) -> None:
    """Print each state of the jobs until all have ended or their records were deleted."""
    shown: dict[str, str] = {}

    def show(name: str, record: LocalJob) -> None:
        if shown.get(name) != record.state:
            replaced = read_substitutes(home, record.job_id) if record.state.terminal else []
            state = with_substitutes(record.state.word, replaced)
            print(f"job {name} ({record.job_id}): {state}", flush=True)
            shown[name] = record.state

    while live := _live_jobs(home, jobs, wanted):
        for name, record in live:
            show(name, record)
        time.sleep(_POLL_SECONDS)
    for job in wanted:
        if record := jobs.get(job.job_id):
            show(job.name, record)
            if record.error_message:
                print(f"\nend of the log of {job.name}:")
                print("\n".join(tail(home, record, _FAILED_TAIL_LINES)))


def tail(home: Home, record: LocalJob, lines: int) -> list[str]:
    """Return the last lines of the log of the job's first replica."""
    try:
        with log_file(home, record).open("rb") as log:
            log.seek(0, 2)
            log.seek(max(0, log.tell() - _TAIL_BYTES))
            written = [line.decode(errors="replace") for line in log]
    except FileNotFoundError:
        return []
    # A progress bar overwrites its line: only the last text of each line is shown.
    return [plain(line.rstrip("\r\n").rpartition("\r")[2]) for line in written][-lines:]


def _live_jobs(
    home: Home, jobs: JobRecords, wanted: Sequence[StackJob]
) -> list[tuple[str, LocalJob]]:
    running = [(job.name, record) for job in wanted if (record := jobs.get(job.job_id))]
    live = [(name, record) for name, record in running if not record.state.terminal]
    if live and lifecycle.running(home) is None:
        raise LocalCloudError(
            f"the local cloud stopped while {len(live)} jobs were running.",
            "start the local cloud again with `vt local start`.",
        )
    return live
