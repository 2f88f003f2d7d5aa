"""What each look at a schedule says, whole; what its resource declares and how its jobs end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.schedules.fakes import (
    MONDAY,
    OTHER,
    SCHEDULE,
    SlotProcess,
    SlotWorld,
    ports_of,
    tick,
)
from vertex_training.customjob.kinds import TUNING_JOB
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, TurnRecord
from vertex_training.customjob.request.job_file import JobRequest, Submission
from vertex_training.errors import OperatorError, PreconditionFailedError
from vertex_training.schedules import provider, slots
from vertex_training.schedules.provider import JobScheduleProvider
from vertex_training.schedules.slots import Outcome
from vertex_training.settings.cron import name_of

WEEK, MINUTE, HOUR = timedelta(weeks=1), timedelta(minutes=1), timedelta(hours=1)
FIRST, SECOND, THIRD, FOURTH = (name_of(MONDAY + week * WEEK) for week in range(4))
PLAIN = "0123456789abcdef0123"
"""Request of a job without a schedule."""


def idle(slot: str) -> Outcome:
    return Outcome("idle", "", f"next {slot}: At 06:00 on Monday (Europe/Berlin)")


def newest(world: SlotWorld) -> str:
    return list(world.jobs)[-1]


def test_paused_schedule_is_reported() -> None:
    world = SlotWorld()
    found = tick(world, MONDAY, replace(SCHEDULE, paused=True))
    assert found == [Outcome("paused", "", "paused: no slots", job="")]


def test_a_slot_whose_record_has_a_job_is_adopted_though_its_turn_is_gone() -> None:
    world = SlotWorld()
    tick(world, MONDAY)
    world.turns.clear()
    adopted = Outcome("adopted", FIRST, "was submitted already", newest(world))
    assert tick(world, MONDAY + MINUTE) == [adopted, idle(SECOND)]
    assert world.sent == 1


@pytest.mark.parametrize("theirs", ["", "gone"])
def test_record_of_another_job_is_reported_with_its_place(theirs: str) -> None:
    world = SlotWorld()
    tick(world, MONDAY, OTHER)
    schedule = replace(SCHEDULE, records="one/")
    id_ = schedule.request_id(FIRST)
    SlotProcess(world).write(IntentRecord(id_, IntentState.DONE, "x", theirs or newest(world)), 0)
    place = f"gs://control/one/submissions/{id_}.json"
    text = f"not submitted: its record names no job of it. Somebody wrote {place}?"
    assert tick(world, MONDAY, schedule) == [Outcome("failed", FIRST, text), idle(SECOND)]


def test_the_end_of_a_schedule_leaves_the_turn_of_a_job_without_one() -> None:
    world = SlotWorld()
    turn = world.turns["r/titanic"] = TurnRecord(PLAIN, 9, 2)
    assert slots.remove(SCHEDULE, ports_of(SlotProcess(world))) is None
    assert world.turns == {"r/titanic": turn}


def test_records_that_cannot_be_written_end_a_schedule_that_never_sent_anything() -> None:
    class Gone(SlotProcess):
        def write_turn(self, *given: Any) -> Any:
            raise OperatorError("the control bucket is not there")

    world = SlotWorld()
    gone = Gone(world)
    assert slots.remove(SCHEDULE, ports_of(gone), gone.sleep) is None
    tick(world, MONDAY)
    with pytest.raises(OperatorError, match="the control bucket is not there"):
        slots.remove(SCHEDULE, ports_of(gone), gone.sleep)


def test_a_schedule_that_is_always_written_meanwhile_is_left_after_a_while() -> None:
    tries: list[Any] = []

    class Late(SlotProcess):
        def write_turn(self, *given: Any) -> Any:
            tries.append(given)
            raise PreconditionFailedError

    with pytest.raises(OperatorError) as failed:
        slots.remove(SCHEDULE, ports_of(Late(SlotWorld())))
    assert str(failed.value) == "the schedule of job 'titanic' is written by others as well."
    assert len(tries) == 20


REQUEST = JobRequest(
    Submission("local-p", "r", "local", "titanic", 3), "id", '{"a":1}', frozenset(), (),
    {"labels": "team: ml"}, TUNING_JOB,
)  # fmt: skip
LEAST: dict[str, Any] = {
    "submission": {"project": "local-p", "region": "r", "stack": "local", "job": "titanic",
                   "run": 3, "section": "tuning"},
    "schedule": {"cron": "0 6 * * 1", "timeZone": "Etc/UTC", "paused": False, "missed": "latest"},
    "requestId": "id",
    "request": '{"a":1}',
    "options": {"labels": {"team": "ml"}, "controlBucket": "control", "onDelete": "keep"},
    "since": None,
}  # fmt: skip


def test_the_process_of_the_provider_tells_errors_as_the_program_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(provider, "format_exceptions", asked.append)
    request: Any = SimpleNamespace()
    JobScheduleProvider().configure(request)
    assert asked == [provider.format_exception]
    assert JobScheduleProvider.serialize_as_secret_always is False
