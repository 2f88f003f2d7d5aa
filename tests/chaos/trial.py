"""One kill at one point, and the checks after the next ``up``."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.chaos.arena import Arena, kill, wait_for
from tests.chaos.ways import WAYS, answered

#: How many times ``up`` may be run: the first may end in doubt, and say so.
RECOVERIES: Final = 3


def nothing(_arena: Arena, _job: str) -> None:
    """Prepare nothing."""


def up(arena: Arena, job: str) -> subprocess.Popen[str]:
    """Run the command to kill, for points without a command of their own."""
    return arena.up(job)


def one_live_job(arena: Arena, job: str, *, submissions: int = 1) -> str:
    """Return a problem unless the request has one active job, which is in the state."""
    request_id = arena.request_id(job)
    submitted = [found.job_id for found in arena.submitted(request_id)]
    if len(submitted) != submissions:
        return f"{len(submitted)} submissions of {request_id}: {submitted}"
    live, known = arena.live(request_id), arena.in_state().get(request_id)
    if live != [known]:
        return f"live {live}, in the state {known}"
    return ""


@dataclass(frozen=True)
class Point:
    """A point to kill at. ``hold`` is the fault that stops the command there."""

    name: str
    what: str
    hold: dict[str, Any]
    prepare: Callable[[Arena, str], None] = nothing
    command: Callable[[Arena, str], subprocess.Popen[str]] = up
    dropped: bool = False
    """The held request never arrives."""
    paused: bool = False
    """Die with the provider's answer in hand: the CLI is stopped, and has not read it."""
    meanwhile: Callable[[Arena, str], None] = nothing
    """What else happens before the next command."""
    recover: Callable[[Arena, str], subprocess.Popen[str]] = up
    check: Callable[[Arena, str], str] = field(default=one_live_job)


@dataclass(frozen=True)
class Outcome:
    """The result of a trial; ``problem`` is empty on success."""

    point: str
    way: str
    problem: str
    recovery_seconds: float
    ups: int


def run(arena: Arena, point: Point, way: str, job: str) -> Outcome:
    """Run the trial. ``job`` is `name:version:run`, with a name unused in this arena."""
    arena.reset()
    try:
        point.prepare(arena, job)
        _die(arena, point, way, job)
        point.meanwhile(arena, job)
        began = time.monotonic()
        ups = _recover(arena, point, job)
        took = time.monotonic() - began
        arena.no_faults()  # what is still held goes its way: an orphan may have the last word
        arena.end_all()
        problem = point.check(arena, job)
        if cancelled := arena.cancelled_trials():
            problem = problem or f"trials {cancelled} of a tuning job that goes on were cancelled"
        return Outcome(point.name, way, problem, took, ups)
    except AssertionError as error:
        return Outcome(point.name, way, f"{error}\n{arena.said()[-2000:]}", 0.0, 0)


def _die(arena: Arena, point: Point, way: str, job: str) -> None:
    name = job.partition(":")[0]
    held = arena.fault(**({"match": name} | point.hold), kind="hold")
    process = point.command(arena, job)
    wait_for(lambda: arena.table.get(held).held or _ended(arena, process), "the call to be held")
    if point.paused:
        os.kill(process.pid, signal.SIGSTOP)
        arena.table.release(held)
        wait_for(lambda: answered(process), "the provider's answer")
        WAYS_OF_THE_PAUSED[way](arena, process)
        kill(process, signal.SIGCONT)
    else:
        WAYS[way](arena, process)
        (arena.table.clear if point.dropped else arena.table.release)(held)
    arena.finish(process)


def _ended(arena: Arena, process: subprocess.Popen[str]) -> bool:
    if process.poll() is not None:
        raise AssertionError(f"the command ended with {process.returncode} before it was held")
    return False


def _recover(arena: Arena, point: Point, job: str) -> int:
    """Return the number of commands for the recovery; removes a lock of a dead process first."""
    for number in range(1, RECOVERIES + 1):
        arena.unlock()
        if arena.finish(point.recover(arena, job)) == 0:
            return number
    raise AssertionError(f"not recovered by {RECOVERIES} commands")


def _two_signals(arena: Arena, process: subprocess.Popen[str]) -> None:
    """Send both interrupts to the stopped CLI."""
    for number in (signal.SIGINT, signal.SIGTERM):
        kill(process, number)


WAYS_OF_THE_PAUSED: Final = WAYS | {
    "interrupt twice": _two_signals,
    "cancelled by CI": WAYS["cancelled by CI"],
}
