"""From rung to rung: proof, order, two movers, and a job that leaves the stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.engine import JOB
from tests.chaos.ladder import RUNGS, LadderCloud, program, run_ladders
from tests.chaos.process import Fate, Order, Process
from vertex_training.customjob.google.job_service import PROVES_STOCK_OUT, is_stock_out
from vertex_training.customjob.protocol.ladder import CurrentRung, Ladder, stop_climbing
from vertex_training.customjob.protocol.ports import (
    IntentState,
)
from vertex_training.customjob.provider import rungs_of
from vertex_training.errors import JobRefusedError, NotSubmittedError

RUNGS_OF_JOB = rungs_of(program(1, "a", "x"))


class Mover:
    """One undisturbed process after another on one cloud."""

    def __init__(self) -> None:
        self.cloud = LadderCloud()

    def do(self, what: str, fate: Fate = Fate.GO, at: str = "create") -> Any:
        """What a method of the ladder returned; its call ``at`` goes as ``fate`` has it."""
        found: list[Any] = []

        def work(process: Process) -> None:
            ladder = Ladder(RUNGS_OF_JOB, process, process, environment=process.environment())
            try:
                found.append(getattr(ladder, what)())
            except Exception as error:
                found.append(error)

        process = Process(self.cloud, work)
        while not process.ended:
            process.resume(Order(fate if process.point == at else Fate.GO))
        assert process.crash is None
        return found[0] if found else None

    def out(self) -> None:
        self.cloud.run_out(self.cloud.going_on(JOB)[0])

    @property
    def sent(self) -> list[int]:
        ids = [each.request_id for each in RUNGS_OF_JOB]
        return [ids.index(send.request_id) + 1 for send in self.cloud.sends]


def test_each_rung_once_in_order_and_then_none_with_every_reason():
    mover = Mover()
    assert mover.do("climb") is None  # only the engine submits the first one
    mover.do("place")
    for rung in range(1, RUNGS):
        assert mover.do("climb").request.rung == rung
        mover.out()
        moved = mover.do("climb")
        assert (moved.request.rung, moved.moved) == (rung + 1, True)
    assert mover.do("exhausted") == ""
    mover.out()
    last = mover.do("climb")
    assert (last.request.rung, last.moved) == (RUNGS, False)
    assert mover.sent == [1, 2, 3]
    assert mover.do("exhausted") == (
        "rung 1 (as in the job file): Resources are insufficient in region: r; "
        "rung 2 (other): Resources are insufficient in region: r; "
        "rung 3 (other): Resources are insufficient in region: r"
    )
    assert not mover.cloud.violations


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "EXPIRED", "SUCCEEDED", "RUNNING"])
def test_nothing_but_a_stock_out_is_a_reason(state: str):
    mover = Mover()
    mover.do("place")
    mover.cloud.change(mover.cloud.going_on(JOB)[0], f"JOB_STATE_{state}")
    found = mover.do("climb")
    assert isinstance(found, CurrentRung)
    assert (found.request.rung, mover.sent) == (1, [1])


def test_a_refused_rung_stays_the_next_one():
    mover = Mover()
    mover.do("place")
    mover.out()
    for _ in range(3):
        assert isinstance(mover.do("climb", Fate.REFUSED), NotSubmittedError)
    assert mover.do("climb").request.rung == 2
    assert mover.sent == [1, 2, 2, 2, 2]
    assert len(mover.cloud.jobs) == 2


def test_a_lost_answer_is_looked_for_and_no_reason():
    mover = Mover()
    mover.do("place")
    mover.out()
    mover.do("climb", Fate.ERROR, "create done")
    assert mover.do("climb").request.rung == 2
    assert mover.sent == [1, 2]


def test_a_rung_whose_sender_died_and_that_ran_out_since_is_passed():
    mover = Mover()
    mover.do("place")
    mover.out()
    mover.do("climb", Fate.KILL_BOTH, "create done")
    assert mover.do("exhausted") == ""
    mover.out()
    assert mover.do("climb").request.rung == 3
    assert mover.sent == [1, 2, 3]
    assert not mover.cloud.violations


@pytest.mark.parametrize("at", ["turn write done", f"write {IntentState.SENDING}"])
def test_the_first_rung_is_sent_by_the_engine_alone_also_where_its_sender_died(at: str) -> None:
    mover = Mover()
    mover.do("place", Fate.KILL_BOTH, at)
    found = mover.do("climb")
    assert (found.request.rung, found.job, found.moved) == (1, None, False)
    assert mover.sent == []


def test_a_job_that_left_the_stack_is_not_brought_back_by_a_mover():
    mover = Mover()
    mover.do("place")
    mover.out()

    def work(process: Process) -> None:
        known = replace(RUNGS_OF_JOB[0], body="", labels={})
        assert stop_climbing(known, process, process, lambda *_: None)

    process = Process(mover.cloud, work)
    while not process.ended:
        process.resume(Order())
    assert process.crash is None
    assert mover.do("climb") is None
    assert isinstance(mover.do("place"), JobRefusedError)  # as of any job that failed: raise run
    assert mover.sent == [1]


@pytest.mark.parametrize(
    ("error", "proof"),
    [
        ("Resources are insufficient in region: us-central1. Try a different region.", True),
        ("RESOURCE_EXHAUSTED: Resources are insufficient in region: us-central1.", True),
        ("STOCKOUT: Resources are insufficient in region: us-central1.", True),
        ("The following quota metrics exceed quota limits: aiplatform.googleapis.com/x", False),
        ("RESOURCE_EXHAUSTED: quota", False),
        ("The replica workerpool0-0 exited with a non-zero status of 1: STOCKOUT", False),
        ("job says: Resources are insufficient in region: us-central1", False),
        ("", False),
    ],
)
def test_what_proves_a_stock_out(error: str, proof: bool):
    assert is_stock_out(error) is proof
    assert all(PROVES_STOCK_OUT.values())  # each with its source


def test_a_sample_of_the_state_machine():
    done = run_ladders(40, 7)
    assert min(done.sent) > 10
