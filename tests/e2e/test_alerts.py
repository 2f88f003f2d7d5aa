"""Tests notifications about failed, ended and noisy jobs, with the real engine.

The tests are one story and run in order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from localgcp import alerting
from localgcp.alerting import Notification
from tests.conftest import Checkout, copy_checkout
from tests.e2e.small_stacks import SmallStack, job_file

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

#: Of a stack file, with the project in place of ``{}``.
WATCHED = """
channels:
  oncall: {{email: ml-oncall@example.com}}
  bus: {{pubsub: projects/{}/topics/alerts}}
alerts: {{channels: [oncall, bus], failed: true, gpuIdleBelow: 5% for 30m}}
budget: {{billingAccount: 012345-6789AB-CDEF01, usdPerMonth: 2000, channels: [oncall]}}
dashboards: {{training: {{}}}}
"""
NOISE = "for i in $(seq 100); do echo ERROR Job failed. >&2; done; exit"


def sections(project: str) -> dict[str, Any]:
    return yaml.safe_load(WATCHED.format(project))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = copy_checkout(tmp_path_factory.mktemp("alerts") / "checkout", sample_code=False)
    yield made
    made.run("vt", "local", "down")


def shell(script: str) -> dict[str, Any]:
    job = job_file()
    task = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    task["command"] = ["bash", "-c", script]
    return job


JOBS = {"fails": shell("exit 3"), "ends": shell("true"), "loud": shell(f"{NOISE} 0")}


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "watched")
    made.write(JOBS, **sections(made.project))
    return made


def told(stack: SmallStack) -> list[Notification]:
    return alerting.read_notifications(stack.checkout.home / "notifications")


def test_only_the_failed_of_three_jobs_is_notified(checkout: Checkout, stack: SmallStack) -> None:
    checkout.run("vt", "local", "up", "--stack", "watched", expect=None)
    deadline = time.monotonic() + 60
    while not told(stack) and time.monotonic() < deadline:
        time.sleep(0.1)
    ids = {each.labels["job_id"] for each in told(stack)}
    assert {each.channel for each in told(stack)} == {
        "email ml-oncall@example.com",
        f"pubsub projects/{stack.project}/topics/alerts",
    }
    assert len(ids) == 1
    for file in (checkout.home / "notifications").glob("*.json"):  # its date is that of the line
        assert file.stat().st_mtime - told(stack)[0].time.timestamp() < 5 + 1
    shown = checkout.shell(f"vt jobs show {ids.pop()} --stack watched").stdout
    assert "fails" in shown
    assert "status of 3" in shown


def test_log_of_a_failed_job_has_the_line_of_the_service(
    checkout: Checkout, stack: SmallStack
) -> None:
    assert "Job failed." in checkout.shell("vt jobs logs fails --stack watched").stdout
    assert "Job failed." not in checkout.shell("vt jobs logs ends --stack watched").stdout


def test_status_lists_notifications_and_unevaluated_alerts(checkout: Checkout) -> None:
    said = " ".join(checkout.run("vt", "local", "status").stdout.split())
    assert "notifications: 2 in" in said
    assert alerting.STAND_IN in said
    assert "alert not evaluated locally: Accelerators of a job below 5% for 30m (watched)" in said
    assert "alert not evaluated locally: Training watched" in said


@pytest.mark.nightly
def test_removed_channel_is_a_loss_in_the_review(stack: SmallStack) -> None:
    given = sections(stack.project)
    given["channels"] = {"oncall": given["channels"]["oncall"]}
    given["alerts"] = {"channels": ["oncall"], "gpuIdleBelow": "5% for 30m"}
    del given["budget"]
    stack.write(JOBS, **given)
    said = stack.checkout.shell("vt review --stack watched", expect=None).stdout
    assert "notifications reduced" in said
    for gone in ("A job failed (watched)", "pubsub projects/local-watched/topics/alerts", "budget"):
        assert gone in said


@pytest.mark.nightly
def test_removal_of_the_alert_sections_deletes_all_alert_resources(stack: SmallStack) -> None:
    stack.write(JOBS)
    stack.pulumi("up --yes --skip-preview")
    left = stack.checkout.left(stack.project).values()
    assert not [type_ for type_ in left if "monitoring" in type_ or "billing" in type_]
    assert stack.pulumi("preview --expect-no-changes")
