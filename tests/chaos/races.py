"""Runs several ``up`` at once, each on a copy of the same state, without a lock."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.arena import PULUMI, SECONDS, STACK, Arena


@dataclass(frozen=True)
class Race:
    """The number of parallel runs, and the problem; empty if they agree on one job."""

    runners: int
    problem: str


def race(arena: Arena, runners: int, job: str) -> Race:
    """Start all runs at once; each may need a second try, as its message says."""
    arena.reset()
    request_id = arena.request_id(job)
    places = [arena.folder / f"backend-{number}" for number in range(runners)]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(arena.home.pulumi, place)
    waiting = list(places)
    for _ in range(2):
        started = [(place, _up(arena, place, job)) for place in waiting]
        waiting = [place for place, process in started if process.wait(SECONDS)]
        if not waiting:
            break
    ids = {arena.in_state(_checkpoint(place)).get(request_id, "none") for place in places}
    submitted = {found.job_id for found in arena.submitted(request_id)}
    cancelled = arena.cancelled_trials()
    if not waiting and len(ids) == 1 and ids == submitted and not cancelled:
        return Race(runners, "")
    words = f"{len(waiting)} failed, states {sorted(ids)}, submitted {sorted(submitted)}"
    words += f", trials cancelled {cancelled}" if cancelled else ""
    return Race(runners, words)


def _checkpoint(place: Path) -> Path:
    return place / ".pulumi" / "stacks" / "chaos" / f"{STACK}.json"


def _up(arena: Arena, place: Path, job: str) -> subprocess.Popen[bytes]:
    env = arena.env | {"CHAOS_JOBS": job, "PULUMI_BACKEND_URL": f"file://{place}"}
    return subprocess.Popen(
        [PULUMI, "up", "-s", STACK, "-y", "--skip-preview", "--non-interactive"],
        cwd=arena.project, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
