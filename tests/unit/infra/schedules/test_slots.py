"""Slots that are due, wait or were missed; the end of a schedule; what others wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.schedules.fakes import (
    MONDAY,
    OTHER,
    SCHEDULE,
    SlotProcess,
    SlotWorld,
    ports_of,
    tick,
)
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, TurnRecord
from vertex_training.customjob.protocol.submission import submit
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PreconditionFailedError,
)
from vertex_training.schedules import slots
from vertex_training.schedules.slots import Outcome
from vertex_training.settings.cron import Calendar, name_of

WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)


def done(outcomes):
    return [each.done for each in outcomes]


def folder(moment):
    return f"gs://artifacts/t/{name_of(moment)}"


@pytest.mark.parametrize(
    ("missed", "late", "expected", "sent"),
    [
        ("latest", MINUTE, ["missed", "submitted"], [2]),
        ("latest", timedelta(days=3), ["missed", "submitted"], [2]),
        ("skip", MINUTE, ["missed", "submitted"], [2]),
        ("skip", timedelta(minutes=61), ["missed", "idle"], []),
        ("all", timedelta(days=3), ["submitted", "waits"], [0]),
    ],
)
def test_missed_slots_follow_the_schedule(missed, late, expected, sent):
    world, schedule = SlotWorld(), replace(SCHEDULE, missed=missed)
    assert done(tick(world, MONDAY + 2 * WEEK + late, schedule)) == expected
    assert world.slots_sent == [folder(MONDAY + week * WEEK) for week in sent]


@pytest.mark.parametrize(
    ("change", "submitted", "expected"),
    [
        ({"calendar": Calendar("0 7 * * 1", "Europe/Berlin")}, False, [0]),
        ({"calendar": Calendar("0 7 * * 1", "Europe/Berlin")}, True, []),
        ({"paused": True}, False, [0]),
        ({"missed": "all"}, False, []),
    ],
)
def test_change_drops_a_due_slot_that_was_not_submitted(change, submitted, expected):
    world, now = SlotWorld(), MONDAY + MINUTE
    if submitted:
        tick(world, now)
    world.time = now.timestamp()
    process = SlotProcess(world, lambda name, when: None)
    found = slots.dropped(
        SCHEDULE, replace(SCHEDULE, **change), lambda: ports_of(process), world.time
    )
    assert found == [name_of(MONDAY + week * WEEK) for week in expected]


def test_all_missed_slots_run_one_after_the_other():
    world, schedule = SlotWorld(), replace(SCHEDULE, missed="all")
    for _ in range(6):
        tick(world, MONDAY + 2 * WEEK + MINUTE, schedule)
        assert len(world.live_jobs) <= 1
        world.end()
    assert world.slots_sent == [folder(MONDAY + week * WEEK) for week in range(3)]


def submit_late(world: SlotWorld) -> Outcome:
    """What a process does that saw Monday's slot as due, and goes on only now."""
    return slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))[0]


def test_a_late_process_does_not_submit_a_slot_that_was_passed():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    outcome = submit_late(world)
    assert outcome.done == "failed"
    assert "was skipped" in outcome.reason
    assert world.sent == 1


def test_clock_that_goes_back_submits_nothing():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    [outcome] = tick(world, MONDAY + MINUTE)
    assert outcome.done == "failed"
    assert "is in the future" in outcome.reason
    assert world.sent == 1


def test_a_refusal_is_tried_again_until_the_next_slot():
    world = SlotWorld()
    [refused] = tick(world, MONDAY, answer=NotSubmittedError("quota"), lands=False)
    assert (refused.done, refused.reason) == ("failed", "quota")
    assert done(tick(world, MONDAY + MINUTE)) == ["submitted"]
    assert world.slots_sent == [folder(MONDAY)]


def _kills():
    """Every call of a tick, before and after it."""
    world, calls = SlotWorld(), []
    tick(world, MONDAY, on_call=lambda name, when: calls.append((name, when)))
    return range(len(calls))


