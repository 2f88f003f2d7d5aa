"""``vt jobs wait``: waits for jobs as the program does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vertex_training.customjob.google import backends, logs
from vertex_training.customjob.protocol.waiting import Goal, Wait, WaitPorts, wait_for_job
from vertex_training.errors import OperatorError, WaitDeadlineError
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import ladders, live, view
from vertex_training_cli.jobs.service import Jobs, kind_of
from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from vertex_training.customjob.google.backends import BackendJobs
    from vertex_training.customjob.google.job_service import AnyJob


@dataclass(frozen=True)
class WaitResult:
    """The result of a wait. ``messages`` are about the jobs that did not get there."""

    messages: tuple[str, ...]
    failed: bool
    """Whether a job ended otherwise, or could not be read. If not, the deadline passed."""


def wait_for(chosen: Sequence[AnyJob], jobs: Jobs, goal: Goal, deadline: float) -> WaitResult:
    """Wait for all jobs at once, until they reach ``goal`` or ``deadline`` seconds have passed."""

    def service(job: AnyJob) -> BackendJobs:
        ref = jobs.of(job).ref
        return backends.connect(ref.project, ref.region, kind_of(job))

    def tail(name: str, count: int) -> list[str]:
        job = jobs.get(name)
        found, ids = logs.connect(jobs.of(job).ref.project), service(job).log_ids(name)
        return [line.text for each in ids for line in found.tail(each, count)]

    async def one(job: AnyJob, log: Callable[[str], None]) -> OperatorError | None:
        number = view.run(job)  # another's job may have any text there
        run = int(number) if number.isdecimal() else 1
        try:
            ports = WaitPorts(
                service(job).get,
                tail,
                log,
                connect_ladder=lambda: ladders.ladder_of(job, jobs.of(job).ref),
                connect_idle_stop=lambda: ladders.idle_stop_of(job, jobs.of(job).ref),
            )
            await wait_for_job(Wait(view.title(job), run, goal, deadline), job.name, ports)
        except OperatorError as error:
            return error
        return None

    async def all_(log: Callable[[str], None]) -> list[OperatorError | None]:
        return await asyncio.gather(*(one(job, log) for job in chosen))

    with _progress(jobs, chosen) as log:
        errors = [error for error in asyncio.run(all_(log)) if error]
    failed = any(not isinstance(error, WaitDeadlineError) for error in errors)
    return WaitResult(tuple(str(error) for error in errors), failed)


@contextmanager
def _progress(jobs: Jobs, chosen: Sequence[AnyJob]) -> Iterator[Callable[[str], None]]:
    """Lines on stderr, on a terminal above a line that moves: the curve of the first job."""
    with live.curve_of(jobs, chosen, "waiting; Ctrl-C ends the waiting, not the job") as out:
        if out is None:
            yield lambda text: print_line(f"vt: {text}")
        else:
            yield lambda text: out.print(redact(text), markup=False)
