"""Alerts on lines of jobs' logs: what is told, once, and of what nobody is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localgcp import alerting
from localgcp.alerting import Alerting
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, StoredResource
from localgcp.tuning.service import Tuning
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobRecord
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until

FAILED = (
    'resource.type="ml_job" AND resource.labels.task_name="service" AND textPayload="Job failed."'
)
MAIL = f"projects/{PROJECT}/notificationChannels/1"
TEXT = "vt jobs show ${log.extracted_label.job_id}, ${resource.labels.task_name}, ${other}"
NOISE = 'i=0; while [ $i -lt 100 ]; do echo "ERROR Job failed. $i" >&2; i=$((i+1)); done; '
Declare = Callable[..., None]


def inputs(filter_: str, **changes: Any) -> dict[str, Any]:
    match = {"filter": filter_, "labelExtractors": {"job_id": "EXTRACT(resource.labels.job_id)"}}
    return {
        "displayName": "A job failed",
        "conditions": [{"conditionMatchedLog": match}],
        "notificationChannels": [MAIL],
        "documentation": {"content": TEXT},
        "alertStrategy": {"notificationRateLimit": {"period": "300s"}},
        **changes,
    }


@pytest.fixture
def declare(cloud: Cloud) -> Declare:
    """Puts an alert where the plugin keeps it; it is as old as is said."""
    channel = {"type": "email", "labels": {"email_address": "ml@example.com"}}
    cloud.store.put(CHANNEL, MAIL, PROJECT, channel, {})

    def put(filter_: str = FAILED, number: int = 7, project: str = PROJECT, **more: Any) -> None:
        time = more.pop("created", datetime.now(UTC) - timedelta(hours=1))
        record = [{"mutateTime": time.isoformat()}]
        id_ = f"projects/{project}/alertPolicies/{number}"
        outputs = {"creationRecords": record}
        cloud.store.put(ALERT_POLICY, id_, project, inputs(filter_, **more), outputs)

    return put


def looking(cloud: Cloud) -> Alerting:
    """As the server makes it; it does not run."""
    tuning = Tuning(cloud.home)
    logs = LogService(cloud.home, cloud.store, cloud.jobs, tuning=tuning)

    def every() -> list[JobRecord]:
        return [*cloud.jobs.list(), *tuning.table.list()]

    return Alerting(cloud.home, cloud.store, every, tuning.is_trial, logs.matching)


def told(cloud: Cloud) -> list[alerting.Notification]:
    return alerting.read_notifications(cloud.home.notifications)


def run(cloud: Cloud, script: str) -> str:
    """Id of a job that ran the script."""
    return cloud.run(command_job("sh", "-c", script)).name.rpartition("/")[2]


def test_a_failed_job_is_told_once_and_how_to_get_the_reason(
    cloud: Cloud, declare: Declare
) -> None:
    declare()
    job = run(cloud, f"{NOISE} exit 3")
    looker = looking(cloud)
    looker.look()
    looker.look()

    [found] = told(cloud)
    assert (found.title, found.channel) == ("A job failed", "email ml@example.com")
    assert found.labels == {"job_id": job}
    [file] = cloud.home.notifications.glob("*.json")
    body = file.read_text()
    assert f"vt jobs show {job}, service, ${{other}}" in body
    assert f'"note": "{alerting.STAND_IN}"' in body
    assert file.stat().st_mode & 0o077 == 0


def test_what_was_told_is_not_told_again_by_the_next_server(cloud: Cloud, declare: Declare) -> None:
    declare()
    run(cloud, "exit 3")
    looking(cloud).look()
    (cloud.home.notifications / ".looked").unlink()
    looking(cloud).look()
    assert len(told(cloud)) == 1


def test_a_channel_that_is_gone_is_told_as_nobody(cloud: Cloud, declare: Declare) -> None:
    declare()
    cloud.store.delete(CHANNEL, MAIL)
    run(cloud, "exit 3")
    looking(cloud).look()
    assert told(cloud)[0].channel == f"no recipient: channel {MAIL} does not exist"


def test_the_thread_tells_within_five_seconds_and_looks_a_last_time(
    cloud: Cloud, declare: Declare
) -> None:
    declare()
    looker = looking(cloud)
    looker.start()
    run(cloud, "exit 3")
    wait_until(lambda: bool(told(cloud)), 5)
    assert len(told(cloud)) == 1
    run(cloud, "exit 4")
    looker.stop()
    assert len(told(cloud)) == 2


ID = "projects/local-training/alertPolicies/7"
TIME = "2026-11-24T10:00:00+00:00"
FILTER = 'resource.type="ml_job" AND textPayload="Job failed."'
MATCH: dict[str, Any] = {
    "filter": FILTER,
    "labelExtractors": {
        "job": "EXTRACT(resource.labels.job_id)",
        "task": "EXTRACT(resource.labels.task_name)",
    },
}


def declared(type_: str = ALERT_POLICY, **inputs: Any) -> StoredResource:
    given = {"conditions": [{"conditionMatchedLog": MATCH}], "displayName": "Failed"} | inputs
    outputs = {"creationRecords": [{"mutateTime": TIME}, {"mutateTime": "2020-01-01T00:00:00Z"}]}
    return StoredResource(type_, ID, "local-training", given, outputs)


@pytest.mark.parametrize(
    ("given", "others"),
    [
        (declared(BUDGET), {"Failed": "the local cloud has no costs"}),
        (declared(enabled=False), {}),
        (declared(conditions=[{"conditionThreshold": {}}]),
         {"Failed": "the local cloud has no metrics"}),
        (declared(conditions=[{"conditionMatchedLog": {**MATCH, "labelExtractors": {
            "a": "REGEXP_EXTRACT(textPayload)"}}}]),
         {"Failed": "the local cloud does not support the extractor REGEXP_EXTRACT("
                    "textPayload)"}),
        (declared(conditions=[{"conditionMatchedLog": {"filter": 'resource.type="gce_instance"'}}]),
         {"Failed": "the local cloud evaluates only log lines of ml_job, not of gce_instance"}),
        (declared(conditions=[{"conditionMatchedLog": {"filter": "severity>=ERROR"}}]),
         {"Failed": "Unparseable filter: the local cloud does not support the field 'severity'."}),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_not_and_it_is_said_why(
    given: StoredResource, others: dict[str, str]
) -> None:
    assert alerting.read_alerts([given]) == ([], others)
