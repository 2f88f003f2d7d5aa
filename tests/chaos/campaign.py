"""Kills the real CLI at random moments, and checks that no job is submitted twice or lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.arena import SECONDS, Arena
from tests.chaos.trial import RECOVERIES
from tests.chaos.ways import provider_of

JOBS_AT_ONCE: Final = 3
#: Before an undisturbed ``up`` settles everything: killed runs meet what killed runs left.
KILLS_IN_A_ROW: Final = 4


@dataclass
class Tally:
    """Results of a campaign."""

    seed: int
    kills: int = 0
    survived: int = 0
    """Commands that were done before their kill."""
    jobs: int = 0
    duplicates: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    """Trials of tuning jobs that go on, and that somebody cancelled."""
    recoveries: list[float] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [*self.duplicates, *self.lost, *self.cancelled]


def run(arena: Arena, kills: int, seed: int, on_round: Callable[[Tally], None]) -> Tally:
    """Kill at least ``kills`` running commands.

    Each moment is uniform over the time an undisturbed command takes here, which is measured again
    and again, since the machine is not always equally busy.
    """
    tally, chance = Tally(seed), random.Random(seed)
    usual = _undisturbed(arena, _jobs(seed, 0))
    number = 0
    while tally.kills < kills and not tally.problems:
        number += 1
        jobs = _jobs(seed, number)
        arena.reset()
        for _ in range(KILLS_IN_A_ROW):
            process = arena.up(jobs)
            try:
                process.wait(chance.uniform(0.02, usual))
                tally.survived += 1
            except subprocess.TimeoutExpired:
                _kill(arena, process, chance)
                tally.kills += 1
            arena.unlock()
        usual = (usual + _settle(arena, jobs, tally)) / 2
        on_round(tally)
    return tally


def _jobs(seed: int, number: int) -> str:
    return " ".join(f"r{seed}n{number}k{index}:1:1" for index in range(JOBS_AT_ONCE))


def _undisturbed(arena: Arena, jobs: str) -> float:
    arena.reset()
    began = time.monotonic()
    if arena.finish(arena.up(jobs)):
        raise AssertionError(f"an undisturbed up failed:\n{arena.said()}")
    return time.monotonic() - began


def _kill(arena: Arena, process: subprocess.Popen[str], chance: random.Random) -> None:
    """Kill the CLI, or (one time in three) its provider if it runs."""
    pid = provider_of(arena.home) if chance.random() < 1 / 3 else None
    try:
        os.kill(pid or process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()  # the provider ended first
    process.wait(SECONDS)


def _settle(arena: Arena, jobs: str, tally: Tally) -> float:
    """Run ``up`` until it succeeds, compare cloud and state, and return the time in seconds."""
    began = time.monotonic()
    for _ in range(RECOVERIES):
        arena.unlock()
        if arena.finish(arena.up(jobs)) == 0:
            break
    took = time.monotonic() - began
    tally.recoveries.append(took)
    arena.end_all()  # an orphan may have the last word
    state = arena.in_state()
    tally.cancelled += [f"trial {id_} was cancelled" for id_ in arena.cancelled_trials()]
    for job in jobs.split():
        request_id = arena.request_id(job)
        submitted, live = arena.submitted(request_id), arena.live(request_id)
        tally.jobs += 1
        if len(submitted) > 1:
            tally.duplicates.append(f"{request_id}: {[found.job_id for found in submitted]}")
        elif live != [state.get(request_id)]:
            tally.lost.append(f"{request_id}: live {live}, state {state.get(request_id)}")
    return took
