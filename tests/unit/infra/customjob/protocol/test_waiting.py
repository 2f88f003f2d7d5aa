"""Waiting for a job and its next rungs, on a clock that only sleeping moves."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import pytest

from tests.unit.infra.customjob.fakes import REQUEST, job
from vertex_training.customjob.protocol.idle import IdleFinding, IdleVerdict
from vertex_training.customjob.protocol.ladder import CurrentRung
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.customjob.protocol.waiting import (
    PollBackoff,
    Wait,
    WaitPorts,
    format_duration,
    wait_for_job,
)
from vertex_training.errors import NotSubmittedError, OperatorError, WaitDeadlineError, WaitError

NAME = "projects/1/locations/r/customJobs/7"


class Clock:
    def __init__(self):
        self.time, self.sleeps = 0.0, []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.time += seconds


def waited(states, goal="succeeded", deadline=3600.0, error="", tail=lambda *_: [], **backoff):
    """What was said, the clock, and the outcome; each look sees the next state, then the last."""
    clock, said, seen = Clock(), [], list(states)

    def look(name):
        assert name == NAME
        state = seen.pop(0) if len(seen) > 1 else seen[0]
        return state and job(NAME, state, error=error)

    ports = WaitPorts(look, tail, said.append, clock.sleep, clock.now)
    try:
        outcome = asyncio.run(
            wait_for_job(Wait("train", 2, goal, deadline), NAME, ports, PollBackoff(**backoff))
        )
    except OperatorError as raised:
        outcome = raised
    return said, clock, outcome


@pytest.mark.parametrize(
    ("goal", "states"),
    [
        ("running", ["QUEUED", "PENDING", "RUNNING"]),
        ("running", ["QUEUED", "SUCCEEDED"]),
        ("succeeded", ["RUNNING", "UPDATING", "SUCCEEDED"]),
        ("succeeded", ["PARTIALLY_SUCCEEDED"]),
    ],
)
def test_a_wait_ends_when_the_goal_is_reached(goal, states):
    said, _, outcome = waited(states, goal)
    assert outcome.state == f"JOB_STATE_{states[-1]}"
    assert [line.split()[2] for line in said] == states


def test_a_state_is_reported_with_its_duration():
    said, _, _ = waited(["QUEUED", "PENDING", "RUNNING"], "running", initial=1.0)
    assert said == [
        "job train: QUEUED",
        "job train: PENDING after 1s",
        "job train: RUNNING after 2s",
    ]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "EXPIRED"])
@pytest.mark.parametrize("goal", ["running", "succeeded"])
def test_a_job_that_ended_otherwise_is_reported_with_its_error_and_the_end_of_its_log(goal, state):
    asked = []

    def tail(name, count):
        asked.append((name, count))
        return ["epoch 1", "out of memory"]

    _, _, outcome = waited(["RUNNING", state][-1:], goal, error="exit code 1.", tail=tail)
    assert isinstance(outcome, WaitError)
    assert str(outcome) == (
        f"job 'train' is {state} ({NAME}): exit code 1. "
        "Mend it, or set run: 3 in the stack file to submit it once more.\n"
        "The last 2 lines of its log:\n  epoch 1\n  out of memory"
    )
    assert asked == [(NAME, 20)]


def test_a_log_that_cannot_be_read_is_reported_and_hides_nothing():
    def tail(name, count):
        raise OperatorError("PERMISSION_DENIED")

    _, _, outcome = waited(["FAILED"], tail=tail)
    assert "job 'train' is FAILED" in str(outcome)
    assert str(outcome).endswith("Its log could not be read: PERMISSION_DENIED")


def test_a_deadline_ends_the_wait_exactly_and_leaves_the_job():
    _, clock, outcome = waited(["RUNNING"], deadline=95.0)
    assert isinstance(outcome, WaitDeadlineError)
    assert clock.time == 95.0
    assert "is RUNNING, and had 1m 35s to succeed" in str(outcome)
    assert "It goes on" in str(outcome)


def test_a_service_that_does_not_answer_ends_the_wait_with_its_words():
    def look(name):
        raise OperatorError("UNAVAILABLE: try later")

    clock = Clock()
    ports = WaitPorts(look, lambda *_: [], print, clock.sleep, clock.now)
    with pytest.raises(OperatorError, match=r"'train' \(.*goes on; .*UNAVAILABLE: try later"):
        asyncio.run(wait_for_job(Wait("train", 1, "running", 60), NAME, ports))


def test_several_waits_go_on_side_by_side():
    meeting = threading.Barrier(3, timeout=60)  # broken, and an error, if they took turns

    async def one(name):
        def look(_):
            meeting.wait()
            return job(NAME, "SUCCEEDED")

        ports = WaitPorts(look, lambda *_: [], lambda _: None)
        return await wait_for_job(Wait(name, 1, "succeeded", 60), NAME, ports)

    async def all_():
        return await asyncio.gather(one("a"), one("b"), one("c"))

    assert len(asyncio.run(all_())) == 3


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0s"),
        (59, "59s"),
        (60, "1m"),
        (125, "2m 5s"),
        (3599, "59m 59s"),
        (3600, "1h 0m"),
        (7500, "2h 5m"),
    ],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert format_duration(seconds) == text


class Idle:
    """An ``idleStop`` whose looks find these, one after the other, then the last."""

    def __init__(self, *found):
        self.found, self.cancelled, self.looks = list(found), False, 0
        self.connected = 0

    def connect(self):
        self.connected += 1
        return self

    def look(self, _job):
        self.looks += 1
        found = self.found.pop(0) if len(self.found) > 1 else self.found[0]
        if isinstance(found, Exception):
            raise found
        return IdleVerdict(found, "no points of workerpool0-0")

    def stop(self, _job, verdict):
        self.cancelled = verdict.finding is IdleFinding.IDLE
        return "nobody works (idleStop)" if self.cancelled else ""

    def reason(self, _job):
        return "nobody works (idleStop)" if self.cancelled else ""


def watched(idle, accelerators=(("workerpool0-0", 1),), deadline=600.0, **backoff):
    """What was said, and the outcome, of a job that runs until it is cancelled."""
    clock, said = Clock(), []

    def look(name):
        state = "CANCELLED" if idle.cancelled else "RUNNING"
        return dataclasses.replace(job(name, state), accelerators=accelerators)

    ports = WaitPorts(
        look, lambda *_: [], said.append, clock.sleep, clock.now, connect_idle_stop=idle.connect
    )
    wait = Wait("train", 2, "succeeded", deadline)
    with pytest.raises(OperatorError) as raised:
        asyncio.run(wait_for_job(wait, NAME, ports, PollBackoff(**backoff)))
    return said, str(raised.value)


def test_an_idle_job_is_cancelled_and_the_reason_is_reported():
    idle = Idle(IdleFinding.YOUNG, IdleFinding.BUSY, IdleFinding.IDLE)
    said, outcome = watched(idle)
    assert said[1] == f"job train: nobody works (idleStop): cancelled ({NAME})"
    assert f"is CANCELLED ({NAME}). Nobody works (idleStop). Mend it" in outcome
    assert idle.looks == 3


@pytest.mark.parametrize(
    "found", [IdleFinding.UNPROVEN, OperatorError("no points of workerpool0-0")]
)
def test_unknown_utilization_is_reported_once_and_cancels_nothing(found):
    idle = Idle(IdleFinding.YOUNG, found)
    said, outcome = watched(idle)
    unknown = "whether it is idle is not known, and it goes on: no points of workerpool0-0"
    assert [line for line in said if "idle" in line] == [f"job train: {unknown}"]
    assert "had 10m to succeed" in outcome
    assert 5 < idle.looks < 15


def test_a_job_is_looked_at_once_a_minute():
    idle = Idle(IdleFinding.BUSY)
    watched(idle, initial=10.0)
    assert idle.looks == 11  # now, and after each of the ten minutes
    assert idle.connected == 1


def test_a_job_without_accelerators_is_not_looked_at():
    idle = Idle(IdleFinding.IDLE)
    assert "had 10m" in watched(idle, accelerators=())[1]
    assert idle.looks == 0


def test_pauses_grow_by_half_and_a_line_is_printed_every_five_minutes():
    said, clock, _ = waited(["RUNNING"], deadline=700.0)
    assert clock.sleeps[:10] == [
        *(0.5, 0.75, 1.125, 1.6875, 2.53125, 3.796875, 5.6953125, 8.54296875),
        *(10.0, 10.0),
    ]
    assert said == [
        "job train: RUNNING",
        "job train: RUNNING after 5m 4s",
        "job train: RUNNING after 10m 4s",
    ]


def test_errors_of_a_wait_have_the_deadline_and_a_fix():
    _, _, outcome = waited(["PENDING"], goal="running", deadline=7200.0)
    assert str(outcome) == (
        f"job 'train' is PENDING, and had 2h 0m to run (deadline). It goes on ({NAME}); to wait "
        "for it again is safe."
    )
    _, _, outcome = waited([None], goal="running")
    assert str(outcome) == (
        f"the record of job 'train' ({NAME}) was deleted, so nobody can tell how it ended. Set "
        "run: 3 in the stack file to submit it once more, or remove wait."
    )
    _, _, outcome = waited(["FAILED"])
    assert str(outcome) == (
        f"job 'train' is FAILED ({NAME}). Mend it, or set run: 3 in the stack file to submit it "
        "once more.\nIts log is empty."
    )


def test_a_silence_is_ended_after_just_that_long():
    said, _, _ = waited(["RUNNING"], deadline=30.0, initial=10.0, heartbeat=20.0)
    assert said == ["job train: RUNNING", "job train: RUNNING after 20s"]
    said, _, _ = waited(["RUNNING"], deadline=30.0, initial=10.0, heartbeat=20.5)
    assert said == ["job train: RUNNING", "job train: RUNNING after 30s"]


IDS = ("id1", "id2")
SPOT = dataclasses.replace(REQUEST, request_id="id2", ladder=IDS, words="strategy SPOT")
OUT = dataclasses.replace(
    job("first", "FAILED", error="Resources are insufficient."), out_of_stock=True
)


class Rungs:
    """A ladder whose moves find these, one after the other."""

    def __init__(self, *found: Any, exhausted: str = "") -> None:
        self.found, self.left = list(found), exhausted

    def climb(self) -> Any:
        found = self.found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def exhausted(self) -> str:
        return self.left


def waited_on_rungs(
    jobs: dict[str, JobSnapshot], rungs: Rungs | None = None, idle: Any = None
) -> tuple[list[str], Any]:
    """What was said, and the outcome, of a wait for the job ``first``."""
    said: list[str] = []
    links: Any = {"connect_ladder": lambda: rungs, "connect_idle_stop": lambda: idle}

    async def sleep(_: float) -> None:
        raise AssertionError("nothing is waited_on_rungs for here")

    ports = WaitPorts(jobs.__getitem__, lambda *_: [], said.append, sleep, lambda: 5000.0, **links)
    try:
        outcome: Any = asyncio.run(
            wait_for_job(Wait("train", 2, "succeeded", 60.0), "first", ports)
        )
    except OperatorError as raised:
        outcome = raised
    return said, outcome


@pytest.mark.parametrize(("moved", "verb"), [(True, "goes on"), (False, "is")])
def test_a_job_without_machines_is_followed_to_its_next_rung(moved: bool, verb: str) -> None:
    second = job("second", "SUCCEEDED")
    rungs = Rungs(CurrentRung(SPOT, second, moved))
    said, outcome = waited_on_rungs({"first": OUT, "second": second}, rungs)
    assert outcome == second
    assert said == [
        "job train: FAILED",
        f"job train: Resources are insufficient; {verb} on rung 2 of 2 (strategy SPOT) as second",
        "job train: SUCCEEDED",
    ]


def test_every_rung_is_followed_in_its_turn() -> None:
    second = dataclasses.replace(OUT, name="second", error="")
    third = job("third", "SUCCEEDED")
    rungs = Rungs(CurrentRung(SPOT, second, moved=True), CurrentRung(SPOT, third, moved=True))
    said, outcome = waited_on_rungs({"first": OUT, "second": second, "third": third}, rungs)
    assert outcome == third
    assert said[2:] == [
        "job train: FAILED",
        "job train: FAILED; goes on on rung 2 of 2 (strategy SPOT) as third",
        "job train: SUCCEEDED",
    ]


END = "Mend it, or set run: 3 in the stack file to submit it once more.\nIts log is empty."


@pytest.mark.parametrize(
    ("rungs", "reason"),
    [
        (None, ": Resources are insufficient."),
        (Rungs(None), ": Resources are insufficient."),
        (Rungs(CurrentRung(SPOT, None)), ": Resources are insufficient."),
        (Rungs(CurrentRung(SPOT, OUT)), ": Resources are insufficient."),
        (
            Rungs(CurrentRung(SPOT, OUT), exhausted="rung 1 (as in the job file): none"),
            ". No rung is left: rung 1 (as in the job file): none.",
        ),
    ],
)
def test_a_job_ends_where_no_other_rung_has_a_job(rungs: Rungs | None, reason: str) -> None:
    said, outcome = waited_on_rungs({"first": OUT}, rungs)
    assert isinstance(outcome, WaitError)
    assert str(outcome) == f"job 'train' is FAILED (first){reason} {END}"
    assert said == ["job train: FAILED"]


def test_a_job_that_failed_for_another_reason_moves_to_no_rung() -> None:
    failed = dataclasses.replace(OUT, out_of_stock=False)
    _, outcome = waited_on_rungs({"first": failed}, Rungs(AssertionError("nobody asks")))
    assert isinstance(outcome, WaitError)


def test_a_rung_that_is_refused_stays_the_next_one() -> None:
    _, outcome = waited_on_rungs({"first": OUT}, Rungs(NotSubmittedError("QUOTA")))
    assert type(outcome) is OperatorError
    assert str(outcome) == (
        "job 'train' (first): Resources are insufficient; its next rung was not submitted, and "
        "stays the next one: to wait for it again is safe. QUOTA"
    )


class Stopped:
    """An ``idleStop`` whose record tells this."""

    def __init__(self, told: Any) -> None:
        self.told = told

    def reason(self, _: JobSnapshot) -> str:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


ACCELERATORS = (("workerpool0-0", 1),)


@pytest.mark.parametrize(
    ("state", "accelerators", "idle", "reason"),
    [
        ("CANCELLED", ACCELERATORS, Stopped("nobody works"), ". Nobody works. "),
        ("CANCELLED", ACCELERATORS, Stopped(""), ": by hand. "),
        ("CANCELLED", ACCELERATORS, None, ": by hand. "),
        ("CANCELLED", ACCELERATORS, Stopped(OperatorError("503")), ". Why is not known: 503. "),
        ("CANCELLED", (), Stopped("nobody works"), ": by hand. "),
        ("FAILED", ACCELERATORS, Stopped("nobody works"), ": by hand. "),
    ],
)
def test_why_a_job_was_cancelled_is_read_in_its_record(
    state: str, accelerators: tuple[tuple[str, int], ...], idle: Stopped | None, reason: str
) -> None:
    ended = dataclasses.replace(job("first", state, error="by hand."), accelerators=accelerators)
    _, outcome = waited_on_rungs({"first": ended}, idle=idle)
    assert str(outcome) == f"job 'train' is {state} (first){reason}{END}"
