"""``vt jobs wait``: waits for jobs, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vertex_training.customjob.google import backends, logs
from vertex_training.customjob.protocol.waiting import Goal, Wait, WaitPorts, wait_for_job
from vertex_training.errors import OperatorError, WaitDeadlineError
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.service import Jobs, kind_of
from vertex_training_cli.status import print_status

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

    async def one(job: AnyJob) -> OperatorError | None:
        number = view.run(job)  # another's job may have any text there
        run = int(number) if number.isdecimal() else 1
        try:
            ports = WaitPorts(
                service(job).get,
                tail,
                print_status,
                connect_ladder=lambda: deployed.ladder_of(job, jobs.of(job).ref),
                connect_idle_stop=lambda: deployed.idle_stop_of(job, jobs.of(job).ref),
            )
            await wait_for_job(Wait(view.title(job), run, goal, deadline), job.name, ports)
        except OperatorError as error:
            return error
        return None

    async def all_() -> list[OperatorError | None]:
        return await asyncio.gather(*(one(job) for job in chosen))

    errors = [error for error in asyncio.run(all_()) if error]
    failed = any(not isinstance(error, WaitDeadlineError) for error in errors)
    return WaitResult(tuple(str(error) for error in errors), failed)
