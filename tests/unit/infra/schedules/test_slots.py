"""Slots that are due, wait or were missed; the end of a schedule; what others wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.schedules.fakes import (
    MONDAY,
    SCHEDULE,
    SlotProcess,
    SlotWorld,
    ports_of,
    tick,
)
from vertex_training.customjob.protocol.submission import submit
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
)
from vertex_training.schedules import slots
from vertex_training.settings.cron import name_of

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


def test_all_missed_slots_run_one_after_the_other():
    world, schedule = SlotWorld(), replace(SCHEDULE, missed="all")
    for _ in range(6):
        tick(world, MONDAY + 2 * WEEK + MINUTE, schedule)
        assert len(world.live_jobs) <= 1
        world.end()
    assert world.slots_sent == [folder(MONDAY + week * WEEK) for week in range(3)]


def test_a_late_process_does_not_submit_a_slot_that_was_passed():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    outcome, _ = slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))
    assert outcome.done == "failed"
    assert "was passed" in outcome.reason
    assert world.sent == 1


def test_clock_that_goes_back_submits_nothing():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    [outcome] = tick(world, MONDAY + MINUTE)
    assert outcome.done == "failed"
    assert "still to come" in outcome.reason
    assert world.sent == 1


def test_a_refusal_is_tried_again_until_the_next_slot():
    world = SlotWorld()
    [refused] = tick(world, MONDAY, answer=NotSubmittedError("quota"), lands=False)
    assert (refused.done, refused.reason) == ("failed", "quota")
    assert done(tick(world, MONDAY + MINUTE)) == ["submitted"]
    assert world.slots_sent == [folder(MONDAY)]


def test_a_dry_run_writes_nothing():
    world = SlotWorld()
    assert done(tick(world, MONDAY, dry_run=True)) == ["due"]
    assert (world.sent, world.turns, world.records) == (0, {}, {})


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
    outcome, _ = slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))
    assert "waits" in outcome.reason
    assert world.sent == 2
