"""Slots that are due, wait or were missed; the end of a schedule; what others wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.infra.customjob.fakes import Killed
from tests.unit.infra.schedules.fakes import (
    MONDAY,
    OTHER,
    SCHEDULE,
    SINCE,
    SlotProcess,
    SlotWorld,
    ports_of,
    tick,
)
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, TurnRecord
from vertex_training.customjob.protocol.submission import submit
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
)
from vertex_training.schedules import slots
from vertex_training.settings.cron import name_of

WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)


def done(outcomes):
    return [each.done for each in outcomes]


def folder(moment):
    return f"gs://artifacts/t/{name_of(moment)}"


def test_nothing_runs_before_its_slot_and_one_job_after_it():
    world = SlotWorld()
    [early] = tick(world, MONDAY - MINUTE)
    assert early.done == "idle"
    assert early.reason.startswith("next 20261130t050000z: ")
    assert "Europe/Berlin" in early.reason
    [outcome] = tick(world, MONDAY)
    assert (outcome.done, outcome.slot) == ("submitted", "20261130t050000z")
    assert world.slots_sent == [folder(MONDAY)]
    assert done(tick(world, MONDAY + MINUTE)) == ["idle"]
    assert world.sent == 1


def test_a_slot_carries_its_time_in_id_label_and_folder():
    request = SCHEDULE.submission("20261130t050000z")
    assert request.request_id.startswith("20261130t050000z-")
    assert request.labels["vt-slot"] == "20261130t050000z"
    assert len(request.request_id) <= 63
    assert "${" not in request.body
    other = replace(SCHEDULE, request=SCHEDULE.request.replace("local-titanic", "new"))
    assert other.submission("20261130t050000z").request_id == request.request_id
    assert OTHER.submission("20261130t050000z").request_id != request.request_id


def test_slots_up_to_the_deployment_never_run():
    world = SlotWorld()
    late = replace(SCHEDULE, since=name_of(MONDAY), missed="all")
    assert done(tick(world, MONDAY + MINUTE, late)) == ["idle"]


def test_a_slot_waits_for_the_job_before_it():
    world = SlotWorld()
    tick(world, MONDAY)
    [outcome] = tick(world, MONDAY + WEEK)
    assert outcome.done == "waits"
    assert "slot 20261130t050000z is PENDING" in outcome.reason
    world.end()
    assert done(tick(world, MONDAY + WEEK + MINUTE)) == ["submitted"]
    assert world.slots_sent == [folder(MONDAY), folder(MONDAY + WEEK)]


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
def test_missed_slots_are_what_the_schedule_says(missed, late, expected, sent):
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


def test_a_slot_that_failed_is_not_submitted_once_more():
    world = SlotWorld()
    tick(world, MONDAY)
    world.end("FAILED")
    assert done(tick(world, MONDAY + MINUTE)) == ["idle"]
    tick(world, MONDAY + WEEK)
    world.end("FAILED")
    late = SlotProcess(world)  # it saw the first slot as due, and goes on only now
    outcome, _ = slots._submit(SCHEDULE, ports_of(late), name_of(MONDAY))
    assert outcome.done == "failed"
    assert "was passed" in outcome.reason
    assert world.sent == 2


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "SUCCEEDED"])
def test_a_job_that_ended_before_anybody_knew_of_it_is_its_slots(state):
    world = SlotWorld()
    with pytest.raises(Killed):
        tick(world, MONDAY, on_call=_dies_after_create)
    world.end(state)
    edited = replace(SCHEDULE, request=SCHEDULE.request.replace("local-titanic", "new"))
    assert done(tick(world, MONDAY + timedelta(minutes=15), edited)) == ["adopted"]
    assert done(tick(world, MONDAY + WEEK, edited)) == ["submitted"]
    assert world.sent == 2


def test_a_late_process_does_not_submit_a_slot_that_was_passed():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    outcome, _ = slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))
    assert outcome.done == "failed"
    assert "was passed" in outcome.reason
    assert world.sent == 1


def test_a_clock_that_goes_back_submits_nothing_and_says_so():
    world = SlotWorld()
    tick(world, MONDAY + WEEK)
    world.end()
    [outcome] = tick(world, MONDAY + MINUTE)
    assert outcome.done == "failed"
    assert "still to come" in outcome.reason
    assert world.sent == 1


def test_an_edit_between_fence_and_answer_gives_a_slot_no_second_job():
    world, edited = SlotWorld(), replace(SCHEDULE, request=SCHEDULE.request.replace("l-t", "x"))
    tick(world, MONDAY, answer=InDoubtError("lost"))
    assert world.sent == 1
    for _ in range(3):
        tick(world, MONDAY + timedelta(minutes=10), edited)
    assert world.sent == 1


def _dies_after_create(name, when):
    if (name, when) == ("create", "after"):
        raise Killed


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


def test_the_end_of_a_schedule_cancels_its_job_and_leaves_late_processes_nothing():
    world = SlotWorld()
    tick(world, MONDAY)
    cancelled = remove(world)
    assert cancelled is not None
    assert cancelled.state == "JOB_STATE_CANCELLED"
    world = SlotWorld()
    world.time = (MONDAY + MINUTE).timestamp()
    assert remove(world) is None
    assert done(tick(world, MONDAY + MINUTE)) == ["idle"]
    outcome, _ = slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))
    assert "was passed" in outcome.reason
    assert world.sent == 0


def test_the_end_of_a_schedule_waits_for_a_request_under_way():
    world = SlotWorld()

    def die(name, when):
        if (name, when) == ("create", "after"):
            raise Killed

    with pytest.raises(Killed):
        tick(world, MONDAY, on_call=die)
    cancelled = remove(world)
    assert cancelled is not None
    assert world.live_jobs == []


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


def test_a_slot_that_failed_is_not_sent_again_after_a_job_without_a_schedule():
    world = SlotWorld()
    tick(world, MONDAY)
    world.end("FAILED")
    plain = replace(SCHEDULE.submission(""), request_id="0123456789abcdef0123")
    process = SlotProcess(world)
    submit(plain, process, process, environment=process.environment())
    world.end()
    slots._submit(SCHEDULE, ports_of(SlotProcess(world)), name_of(MONDAY))
    assert world.sent == 2


def test_a_schedule_that_goes_leaves_a_job_without_one_alone():
    world = SlotWorld()
    tick(world, MONDAY)
    world.turns["r/titanic"] = TurnRecord("0123456789abcdef0123", 9, 2)
    assert remove(world) is None
    assert world.live_jobs


def test_a_forged_record_makes_the_end_cancel_no_job_of_others():
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


def test_a_turn_that_was_deleted_doubles_no_slot():
    world, schedule = SlotWorld(), replace(SCHEDULE, missed="all")
    tick(world, MONDAY, schedule)
    world.end()
    tick(world, MONDAY + WEEK, schedule)
    world.end("FAILED")
    world.turns.clear()
    for _ in range(4):
        tick(world, MONDAY + 2 * WEEK, schedule)
        world.end()
    assert world.slots_sent == [folder(MONDAY + week * WEEK) for week in range(3)]


def test_a_bucket_that_is_gone_keeps_no_schedule_from_ending():
    class Gone(SlotProcess):
        def write_turn(self, *given):
            raise OperatorError("404")

    assert slots.remove(SCHEDULE, ports_of(Gone(SlotWorld()))) is None


def test_since_is_the_floor_of_what_is_next():
    assert SCHEDULE.next(SINCE - WEEK, 1) == [MONDAY]
    assert replace(SCHEDULE, paused=True).next(SINCE, 5) == []
