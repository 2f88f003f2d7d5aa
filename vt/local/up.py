"""``vt local up``: start, ``pulumi up``, wait for the stack's jobs, and a table at the end."""

from __future__ import annotations

from collections.abc import Callable

from localcloud import lifecycle
from localcloud.environment import environment
from localcloud.home import Home
from localcloud.orphaned_plugins import end_orphaned_plugins
from localcloud.vertex.records import JobRecord, JobState, JobTable
from vt.console import console, show_facts, table
from vt.engine import stack_state, stacks
from vt.engine.pulumi_cli import PulumiCli
from vt.engine.stack_state import StackJob, StackState
from vt.local import results
from vt.local.watch import watch
from vt.up.flow import bring_up

Report = Callable[[str], None]


def run(home: Home, stack: str, *, wait: bool, report: Report) -> int:
    """The exit code: pulumi's if it failed, 1 if a job did not succeed, else 0.

    Raises CommandError if there is no such stack here, the cloud does not start, or the stack is in
    use.
    """
    where = stacks.find(stack, home.repo)
    info = lifecycle.start(home, report)
    pulumi = PulumiCli(where.root, environment(home, info.ports))
    # No preview first: this is a rehearsal, and the preview would take as long again.
    # After a kill, a plugin of that run could go on beside the next one: `on_dead_lock` ends it.
    arguments = ["--yes", "--skip-preview"]
    code = bring_up(
        where, pulumi, arguments, report, on_dead_lock=lambda: end_orphaned_plugins(home)
    )
    if code:
        return code
    state = stack_state.read(home, where.pulumi_project, where.stack)
    jobs = JobTable(home.database)
    if wait:
        watch(home, jobs, state.jobs)
    return _summary(home, stack, state, jobs, info.storage_port)


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
        show_facts(out, ("JOB", job.name), _job_rows(home, job, record, storage_port))
        if record and record.state.terminal and record.state is not JobState.SUCCEEDED:
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
    if record.state is JobState.SUCCEEDED:
        numbers = results.metrics(record, storage_port)
        rows += [(name, f"{value:.6g}") for name, value in numbers.items()]
        if where := results.artifacts(home, record):
            rows += [("artifacts", where[0]), ("", where[1])]
    return rows
