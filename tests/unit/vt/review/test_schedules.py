"""Schedules in a review: when, next slots, the worst month; what changes, and what ends."""

import json
from datetime import UTC, datetime

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


def test_the_report_says_it_where_a_reviewer_looks():
    found = report.build(plan("create"), source="here")
    assert "schedule titanic: at most $1.09 a month (5 slots)" in verdict(found)
    assert "$1.09 a month" in answer(found, "what it can cost")
    text = markdown.render(found)
    assert "Europe/Berlin" in text
    assert "vt jobs advance" in text
    assert json_report.document(found)["schedules"][0]["missed"] == "latest"


def test_a_pause_costs_nothing_and_has_no_slots():
    [change] = schedules.schedule_changes(plan("create", paused=True), NOW)
    assert change.slots == ()
    assert change.cost.startswith("nothing while it is paused")


def event(op, old=None, new=None):
    return plans.step(op, SCHEDULE, "training-titanic-schedule", old, new)
