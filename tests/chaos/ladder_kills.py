"""Kills processes that move a job through its rungs: one active rung, no lost job, in order.

The real provider and clients against the jobs and the storage of a local cloud, where every rung
but the last one finds no machines. ``python -m tests.chaos.ladder_kills`` is the process that forks
those that are killed (see ``serving_process``).
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from localgcp import lifecycle
from localgcp.faults.model import Fault
from localgcp.faults.table import clear, inject
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.chaos.arena import say_nothing
from tests.chaos.impatient import TIMING
from tests.chaos.serving import Worker
from tests.chaos.serving_process import main
from tests.fixture_project import ROOT, source_path
from vertex_training.customjob import provider
from vertex_training.customjob.google import intent_store, job_service, prerequisites, vertex_api
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.ports import Timing
from vertex_training.customjob.request.job_file import Submission, canonical, request_id_of

#: What a process loads before it forks.
LOADED: Final = (intent_store, job_service, prerequisites, vertex_api)
PROJECT, REGION, CONTROL = "local-ladder", "us-central1", "local-ladder-control"
RUNGS: Final = ("STANDARD", "SPOT", "FLEX_START")
#: Kills before a process is let go on, and seconds within which it is there.
KILLS_IN_A_ROW, PATIENCE = 4, 60.0


class ImpatientProvider(provider.CustomJobProvider):
    """The real provider with shorter bounds."""

    timing: ClassVar[Timing] = TIMING


@dataclass
class Tally:
    """Results of a campaign."""

    seed: int
    kills: int = 0
    survived: int = 0
    jobs: int = 0
    """Ladders, each climbed to its end and then withdrawn."""
    looks: int = 0
    problems: list[str] = field(default_factory=list)


def inputs(job: str) -> dict[str, Any]:
    """Return the program's inputs of a job; the last rung runs until it is cancelled."""
    submission = Submission(PROJECT, REGION, "local", job, 1)
    rungs = []
    for strategy in RUNGS:
        container = {"imageUri": "shell", "command": ["sleep", "600"]}
        pool = {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": "1",
            "containerSpec": container,
        }
        spec = {"workerPoolSpecs": [pool], "scheduling": {"strategy": strategy}}
        body = canonical({"displayName": job, "jobSpec": spec})
        id_ = request_id_of(submission, body)
        rungs.append({"requestId": id_, "request": body, "words": strategy})
    first, *others = rungs
    options = {"labels": {}, "controlBucket": CONTROL, "onDelete": "keep", "ladder": others}
    return {
        "submission": asdict(submission),
        "requestId": first["requestId"],
        "request": first["request"],
        "options": options,
    }


@dataclass
class Arena:
    """A local cloud, and two processes that fork."""

    home: Home
    workers: list[Worker]
    log: Path
    tally: Tally

    def jobs(self, job: str) -> list[JobRecord]:
        """Return all accepted jobs of this name, oldest first."""
        found = JobTable(self.home.database).list()
        return [each for each in reversed(found) if each.labels.get("vt-job") == job]

    def look(self, job: str) -> list[JobRecord]:
        """Check that a ladder's jobs are its first rungs, each once, and one is active; return
        them.
        """
        self.tally.looks += 1
        found = self.jobs(job)
        strategies = [each.spec["scheduling"]["strategy"] for each in found]
        alive = [each for each in found if not each.state.terminal]
        if tuple(strategies) != RUNGS[: len(found)]:
            self.tally.problems.append(f"{job}: rungs {strategies}")
        if len(alive) > 1 or (alive and alive[0] is not found[-1]):
            self.tally.problems.append(f"{job}: alive are {[each.name for each in alive]}")
        return found

    def work(self, which: int, given: dict[str, Any], seconds: float | None) -> int:
        """Run a process and kill it after some seconds; return how it ended."""
        pid = self.workers[which].start(given)
        if seconds is not None:
            self.kill(which, pid, seconds)
            return self.finish(which)
        return self.workers[which].status()

    def kill(self, which: int, pid: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.02))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def finish(self, which: int) -> int:
        status = self.workers[which].status()
        self.tally.kills += status == signal.SIGKILL
        self.tally.survived += status != signal.SIGKILL
        return status


def run(folder: Path, kills: int, seed: int) -> Tally:
    """Kill a number of processes that climb (two at once every other time) or withdraw."""
    tally, chance = Tally(seed), random.Random(seed)
    with _arena(folder, tally) as arena:
        usual = _usual(arena)
        while tally.kills < kills and not tally.problems:
            _round(arena, chance, usual)
    return tally


