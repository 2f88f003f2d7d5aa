"""``vt jobs advance`` and ladders: a rung for each stock-out, a line for each, once."""

from __future__ import annotations

import pytest

from tests.chaos.engine import JOB
from tests.chaos.ladder import LadderCloud, program
from vertex_training.catalog.resource_types import JOB as TYPE
from vertex_training.customjob import provider
from vertex_training.customjob.protocol.ladder import Ladder
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.customjob.provider import rungs_of
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training_cli.jobs import advance as advance
from vertex_training_cli.jobs.advance import Action, Tick

INPUTS = program(1, "a", "x")


class Straight(LadderCloud):
    """The cloud as both ports, each call of which goes well."""

    refuses = False

    def create(self, parent: str, body: str, labels: dict[str, str]) -> JobSnapshot:
        send = self.enter(labels)
        if self.refuses:
            send.settled = True
            raise NotSubmittedError("RESOURCE_EXHAUSTED: quota metrics exceed")
        return self.land(send).record

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:  # pyright: ignore
        return super().find(request_id, 0.0)

    def read(self, request_id: str):
        return self.records.get(request_id)

    def read_turn(self, key: str):
        return self.turns.get(key)

    def now(self) -> float:
        return self.time


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Straight:
    made = Straight()

    def ladder_of(inputs):
        if inputs["submission"]["stack"] == "broken":
            raise OperatorError("the control bucket is gone")
        return Ladder(rungs_of(inputs), made, made)

    monkeypatch.setattr(provider, "ladder_of", ladder_of)
    return made


def actions(*jobs, dry_run: bool = False) -> list[Action]:
    resources = [{"type": TYPE, "inputs": inputs} for inputs in jobs]
    tick = Tick(None, {"resources": resources}, dry_run=dry_run)
    return list(advance.climb_ladders(tick))


def steps(*jobs) -> list[tuple[str, str]]:
    return [(each.done, each.reason) for each in actions(*jobs)]


def test_a_stock_out_is_a_rung_and_a_line_and_the_last_one_is_told(cloud: Straight) -> None:
    plain = {**INPUTS, "options": {"controlBucket": "control"}}
    assert steps(plain, INPUTS) == []  # the first rung is submitted by `up` alone
    ladder = Ladder(rungs_of(INPUTS), cloud, cloud)
    ladder.place()
    assert steps(plain, INPUTS) == []
    found = "rung 1 of 3 (as in the job file)"
    stock_out = "Resources are insufficient in region: r"
    for rung in (2, 3):
        cloud.run_out(cloud.going_on(JOB)[0])
        sent = len(cloud.sends)
        due = f"{found}: {stock_out}; the next rung is due"
        assert actions(INPUTS, dry_run=True) == [Action("ladder", JOB, "due", due)]
        assert len(cloud.sends) == sent
        found = f"rung {rung} of 3 (other)"
        [action] = actions(INPUTS)
        name = cloud.going_on(JOB)[0].record.name
        went = f"{stock_out}; continues on {found}"
        assert action == Action("ladder", JOB, "submitted", went, name)
        assert steps(INPUTS) == []
    last = cloud.going_on(JOB)[0]
    cloud.run_out(last)
    left = (
        f"no rung is left on the ladder: rung 1 (as in the job file): {stock_out}; rung 2 "
        f"(other): {stock_out}; rung 3 (other): {stock_out}"
    )
    for dry_run in (True, False):
        assert actions(INPUTS, dry_run=dry_run) == [
            Action("ladder", JOB, "ended", left, last.record.name)
        ]
    assert len(cloud.jobs) == 3
    assert not cloud.violations


def test_a_refused_rung_is_a_failure_each_time_and_keeps_no_other_back(cloud: Straight) -> None:
    Ladder(rungs_of(INPUTS), cloud, cloud).place()
    cloud.run_out(cloud.going_on(JOB)[0])
    cloud.refuses = True
    broken = {**INPUTS, "submission": {**INPUTS["submission"], "stack": "broken"}}
    refused = "RESOURCE_EXHAUSTED: quota metrics exceed"
    for _ in range(2):
        assert actions(broken, INPUTS) == [
            Action("ladder", JOB, "failed", "the control bucket is gone", failed=True),
            Action("ladder", JOB, "failed", refused, failed=True),
        ]
    cloud.refuses = False
    assert [done for done, _ in steps(broken, INPUTS)] == ["failed", "submitted"]
    assert len(cloud.jobs) == 2
