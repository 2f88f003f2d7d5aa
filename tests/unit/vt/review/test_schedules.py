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