def _usual(arena: Arena) -> float:
    """Return the duration of a ladder without kills, in seconds."""
    job = _begin(arena)
    began = time.monotonic()
    _climbed(arena, job)
    took = time.monotonic() - began
    _withdrawn(arena, job, None)
    return took


def _begin(arena: Arena) -> str:
    arena.tally.jobs += 1
    job = f"l{arena.tally.jobs}"
    clear(arena.home, None)
    # FLEX_START would wait; it is the last rung, and finds machines.
    for strategy in RUNGS[:-1]:
        inject(
            arena.home,
            Fault.parse(service="jobs", kind="stockout", match=strategy, times=0, seconds=None),
        )
    if arena.work(0, {"what": "create", "inputs": inputs(job)}, None):
        arena.tally.problems.append(f"{job} was not created: {arena.log.read_text()[-900:]}")
    return job


def _round(arena: Arena, chance: random.Random, usual: float) -> None:
    job = _begin(arena)
    given = {"what": "climb", "inputs": inputs(job)}
    for attempt in range(KILLS_IN_A_ROW):
        seconds = chance.uniform(0.0, usual / (1 + attempt / 2))
        second = arena.workers[1].start(given) if attempt % 2 else 0
        arena.work(0, given, seconds)
        arena.look(job)
        if second:
            arena.kill(1, second, chance.uniform(0.0, usual / 4))
            arena.finish(1)
            arena.look(job)
    _climbed(arena, job)
    _withdrawn(arena, job, chance.uniform(0.0, usual / 2))


def _climbed(arena: Arena, job: str) -> None:
    """Climb once undisturbed: the last rung must be active, the others failed, no job lost."""
    if arena.work(0, {"what": "climb", "inputs": inputs(job)}, None):
        arena.tally.problems.append(f"{job} was not climbed: {arena.log.read_text()[-900:]}")
    found = arena.look(job)
    states = [each.state for each in found]
    if len(found) != len(RUNGS) or states[:-1] != [JobState.FAILED] * (len(RUNGS) - 1):
        arena.tally.problems.append(f"{job}: in the end {states}")


def _withdrawn(arena: Arena, job: str, seconds: float | None) -> None:
    """Kill a withdrawal, complete it with the next process, and check that no process restores the
    job.
    """
    given = {"what": "delete", "inputs": inputs(job), "id": arena.jobs(job)[0].name}
    if seconds is not None:
        arena.work(0, given, seconds)
    if arena.work(0, given, None):
        arena.tally.problems.append(f"{job} was not withdrawn: {arena.log.read_text()[-900:]}")
    arena.work(1, {"what": "climb once", "inputs": inputs(job)}, None)
    if alive := [each.name for each in arena.look(job) if not each.state.terminal]:
        arena.tally.problems.append(f"{job} left, and alive are {alive}")


@contextmanager
def _arena(folder: Path, tally: Tally) -> Iterator[Arena]:
    home = Home(folder / "home", ROOT)
    ports = lifecycle.start(home, say_nothing).ports
    store = Store(home.database)
    for api in ("aiplatform", "logging"):
        store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
    storage_client(f"http://127.0.0.1:{ports.storage}").create_bucket(CONTROL)
    log = folder / "work.log"
    log.touch()
    env = {**os.environ, **home.environment(ports), "PYTHONPATH": source_path(ROOT)}
    env |= {"CHAOS_LOG": str(log), "GRPC_VERBOSITY": "ERROR"}
    workers = [Worker(env, "ladder_kills"), Worker(env, "ladder_kills")]
    try:
        yield Arena(home, workers, log, tally)
    finally:
        for worker in workers:
            worker.close()
        lifecycle.stop(home)


def _work(given: dict[str, Any]) -> int:
    """Create, climb or withdraw like engine and commands. Return the exit code."""
    declared, impatient = given["inputs"], ImpatientProvider()
    try:
        if given["what"] == "create":
            impatient.create(declared)
        elif given["what"] == "delete":
            ladder = [declared["requestId"]]
            ladder += [each["requestId"] for each in declared["options"]["ladder"]]
            impatient.delete(given["id"], {**declared, "ladder": ladder})
        else:
            _climb(declared, once=given["what"] == "climb once")
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _climb(declared: dict[str, Any], *, once: bool) -> None:
    connected = provider.ladder_of(declared)
    ladder = Ladder(connected.rungs, connected.jobs, connected.intents, TIMING)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        rung = ladder.climb()
        if once or (rung and rung.request.rung == len(RUNGS)):
            return
        time.sleep(0.05)
    raise TimeoutError(f"it is on {rung}")


if __name__ == "__main__":
    main(_work)
