"""Who is told, with the real engine: previews of dev and prod; jobs that fail, end and are loud.

The tests of the local stack are one story and run in order.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from localgcp.alerting import spool
from localgcp.alerting.spool import Notification
from tests.conftest import Checkout, copy_checkout
from tests.e2e.small_stacks import SmallStack, job_file
from tests.golden.inventory import goes_before, inventory
from vertex_training_cli.engine.values import UNKNOWN, redact

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

#: Of a stack file, with the project in place of ``{}``.
WATCHED = """
channels:
  oncall: {{email: ml-oncall@example.com}}
  bus: {{pubsub: projects/{}/topics/alerts}}
  slack: {{existing: projects/{}/notificationChannels/123}}
alerts: {{channels: [oncall, bus, slack], failed: true, gpuIdleBelow: 5% for 30m}}
budget: {{billingAccount: 012345-6789AB-CDEF01, usdPerMonth: 2000, channels: [oncall]}}
dashboards: {{training: {{}}}}
"""
NOISE = "for i in $(seq 100); do echo ERROR Job failed. >&2; done; exit"


def sections(project: str) -> dict[str, Any]:
    return yaml.safe_load(WATCHED.format(project, project))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = copy_checkout(tmp_path_factory.mktemp("alerts") / "checkout", sample_code=False)
    yield made
    made.run("vt", "local", "down")


def watching(preview: dict[str, Any]) -> dict[str, Any]:
    found = inventory(preview)["resources"]
    return {name: redact(each) for name, each in found.items() if name.startswith("monitoring-")}


def test_dev_and_prod_preview_alike_with_all_of_it(checkout: Checkout) -> None:
    texts = []
    for name, number in (("dev", "210987654321"), ("prod", "109876543210")):
        project = f"acme-ml-{name}"
        file = checkout.path / f"Pulumi.{name}.yaml"
        before = file.read_text()
        document = yaml.safe_load(before)
        given = {f"vertex-training:{key}": each for key, each in sections(project).items()}
        document["config"] |= given
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        preview = checkout.preview(name)
        file.write_text(before)
        found = watching(preview)
        assert {each.removeprefix("monitoring-") for each in found} == {
            *("channel-oncall", "channel-bus", "failed", "gpu-idle", "budget"),
            "dashboard-training",
        }
        assert found["monitoring-failed"]["notificationChannels"] == [
            UNKNOWN,
            UNKNOWN,
            f"projects/{project}/notificationChannels/123",
        ]
        jobs = [key for key in goes_before(preview) if key.startswith("training-")]
        assert jobs
        assert all(found.keys() <= goes_before(preview)[job] for job in jobs if job != "training")
        labels = {"userLabels": "", "labels": ""}
        text = json.dumps(
            {key: each | (labels if "userLabels" in each else {}) for key, each in found.items()}
        )
        texts.append(text.replace(project, "P").replace(number, "N").replace(name, "S"))
    assert texts[0] == texts[1]


def shell(script: str) -> dict[str, Any]:
    job = job_file()
    task = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    task["command"] = ["bash", "-c", script]
    return job


@pytest.fixture(scope="module")
def stack(checkout: Checkout) -> SmallStack:
    made = SmallStack(checkout, "watched")
    given = sections(made.project)
    del given["channels"]["slack"]
    given["alerts"]["channels"].remove("slack")
    jobs = {"fails": shell("exit 3"), "ends": shell("true"), "loud": shell(f"{NOISE} 0")}
    made.write(jobs, **given)
    return made


def told(stack: SmallStack) -> list[Notification]:
    return spool.read(stack.checkout.home / "notifications")


def test_of_three_jobs_the_one_that_fails_is_told(checkout: Checkout, stack: SmallStack) -> None:
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
    for file in (checkout.home / "notifications").glob("*.eml"):  # its date is that of the line
        assert file.stat().st_mtime - told(stack)[0].time.timestamp() < 5 + 1
    shown = checkout.shell(f"vt jobs show {ids.pop()} --stack watched").stdout
    assert "fails" in shown
    assert "status of 3" in shown


def test_its_log_has_the_line_of_the_service(checkout: Checkout, stack: SmallStack) -> None:
    assert "Job failed." in checkout.shell("vt jobs logs fails --stack watched").stdout
    assert "Job failed." not in checkout.shell("vt jobs logs ends --stack watched").stdout


def test_the_status_says_what_was_told_and_what_nobody_judges(checkout: Checkout) -> None:
    said = " ".join(checkout.run("vt", "local", "status").stdout.split())
    assert "notifications: 2 in" in said
    assert spool.STAND_IN in said
    assert "not judged here: Accelerators of a job below 5% for 30m (watched)" in said
    assert "not judged here: Training watched" in said


def test_a_channel_that_leaves_is_a_loss_in_the_review(stack: SmallStack) -> None:
    given = sections(stack.project)
    jobs = {"fails": shell("exit 3"), "ends": shell("true"), "loud": shell(f"{NOISE} 0")}
    given["channels"] = {"oncall": given["channels"]["oncall"]}
    given["alerts"] = {"channels": ["oncall"], "gpuIdleBelow": "5% for 30m"}
    del given["budget"]
    stack.write(jobs, **given)
    said = stack.checkout.shell("vt review --stack watched", expect=None).stdout
    assert "no longer told" in said
    for gone in ("A job failed (watched)", "pubsub projects/local-watched/topics/alerts", "budget"):
        assert gone in said


def test_without_the_sections_all_of_it_goes(stack: SmallStack) -> None:
    jobs = {"fails": shell("exit 3"), "ends": shell("true"), "loud": shell(f"{NOISE} 0")}
    stack.write(jobs)
    stack.pulumi("up --yes --skip-preview")
    left = stack.checkout.left(stack.project).values()
    assert not [type_ for type_ in left if "monitoring" in type_ or "billing" in type_]
    assert stack.pulumi("preview --expect-no-changes")