@pytest.mark.parametrize("dies_at", _kills())
def test_a_kill_at_any_call_costs_no_slot_and_doubles_none(dies_at):
    world, calls = SlotWorld(), iter(range(1_000))

    def die(_name, _when):
        if next(calls) == dies_at:
            raise Killed

    with pytest.raises(Killed):
        tick(world, MONDAY, on_call=die)
    for minutes in (15, 30):
        tick(world, MONDAY + timedelta(minutes=minutes))
    assert world.slots_sent == [folder(MONDAY)]


def remove(world, schedule=SCHEDULE, on_call=lambda name, when: None):
    process = SlotProcess(world, on_call)
    return slots.remove(schedule, ports_of(process), process.sleep)


def test_the_end_of_a_schedule_can_be_killed_anywhere():
    for dies_at in range(60):
        world, calls = SlotWorld(), iter(range(1_000))
        tick(world, MONDAY)

        def die(_name, _when, calls=calls, dies_at=dies_at):
            if next(calls) == dies_at:
                raise Killed

        try:
            remove(world, on_call=die)
        except Killed:
            remove(world)
        assert world.live_jobs == []
        assert world.turns["r/titanic"].request_id.endswith("-removed")


def test_a_job_without_a_schedule_waits_for_the_slot_that_runs():
    world = SlotWorld()
    tick(world, MONDAY)
    plain = replace(SCHEDULE.submission(""), request_id="0123456789abcdef0123")
    process = SlotProcess(world)
    with pytest.raises(JobRefusedError, match="earlier submission"):
        submit(plain, process, process, environment=process.environment())
    assert world.sent == 1
    remove(world)
    submit(plain, process, process, environment=process.environment())
    assert world.sent == 2
    outcome = submit_late(world)
    assert "waits" in outcome.reason
    assert world.sent == 2


FIRST, SECOND = (name_of(MONDAY + week * WEEK) for week in range(2))
PLAIN = "0123456789abcdef0123"
"""Request of a job without a schedule."""


def idle(slot: str) -> Outcome:
    return Outcome("idle", "", f"next start {slot}: At 06:00 on Monday (Europe/Berlin)")


def newest(world: SlotWorld) -> str:
    return list(world.jobs)[-1]


def test_failed_slot_is_not_submitted_again_after_a_job_without_a_schedule():
    world = SlotWorld()
    tick(world, MONDAY)
    world.end("FAILED")
    plain = replace(SCHEDULE.submission(""), request_id="0123456789abcdef0123")
    process = SlotProcess(world)
    submit(plain, process, process, environment=process.environment())
    world.end()
    submit_late(world)
    assert world.sent == 2


def test_a_slot_whose_record_has_a_job_is_adopted_though_its_turn_is_gone() -> None:
    world = SlotWorld()
    tick(world, MONDAY)
    world.turns.clear()
    adopted = Outcome("adopted", FIRST, "was already submitted", newest(world))
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
    text = f"not submitted: {place} names a job of another request. Check who wrote this object"
    assert tick(world, MONDAY, schedule) == [Outcome("failed", FIRST, text), idle(SECOND)]


def test_removed_schedule_cancels_no_job_named_by_a_forged_record():
    world = SlotWorld()
    tick(world, MONDAY, OTHER)
    [theirs] = world.live_jobs
    world.jobs[theirs] = replace(world.jobs[theirs], request_id=OTHER.request_id("x"))
    id_ = SCHEDULE.request_id(name_of(MONDAY))
    process = SlotProcess(world)
    process.write(IntentRecord(id_, IntentState.DONE, "mallory", theirs), 0)
    process.write_turn("r/titanic", id_, 1, 0)
    assert remove(world) is None
    assert world.live_jobs == [theirs]


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
    assert str(failed.value) == (
        "other processes are changing the schedule of job 'titanic'. Run the same command again."
    )
    assert len(tries) == 20
