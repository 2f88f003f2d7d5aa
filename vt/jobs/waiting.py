"""`vt jobs wait`: the wait of the program, from a terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.customjob.google import job_service as client
from infra.customjob.google import logs
from infra.customjob.protocol.waiting import Goal, Wait, WaitPorts, wait_for_job
from infra.errors import OperatorError, WaitDeadlineError
from vt.jobs import view
from vt.jobs.service import Jobs

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob


@dataclass(frozen=True)
class Outcomes:
    """What is to be said of the jobs that did not get there; nothing if all did."""

    told: tuple[str, ...]
    failed: bool
    """Whether one ended otherwise, or could not be asked; else time was up."""


def wait_for(chosen: Sequence[CustomJob], jobs: Jobs, goal: Goal, deadline: float) -> Outcomes:
    """Wait for all of them at once."""
    where = jobs.where
    service = client.connect(where.project, where.region)

    def tail(name: str, count: int) -> list[str]:
        found = logs.connect(where.project).tail(name.rpartition("/")[2], count)
        return [line.text for line in found]

    async def one(job: CustomJob, say: Callable[[str], None]) -> OperatorError | None:
        number = job.labels.get("run", "")  # another's job may have any text there
        run = int(number) if number.isdecimal() else 1
        try:
            await wait_for_job(
                Wait(view.title(job), run, goal, deadline),
                job.name,
                WaitPorts(service.get, tail, say),
            )
        except OperatorError as error:
            return error
        return None

    async def all_(say: Callable[[str], None]) -> list[OperatorError | None]:
        return await asyncio.gather(*(one(job, say) for job in chosen))

    with _progress() as say:
        errors = [error for error in asyncio.run(all_(say)) if error]
    failed = any(not isinstance(error, WaitDeadlineError) for error in errors)
    return Outcomes(tuple(str(error) for error in errors), failed)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Lines on stderr, on a terminal above a line that moves: something is going on."""
    from rich.console import Console

    out = Console(stderr=True, highlight=False)
    if not out.is_terminal:
        yield lambda text: print(f"vt: {text}", file=sys.stderr, flush=True)
        return
    with out.status("waiting; Ctrl-C ends the waiting, not the job"):
        yield lambda text: out.print(text, markup=False)
