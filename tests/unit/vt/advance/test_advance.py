"""``vt jobs advance``: one line for each thing, one failing step keeps no other from its work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from tests.unit.infra.schedules.fakes import MONDAY, SCHEDULE, SlotProcess, SlotWorld, ports_of
from tests.unit.infra.schedules.test_declared import PROPS
from vertex_training.catalog.resource_types import SCHEDULE as TYPE
from vertex_training.errors import OperatorError
from vertex_training_cli.advance import command, steps
from vertex_training_cli.advance.tick import Action, Tick

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def deployment(*jobs):
    rows = [
        {
            "type": TYPE,
            "outputs": {
                **PROPS,
                "submission": {**PROPS["submission"], "job": job},
                "since": SCHEDULE.since,
            },
        }
        for job in jobs
    ]
    return {"resources": rows}


def tick(deployment, **given):
    return Tick(None, deployment, now=NOW, **given)


@pytest.fixture
def world(monkeypatch):
    found = SlotWorld()
    found.time = MONDAY.timestamp() + 60

    def connect(schedule):
        if schedule.job == "broken":
            raise OperatorError("the control bucket is gone")
        return ports_of(SlotProcess(found))

    monkeypatch.setattr(steps, "connect", connect)
    return found


def test_one_schedule_that_fails_keeps_no_other_from_its_slot(world):
    found = list(steps.submit_due(tick(deployment("broken", "titanic"))))
    assert [(each.job, each.done, each.failed) for each in found] == [
        ("broken", "failed", True),
        ("titanic", "submitted", False),
    ]
    assert found[1].line == "schedule titanic 20261130t050000z: submitted (job-1)"


def test_a_dry_run_goes_by_the_time_that_is_given(world):
    found = list(steps.submit_due(tick(deployment("titanic"), dry_run=True, at=MONDAY)))
    assert [each.done for each in found] == ["due"]
    assert world.sent == 0


def test_a_step_that_raises_is_a_line_and_the_next_one_goes_on():
    def broken_step(_tick):
        raise OperatorError("no answer")
        yield

    def other_step(_tick):
        yield Action("other", "job", "did", "because")

    found = list(command.actions(tick({}), (broken_step, other_step)))
    assert [each.line for each in found] == ["broken step : no answer", "other job: because"]
    assert found[0].failed


def job(state, *, created, started=None, timeout=None):
    spec = SimpleNamespace(scheduling=SimpleNamespace(timeout=timeout))
    return SimpleNamespace(
        state=SimpleNamespace(name=f"JOB_STATE_{state}"),
        create_time=created, start_time=started, job_spec=spec,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (job("QUEUED", created=NOW - timedelta(hours=3)), "QUEUED for 3h"),
        (job("PENDING", created=NOW - timedelta(hours=1)), ""),
        (
            job("RUNNING", created=NOW, started=NOW - timedelta(hours=3),
                timeout=timedelta(hours=1)),
            "its timeout is 1h",
        ),
        (job("RUNNING", created=NOW, started=NOW - timedelta(hours=3)), ""),
    ],
)  # fmt: skip
def test_jobs_that_are_late_are_named(monkeypatch, found, said):
    monkeypatch.setattr(steps.view, "is_tuning", lambda _job: False)
    text = steps._late(found, NOW)
    assert said in text
    assert bool(text) is bool(said)
