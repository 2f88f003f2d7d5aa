"""Alerts on lines of jobs' logs: what is told, once, and of what nobody is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from localgcp.alerting import policies, spool
from localgcp.alerting.evaluation import Alerting
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL
from localgcp.tuning.service import Tuning
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobRecord
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until
from tests.unit.localcloud.tuning import studies

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


def told(cloud: Cloud) -> list[spool.Notification]:
    return spool.read(cloud.home.notifications)


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
    [file] = cloud.home.notifications.glob("*.eml")
    body = file.read_text()
    assert f"vt jobs show {job}, service, ${{other}}" in body
    assert f"X-Local-Cloud: {spool.STAND_IN}" in body
    assert file.stat().st_mode & 0o077 == 0


def test_a_job_that_succeeds_tells_nobody_whatever_it_prints(
    cloud: Cloud, declare: Declare
) -> None:
    declare()
    run(cloud, f"{NOISE} exit 0")
    looking(cloud).look()
    assert told(cloud) == []


def test_the_noise_is_seen_by_an_alert_that_asks_for_it_and_told_once(
    cloud: Cloud, declare: Declare
) -> None:
    """What the tests above do not tell of was there to be told."""
    declare('textPayload:"ERROR"', number=8, displayName="noise")
    run(cloud, f"{NOISE} exit 0")
    looking(cloud).look()
    assert [each.title for each in told(cloud)] == ["noise"]


def test_what_was_told_is_not_told_again_by_the_next_server(cloud: Cloud, declare: Declare) -> None:
    declare()
    run(cloud, "exit 3")
    looking(cloud).look()
    (cloud.home.notifications / ".looked").unlink()
    looking(cloud).look()
    assert len(told(cloud)) == 1


def test_a_job_that_failed_while_no_server_looked_is_told_by_the_next(
    cloud: Cloud, declare: Declare
) -> None:
    declare()
    looking(cloud).look()
    run(cloud, "exit 3")
    looking(cloud).look()
    assert len(told(cloud)) == 1


def test_what_failed_before_the_alert_was_there_is_not_told(cloud: Cloud, declare: Declare) -> None:
    run(cloud, "exit 3")
    declare(created=datetime.now(UTC))
    looking(cloud).look()
    assert told(cloud) == []


@pytest.mark.parametrize(
    "more", [{"project": "local-other"}, {"enabled": False}], ids=["project", "off"]
)
def test_neither_another_projects_alert_nor_one_that_is_off_tells(
    cloud: Cloud, declare: Declare, more: dict[str, Any]
) -> None:
    declare(**more)
    run(cloud, "exit 3")
    looking(cloud).look()
    assert told(cloud) == []


def test_two_stacks_with_alerts_in_one_project_tell_each(cloud: Cloud, declare: Declare) -> None:
    declare(number=7, displayName="A job failed (one)")
    declare(number=8, displayName="A job failed (two)")
    run(cloud, "exit 3")
    looking(cloud).look()
    assert sorted(each.title[-5:] for each in told(cloud)) == ["(one)", "(two)"]


def test_two_jobs_that_fail_at_once_are_both_told(cloud: Cloud, declare: Declare) -> None:
    declare()
    jobs = {run(cloud, "exit 3"), run(cloud, "exit 4")}
    looking(cloud).look()
    assert {each.labels["job_id"] for each in told(cloud)} == jobs


def test_a_tuning_job_that_fails_is_told_and_none_of_its_trials(
    cloud: Cloud, declare: Declare
) -> None:
    declare()
    done = studies.run(cloud, studies.tuning(studies.python("raise SystemExit(3)")))
    assert done.state == studies.JobState.JOB_STATE_FAILED
    looking(cloud).look()
    assert [each.labels["job_id"] for each in told(cloud)] == [done.name.rpartition("/")[2]]


def test_within_the_period_an_alert_without_labels_tells_of_one(
    cloud: Cloud, declare: Declare
) -> None:
    declare(conditions=[{"conditionMatchedLog": {"filter": FAILED}}])
    run(cloud, "exit 3")
    run(cloud, "exit 4")
    looking(cloud).look()
    assert len(told(cloud)) == 1


def test_names_of_others_write_no_header(cloud: Cloud, declare: Declare) -> None:
    declare(displayName="x\r\nBcc: all@example.com\n\nbody")
    run(cloud, "exit 3")
    looking(cloud).look()
    [file] = cloud.home.notifications.glob("*.eml")
    assert not re.search("^Bcc", file.read_text(), re.MULTILINE)
    assert told(cloud)[0].title == "x Bcc: all@example.com body"


def test_a_channel_that_is_gone_is_told_as_nobody(cloud: Cloud, declare: Declare) -> None:
    declare()
    cloud.store.delete(CHANNEL, MAIL)
    run(cloud, "exit 3")
    looking(cloud).look()
    assert told(cloud)[0].channel == f"nobody: {MAIL} is not there"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"conditions": [{"conditionThreshold": {"filter": "x"}}]}, "no metrics"),
        (inputs("severity>=ERROR"), "severity"),
        (inputs("resource.type=~x"), "no regular expressions"),
        (inputs("jsonPayload.a=1"), "jsonPayload.a"),
        (inputs('resource.type="build" AND textPayload:"x"'), "not of build"),
        (
            {
                "conditions": [
                    {
                        "conditionMatchedLog": {
                            "filter": FAILED,
                            "labelExtractors": {"a": 'REGEXP_EXTRACT(textPayload, "(.*)")'},
                        }
                    }
                ]
            },
            "REGEXP_EXTRACT",
        ),
    ],
)
def test_an_alert_that_cannot_be_judged_is_listed_with_the_reason(
    cloud: Cloud, declare: Declare, changes: dict[str, Any], why: str
) -> None:
    declare(**{**changes, "displayName": "odd"})
    alerts, others = policies.read(cloud.store.list(ALERT_POLICY))
    assert alerts == []
    assert why in others["odd"]


def test_a_budget_is_listed_as_not_judged(cloud: Cloud) -> None:
    cloud.store.put(BUDGET, "b", PROJECT, {"displayName": "Training dev"}, {})
    assert policies.read(cloud.store.list())[1] == {"Training dev": "nothing costs anything here"}


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
