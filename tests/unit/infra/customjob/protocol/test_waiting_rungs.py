"""Who waits for a job follows it from rung to rung, and is told why it ended."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from tests.unit.infra.customjob.fakes import REQUEST, job
from vertex_training.customjob.protocol.ladder import CurrentRung
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.customjob.protocol.waiting import Wait, WaitPorts, wait_for_job
from vertex_training.errors import NotSubmittedError, OperatorError, WaitError

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


def waited(
    jobs: dict[str, JobSnapshot], rungs: Rungs | None = None, idle: Any = None
) -> tuple[list[str], Any]:
    """What was said, and the outcome, of a wait for the job ``first``."""
    said: list[str] = []
    links: Any = {"connect_ladder": lambda: rungs, "connect_idle_stop": lambda: idle}

    async def sleep(_: float) -> None:
        raise AssertionError("nothing is waited for here")

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
    said, outcome = waited({"first": OUT, "second": second}, rungs)
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
    said, outcome = waited({"first": OUT, "second": second, "third": third}, rungs)
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
    said, outcome = waited({"first": OUT}, rungs)
    assert isinstance(outcome, WaitError)
    assert str(outcome) == f"job 'train' is FAILED (first){reason} {END}"
    assert said == ["job train: FAILED"]


def test_a_job_that_failed_otherwise_asks_for_no_rung() -> None:
    failed = dataclasses.replace(OUT, out_of_stock=False)
    _, outcome = waited({"first": failed}, Rungs(AssertionError("nobody asks")))
    assert isinstance(outcome, WaitError)


def test_a_rung_that_is_refused_stays_the_next_one() -> None:
    _, outcome = waited({"first": OUT}, Rungs(NotSubmittedError("QUOTA")))
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
    _, outcome = waited({"first": ended}, idle=idle)
    assert str(outcome) == f"job 'train' is {state} (first){reason}{END}"
