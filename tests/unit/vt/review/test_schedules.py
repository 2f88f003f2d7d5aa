"""Schedules in a review: when, next slots, the worst month; what changes, and what ends."""

import json
from datetime import UTC, datetime

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training_cli.review import json_report, markdown, report, schedules
from vertex_training_cli.review.headline import answers, verdict

NOW = datetime(2026, 11, 26, tzinfo=UTC)
MESSAGE = {
    "displayName": "titanic",
    "jobSpec": {
        "serviceAccount": "trainer@p.iam.gserviceaccount.com",
        "scheduling": {"timeout": "3600s"},
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-4"},
                "replicaCount": "1",
                "containerSpec": {"imageUri": "us-docker.pkg.dev/p/r/titanic@sha256:" + "a" * 64},
            }
        ],
    },
}


def inputs(message=MESSAGE, **schedule):
    return {
        "submission": {"project": "p", "region": "us-central1", "stack": "dev", "job": "titanic",
                       "run": 1, "section": "jobs"},
        "schedule": {"cron": "0 6 * * 1", "timeZone": "Europe/Berlin", "paused": False,
                     "missed": "latest", **schedule},
        "requestId": "0" * 20,
        "request": json.dumps(message),
        "options": {"labels": {}, "controlBucket": "control", "onDelete": "keep"},
    }  # fmt: skip


def plan(op, **given):
    events = {
        "create": lambda: plans.create(SCHEDULE, "training-titanic-schedule", **inputs(**given)),
        "delete": lambda: plans.delete(SCHEDULE, "training-titanic-schedule", **inputs(**given)),
    }
    return plans.plan(events[op]())


def answer(found, question):
    return next(e.text for e in answers(found, lambda t, _=0: t) if e.question == question)


def test_a_schedule_that_begins_names_its_slots_and_its_worst_month():
    [change] = schedules.schedule_changes(plan("create"), NOW)
    assert change.action == "begin"
    assert change.slots == (
        "2026-11-30 05:00", "2026-12-07 05:00", "2026-12-14 05:00", "2026-12-21 05:00",
        "2026-12-28 05:00",
    )  # fmt: skip
    # n1-standard-4 in us-central1: 0.21849885 USD an hour with the fee of Vertex AI; 5 Mondays
    assert change.most_a_month == 5
    assert change.worst_month_usd == pytest.approx(5 * 0.21849885, rel=1e-3)


def test_the_report_says_it_where_a_reviewer_looks():
    found = report.build(plan("create"), source="here")
    assert "schedule titanic: at most $1.09 a month (5 slots)" in verdict(found)
    assert "$1.09 a month" in answer(found, "what it can cost")
    text = markdown.render(found)
    assert "Europe/Berlin" in text
    assert "vt jobs advance" in text
    assert json_report.document(found)["schedules"][0]["missed"] == "latest"


def test_what_is_lost_with_a_schedule_is_said():
    found = report.build(plan("delete"), source="here")
    [change] = found.schedules
    assert change.slots == ()
    assert "schedule titanic ends" in verdict(found)
    assert "schedule titanic ends" in answer(found, "what stops")
    assert "nothing is submitted any more" in markdown.render(found)
    assert not found.nothing


def test_a_pause_costs_nothing_and_has_no_slots():
    [change] = schedules.schedule_changes(plan("create", paused=True), NOW)
    assert change.slots == ()
    assert change.cost.startswith("nothing while it is paused")


@pytest.mark.parametrize("cron", ["", "no cron", "0 0 31 2 *", "\x1b[2J", None, {"a": 1}])
def test_inputs_that_no_program_of_ours_wrote_break_no_report(cron):
    [change] = schedules.schedule_changes(plan("create", cron=cron), NOW)
    assert (change.words, change.slots, change.most_a_month) == ("no cron line", (), 0)


def test_reports_without_schedules_have_no_word_of_them():
    found = report.build(plans.plan(), source="here")
    assert "schedules" not in json_report.document(found)


def event(op, old=None, new=None):
    return plans.step(op, SCHEDULE, "training-titanic-schedule", old, new)


