"""Schedules of 52 weeks: each slot has one job despite duplicates, kills and late deliveries.

``virtual``: on the cloud of ``tests.chaos.cloud``, at its worst and on virtual time. In each week
several processes advance the schedule at once, and at every call of a port one of them may die,
get no answer, be refused, or be held up until others have gone on; requests take effect late, lists
lag, the store's clock goes back. ``kills``: real processes that die by SIGKILL before and after
every call of a port, then at random moments, against the job service and the storage of a local
cloud. ``python -m tests.chaos.schedules`` is the process that forks those.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.chaos.arena import BUCKET, PROJECT, REGION, Arena
from tests.chaos.cloud import Cloud
from tests.chaos.impatient import TIMING
from tests.chaos.messages import smallest
from tests.chaos.process import Fate, Order, Process
from tests.chaos.serving import Worker
from tests.chaos.serving_process import main
from tests.chaos.snapshots import _Deadly
from vertex_training.customjob.google import intent_store, job_service, prerequisites
from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.protocol.ports import (
    SLOT_LABEL,
    JobSnapshot,
)
from vertex_training.customjob.request.job_file import canonical
from vertex_training.errors import OperatorError
from vertex_training.schedules import provider, slots
from vertex_training.schedules.deployed import DeployedSchedule
from vertex_training.schedules.slots import SchedulePorts
from vertex_training.settings.cron import Calendar, name_of

#: What a process loads before it forks.
LOADED: Final = (intent_store, job_service, prerequisites)
WEEKS: Final = 52
#: Spring forward and back are in it, and so is a year's end.
BEGIN: Final = datetime(2026, 11, 26, tzinfo=UTC)
CALENDAR: Final = Calendar("30 2 * * 0", "Europe/Berlin")
FATES: Final = (
    Fate.ERROR, Fate.AGAIN, Fate.REFUSED, Fate.NOT_ALLOWED, Fate.LATE, Fate.KILL_BOTH,
)  # fmt: skip


def schedule_of(job: str, missed: str = "all", **changes: Any) -> DeployedSchedule:
    """Return a schedule for every Sunday, when clocks change."""
    message = smallest(CUSTOM_JOB, job)
    message["jobSpec"]["baseOutputDirectory"] = {"outputUriPrefix": f"gs://out/{job}/${{job.slot}}"}
    made = DeployedSchedule(
        project=PROJECT,
        region="r",
        stack="chaos",
        job=job,
        run=1,
        kind=CUSTOM_JOB,
        request=canonical(message),
        labels={},
        control_bucket=BUCKET,
        records="",
        account="",
        on_delete="keep",
        calendar=CALENDAR,
        missed=missed,
        paused=False,
        since=name_of(BEGIN),
    )
    return replace(made, **changes)


@dataclass
class Tally:
    """Results of a campaign."""

    seed: int
    years: int = 0
    slots: int = 0
    jobs: int = 0
    folders: int = 0
    processes: int = 0
    kills: int = 0
    calls: int = 0
    """At which a process died, lost an answer, or was refused."""
    problems: list[str] = field(default_factory=list)


class SlotProcess(Process):
    """A process that advances a schedule; the cloud records the folder of each request."""

    folders: dict[str, set[str]]

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:
        folder = json.loads(body)["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"]
        self.folders.setdefault(labels[SLOT_LABEL], set()).add(folder)
        return super().create(parent, body, labels)


class _Year:
    """52 weeks of one schedule on one cloud."""

    def __init__(self, chance: random.Random, tally: Tally, missed: str) -> None:
        self.chance, self.tally = chance, tally
        self.schedule = schedule_of("weekly", missed)
        self.cloud = Cloud(time=BEGIN.timestamp())
        self.folders: dict[str, set[str]] = {}
        self.slots = CALENDAR.next(BEGIN, WEEKS)
        self.edits = 0

    def run(self) -> None:
        for slot in self.slots:
            at = max(slot.timestamp() + self.chance.choice((0, 1, 900, 5 * 86400)), self.cloud.time)
            self.cloud.advance(at)
            for _ in range(self.chance.randint(1, 3)):
                self._deliveries()
                self._jobs_go_on()
            if self.chance.random() < 0.1:
                self._edit()
        for _ in range(3 * WEEKS):
            self._end_jobs()
            self._advance([Order()] * 400)
            self.cloud.advance(self.cloud.time + 900)
        self._end_jobs()
        self._judge()

    def _edit(self) -> None:
        """Deploy an edited job file with an unchanged calendar."""
        self.edits += 1
        message = json.loads(self.schedule.request) | {"labels": {"v": str(self.edits)}}
        self.schedule = replace(self.schedule, request=canonical(message))

    def _start(self) -> SlotProcess:
        schedule, chance = self.schedule, self.chance

        def work(process: Process) -> None:
            ports = SchedulePorts(process, process, environment=process.environment())
            back = chance.choice((0.0, 0.0, 0.0, 3600.0, 14 * 86400.0))
            with suppress(OperatorError):
                for outcome in slots.advance(schedule, ports, process.now() - back):
                    del outcome

        self.tally.processes += 1
        made = SlotProcess(self.cloud, work, skew=chance.choice((0.0, -300.0, 300.0)))
        made.folders = self.folders
        return made

    def _deliveries(self) -> None:
        """Run up to four processes at once, in any order, each disturbed at some call."""
        processes = [self._start() for _ in range(self.chance.choice((1, 1, 2, 4)))]
        while running := [process for process in processes if not process.ended]:
            process = self.chance.choice(running)
            order = Order()
            if self.chance.random() < 0.04:
                order = Order(self.chance.choice(FATES), self.chance.choice((0.0, 4.0, 29.0, 59.0)))
                self.tally.calls += 1
                self.tally.kills += order.fate is Fate.KILL_BOTH
            elif self.chance.random() < 0.05:
                order = Order(Fate.GO, self.chance.choice((0.0, 29.0)))
            process.resume(order)
            if process.crash is not None:
                self.tally.problems.append(f"a process ended with {process.crash!r}")
            if self.chance.random() < 0.02:
                self.cloud.advance(self.cloud.time + self.chance.choice((1.0, 61.0, 200.0)))

    def _advance(self, orders: Sequence[Order]) -> None:
        """Run one undisturbed process."""
        process = self._start()
        for order in orders:
            if process.ended:
                return
            process.resume(order)
        self.tally.problems.append("a process that nothing disturbs did not end")
        while not process.ended:
            process.resume(Order(Fate.KILL_BOTH))

    def _jobs_go_on(self) -> None:
        for job in self.cloud.jobs:
            if job.live and self.chance.random() < 0.6:
                self.cloud.change(job, f"JOB_STATE_{self.chance.choice(('RUNNING', *ENDED))}")

    def _end_jobs(self) -> None:
        for job in self.cloud.jobs:
            if job.live:
                self.cloud.change(job, f"JOB_STATE_{self.chance.choice(ENDED)}")

    def _judge(self) -> None:
        jobs, tally = self.cloud.jobs, self.tally
        problems = list(dict.fromkeys(self.cloud.violations))
        sent = [slot_of_job(job.request_id) for job in jobs]
        known = [name_of(slot) for slot in self.slots]
        if len(set(sent)) != len(sent):
            problems.append("a slot has two jobs")
        if unknown := set(sent) - set(known):
            problems.append(f"jobs of no slot: {sorted(unknown)}")
        if sent != sorted(sent):
            problems.append("slots had their turns out of order")
        if self.schedule.missed == "all" and sent != known:
            problems.append(f"slots without a job: {sorted(set(known) - set(sent))}")
        if any(len(each) != 1 for each in self.folders.values()):
            problems.append("a slot has two folders")
        folders = {folder for slot in sent for folder in self.folders[slot]}
        if len(folders) != len(sent):
            problems.append("two slots share a folder")
        tally.years += 1
        tally.slots += len(known)
        tally.jobs += len(jobs)
        tally.folders += len(folders)
        tally.problems += [f"year {tally.years}: {each}" for each in problems]


ENDED: Final = ("SUCCEEDED", "SUCCEEDED", "FAILED", "CANCELLED")


def slot_of_job(request_id: str) -> str:
    """Return the slot of a request."""
    return request_id.partition("-")[0]


def virtual(seed: int, years: int, missed: str = "all") -> Tally:
    """Run a number of years of 52 weeks each."""
    tally, chance = Tally(seed), random.Random(f"{seed}{missed}")
    for _ in range(years):
        _Year(chance, tally, missed).run()
        if tally.problems:
            break
    return tally


# --- real processes


def kills(folder: Path, count: int, seed: int, points: int = 1_000, weeks: int = WEEKS) -> Tally:
    """Run a number of weeks: kill at every call up to ``points``, then at random; deliver each
    twice.
    """
    tally, chance = Tally(seed), random.Random(seed)
    call, usual = 1, 0.2
    with Arena(folder / "arena") as arena, _workers(arena, folder) as workers:
        for week in CALENDAR.next(BEGIN, weeks):
            dies = [(call, when) for when in ("before", "after")] if call <= points else []
            statuses = [_die_at(workers[0], week, at) for at in dies]
            tally.calls += statuses.count(signal.SIGKILL)
            call = call + 1 if signal.SIGKILL in statuses else points + 1
            if not dies and tally.kills < count:
                for _ in range(2):
                    statuses.append(_die_soon(workers[0], week, chance.uniform(0.0, usual)))
            tally.kills += statuses.count(signal.SIGKILL)
            for worker in workers:
                worker.start(_given(week))
            began = time.monotonic()
            for worker in workers:
                worker.status()
            usual = min(usual, time.monotonic() - began)
            _settle(arena, workers[0], week)
        _judge_kills(arena, tally, weeks)
    return tally


@contextmanager
def _workers(arena: Arena, folder: Path) -> Iterator[list[Worker]]:
    log = folder / "work.log"
    log.touch()
    made = [Worker({**arena.env, "CHAOS_LOG": str(log)}, "schedules") for _ in range(2)]
    try:
        yield made
    finally:
        for worker in made:
            worker.close()


def _given(week: datetime, **more: Any) -> dict[str, Any]:
    return {"now": (week + timedelta(minutes=15)).timestamp(), **more}


def _die_at(worker: Worker, week: datetime, at: tuple[int, str]) -> int:
    worker.start(_given(week, dies_at=at))
    return worker.status()


def _die_soon(worker: Worker, week: datetime, seconds: float) -> int:
    pid = worker.start(_given(week))
    time.sleep(seconds)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return worker.status()


def _settle(arena: Arena, worker: Worker, week: datetime) -> None:
    """Advance until the week's slot has its job, then end that job."""
    for _ in range(20):
        worker.start(_given(week))
        if worker.status() == 0:
            break
        time.sleep(0.3)
    for job in arena.jobs.list():
        if not job.state.terminal:
            arena.service.cancel(job.name)
    deadline = time.monotonic() + 30
    while any(not job.state.terminal for job in arena.jobs.list()):
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def _judge_kills(arena: Arena, tally: Tally, weeks: int) -> None:
    found = sorted(arena.jobs.list(), key=lambda job: int(job.job_id))
    sent = [job.labels[SLOT_LABEL] for job in found]
    folders = [job.output_prefix for job in found]
    known = [name_of(slot) for slot in CALENDAR.next(BEGIN, weeks)]
    tally.slots, tally.jobs, tally.folders = weeks, len(sent), len(set(folders))
    if sorted(sent) != known:
        tally.problems.append(f"jobs of slots {sorted(sent)}")
    if len(set(folders)) != weeks:
        tally.problems.append(f"{len(set(folders))} folders")


def _work(given: dict[str, Any]) -> int:
    """Advance once like ``vt jobs advance``. Return 0 if nothing is left to do now."""
    schedule = schedule_of("weekly", region=REGION)
    ports = replace(provider.connect(schedule), timing=TIMING)
    if dies_at := given.get("dies_at"):
        last, moments = 2 * dies_at[0] - (dies_at[1] == "before"), iter(range(1, 1_000_000))

        def die() -> None:
            if next(moments) == last:
                os.kill(os.getpid(), signal.SIGKILL)

        jobs: Any = _Deadly(ports.jobs, die)
        intents: Any = _Deadly(ports.intents, die)
        ports = replace(ports, jobs=jobs, intents=intents)
    try:
        found = list(slots.advance(schedule, ports, given["now"]))
    except Exception:
        traceback.print_exc()
        return 1
    return 0 if all(outcome.done == "idle" for outcome in found) else 2


if __name__ == "__main__":
    main(_work)
