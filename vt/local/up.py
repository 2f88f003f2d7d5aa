"""`vt local up`: start, `pulumi up`, wait for the stack's jobs, and a table at the end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from vt.local import lifecycle, pulumi_locks, results, stack_state
from vt.local.console import console, table
from vt.local.errors import LocalError
from vt.local.home import Home
from vt.local.pulumi_shim import find_project
from vt.local.shell import environment
from vt.local.stack_state import StackJob, StackState
from vt.local.vertex.records import JobRecord, JobTable, State
from vt.local.watch import watch

Say = Callable[[str], None]


def run(home: Home, stack: str, *, wait: bool, say: Say) -> int:
    """The exit code: pulumi's if it failed, 1 if a job did not succeed, else 0.

    Raises LocalError if there is no project here, the cloud does not start, or the stack is in use.
    """
    project = find_project(str(home.repo))
    if project is None:
        raise LocalError(f"there is no Pulumi.yaml in {home.repo} or above it.")
    info = lifecycle.start(home, say)
    env = environment(home, info.ports)
    pulumi_locks.clear_dead(home, stack, env, say)
    # No preview first: this is a rehearsal, and the preview would take as long again.
    command = [str(home.bin / "pulumi"), "up", "--yes", "--skip-preview", "--stack", stack]
    code = _run_pulumi(command, Path(project[0]), env)
    if code != 0:
        say(f"pulumi up failed with exit code {code}")
        return code
    state = stack_state.read(home, project[1], stack)
    if state.stale_creates:
        # The engine never drops them by itself, and warns at every later run.
        say(f"clearing {state.stale_creates} creations that a killed run left open: pulumi refresh")
        command[1:4] = ["refresh", "--yes", "--skip-preview", "--non-interactive"]
        command.append("--clear-pending-creates")
        if code := _run_pulumi(command, Path(project[0]), env):
            return code
    jobs = JobTable(home.database)
    if wait:
        watch(home, jobs, state.jobs)
    return _summary(home, stack, state, jobs, info.storage_port)


def _run_pulumi(command: list[str], cwd: Path, env: dict[str, str]) -> int:
    """Run it on this terminal. Ctrl-C reaches it by itself, and it must end in its own time.

    (`subprocess.run` would kill it a quarter of a second later, and leave its lock behind.)
    """
    with subprocess.Popen(command, cwd=cwd, env=env) as process:
        before = {
            signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
            signal.SIGTERM: signal.signal(
                signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT)
            ),
        }
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code  # as shells report a signal
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _summary(home: Home, stack: str, state: StackState, jobs: JobTable, storage_port: int) -> int:
    out = console()
    rows = [(type_, str(count)) for type_, count in sorted(state.counts.items())]
    rows.append(("total", str(state.counts.total())))
    out.print()
    out.print(table(f"RESOURCES OF {stack}", "COUNT", rows=rows))
    failed = 0
    for job in state.jobs:
        record = jobs.get(job.job_id)
        out.print()
        out.print(table("JOB", job.name, rows=_job_rows(home, job, record, storage_port)))
        if record and record.state.terminal and record.state is not State.SUCCEEDED:
            failed += 1
    return 1 if failed else 0


def _job_rows(
    home: Home, job: StackJob, record: JobRecord | None, storage_port: int
) -> list[tuple[str, str]]:
    if record is None:
        return [("state", "its record was deleted"), ("id", job.job_id)]
    rows = [("state", record.state.word), ("id", record.job_id)]
    if record.error_message:
        rows.append(("error", record.error_message))
    if record.state is State.SUCCEEDED:
        numbers = results.metrics(record, storage_port)
        rows += [(name, f"{value:.6g}") for name, value in numbers.items()]
        if where := results.artifacts(home, record):
            rows += [("artifacts", where[0]), ("", where[1])]
    return rows
