"""``vt jobs wait``, and the curve of a job below its log on a terminal while it trains."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.google import backends, logs
from vertex_training.customjob.protocol.waiting import Goal, Wait, WaitPorts, wait_for_job
from vertex_training.errors import OperatorError, WaitDeadlineError
from vertex_training_cli.console import plain
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import compare, deployed, view
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import Jobs, kind_of
from vertex_training_cli.status import print_line

if TYPE_CHECKING:
    from rich.console import Console

    from vertex_training.customjob.google.backends import BackendJobs
    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training_cli.jobs.service import Jobs


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
                connect_ladder=lambda: deployed.ladder_of(job, jobs.of(job).ref),
                connect_idle_stop=lambda: deployed.idle_stop_of(job, jobs.of(job).ref),
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
    with curve_of(jobs, chosen, "waiting; Ctrl-C ends the waiting, not the job") as out:
        if out is None:
            yield lambda text: print_line(f"vt: {text}")
        else:
            yield lambda text: out.print(redact(text), markup=False)


#: Seconds between two looks at a bucket of Google's, and at one on this machine.
_CLOUD_PAUSE: Final = 15.0
_LOCAL_PAUSE: Final = 1.0
#: Pauses are this many times as long as a look at least: long logs take a second to read.
_REST: Final = 10
#: Columns of a history, or TensorBoard scalars, that the line has, and characters of their names.
_CURVES: Final = 2
_NAME: Final = 24


def curve_line(curves: Mapping[str, Sequence[float]]) -> str:
    """The newest values of the first curves; empty without any.

    >>> curve_line({"loss": [1.0, 0.5], "accuracy": [0.1, 0.9]})
    'loss █▁ 1 → 0.5   accuracy ▁█ 0.1 → 0.9'
    """
    chosen = list(curves.items())[:_CURVES]
    return "   ".join(
        f"{plain(name)[:_NAME]} {compare.curves([values])[0]}" for name, values in chosen
    )


@contextmanager
def curve_of(jobs: Jobs, chosen: Sequence[AnyJob], waiting: str = "") -> Iterator[Console | None]:
    """While this lasts, show the curve of the first job that has one on the terminal.

    The console to print to meanwhile; None if this is no terminal. ``waiting`` stands there until
    a job wrote one. What cannot be read is no error: the
    command that shows the line goes on.
    """
    from rich.console import Console
    from rich.text import Text

    out, ended = Console(stderr=True, highlight=False), threading.Event()
    if not out.is_terminal:
        yield None
        return
    with out.status(Text(waiting)) as status:

        def show(text: str) -> None:
            status.update(Text(text))

        watch = threading.Thread(target=_watch, args=(jobs, chosen, show, ended), daemon=True)
        watch.start()
        try:
            yield out
        finally:
            ended.set()


def _watch(
    jobs: Jobs, chosen: Sequence[AnyJob], show: Callable[[str], None], ended: threading.Event
) -> None:
    reader = MetricsReader(jobs.ref.project, lambda _text: None)
    shortest = pause = _LOCAL_PAUSE if jobs.ref.is_local else _CLOUD_PAUSE
    while not ended.wait(pause):
        began = time.monotonic()
        for job in chosen:
            try:
                text = curve_line(reader.curves(job))
            except OperatorError:
                continue
            if text:
                show(text)
                break
        pause = max(shortest, _REST * (time.monotonic() - began))