@pytest.mark.parametrize(
    ("op", "action", "slots"),
    [("create", "begin", 5), ("update", "change", 5), ("delete", "end", 0), ("same", "keep", 5)],
)
def test_a_schedule_is_told_whole(op, action, slots):
    given = inputs()
    sides = {"create": (None, given), "delete": (given, None)}.get(op, (given, given))
    [found] = schedules.schedule_changes(plans.plan(event(op, *sides)), NOW)
    image = MESSAGE["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["imageUri"]
    assert found == schedules.ScheduleChange(
        name="titanic", action=action, words=found.words, paused=False, missed="latest",
        slots=tuple(f"2026-{day} 05:00" for day in
                    ("11-30", "12-07", "12-14", "12-21", "12-28"))[:slots],
        most_a_month=5, worst_month_usd=found.worst_month_usd,
        account="trainer@p.iam.gserviceaccount.com", images=(image,), differences=(),
    )  # fmt: skip
    assert found.worst_month_usd == pytest.approx(5 * 0.21849885)
    assert found.cost == "at most $1.09 a month (5 slots)"


def test_what_changes_is_the_calendar_then_what_every_slot_submits():
    other = json.loads(json.dumps(MESSAGE))
    other["jobSpec"]["scheduling"]["timeout"] = "60s"
    new = inputs(other, cron="0 7 * * 1", paused=True)
    [found] = schedules.schedule_changes(plans.plan(event("update", inputs(), new)), NOW)
    assert [(each.path, each.old, each.new) for each in found.differences] == [
        ("cron", "0 6 * * 1", "0 7 * * 1"),
        ("paused", "false", "true"),
        ("jobSpec.scheduling.timeout", "3600s", "60s"),
    ]
    assert found.cost == "nothing while it is paused, $0.02 a month afterwards"
    [same] = schedules.schedule_changes(plans.plan(event("same", inputs(), new)), NOW)
    assert same.differences == ()


def test_a_schedule_without_a_price_or_a_zone_says_so():
    bare = {"jobSpec": {}}
    [found] = schedules.schedule_changes(plan("create", message=bare), NOW)
    assert (found.worst_month_usd, found.account, found.images) == (None, "", ())
    assert found.cost == "at most no price a month (5 slots)"
    [lost] = schedules.schedule_changes(plan("create", timeZone="Mars/Base"), NOW)
    assert (lost.words, lost.slots, lost.most_a_month) == ("no cron line", (), 0)
    [empty] = schedules.schedule_changes(plans.plan(plans.create(SCHEDULE, "x")), NOW)
    assert (empty.name, empty.missed, empty.paused) == ("x", "", False)


def test_costs_are_of_what_begins_or_changes_and_ends_of_what_ends():
    def named(name):
        given = inputs()
        return {**given, "submission": {**given["submission"], "job": name}}

    def made(op, name, *sides):
        return plans.step(op, SCHEDULE, name, *sides)

    found = schedules.schedule_changes(
        plans.plan(
            made("delete", "d", named("d"), None),
            made("create", "c", None, named("c")),
            made("same", "b", named("b"), named("b")),
            made("update", "a", named("a"), named("a")),
        ),
        NOW,
    )
    assert [each.name for each in found] == ["a", "b", "c", "d"]
    costs = schedules.costs_in_words(found, lambda text, _=0: f"'{text}'")
    assert costs == [f"schedule '{n}': at most $1.09 a month (5 slots)" for n in "ac"]
    assert schedules.ends_in_words(found, lambda text, _=0: f"'{text}'") == ["schedule 'd' ends"]


def test_a_schedule_costs_what_its_region_does():
    given = inputs()
    given["submission"]["region"] = "europe-west4"
    [found] = schedules.schedule_changes(plans.plan(event("create", None, given)), NOW)
    # n1-standard-4 in europe-west4: 0.2091680 USD an hour, 15 % more with the fee of Vertex AI
    assert found.worst_month_usd == pytest.approx(5 * 0.2091680 * 1.15)
