"""Tests a job with a schedule in the local cloud, from deployment to removal; one story,
in order.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import Checkout
from tests.e2e.small_stacks import SmallStack, job_file
from vertex_training.settings.cron import Calendar, name_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

#: Weekly, on the day in three days: whenever the tests run, no slot is near.
SCHEDULE = {
    "cron": f"0 6 * * {(datetime.now(UTC) + timedelta(days=3)).isoweekday() % 7}",
    "timeZone": "Europe/Berlin",
}
SLOTS = Calendar(SCHEDULE["cron"], SCHEDULE["timeZone"]).next(datetime.now(UTC), 3)
FIRST, SECOND, THIRD = (slot.isoformat() for slot in SLOTS)
NAMES = [name_of(slot) for slot in SLOTS]


@pytest.fixture(scope="module")
def story(checkout: Checkout) -> SmallStack:
    return SmallStack(checkout, "schedules")


def write(story: SmallStack, **changes: Any) -> None:
    """Write the stack file: two jobs, one of them with a schedule."""
    files = {key: f"jobs/{story.name}-{key}.yaml" for key in ("weekly", "once")}
    quick = job_file()["jobSpec"]["workerPoolSpecs"]
    quick[0]["containerSpec"]["command"] = ["true"]
    story.write(
        {key: job_file(workerPoolSpecs=quick) for key in files},
        jobs={
            "weekly": {"file": files["weekly"], "schedule": {**SCHEDULE, **changes}},
            "once": {"file": files["once"]},
        },
    )


def advance(story: SmallStack, *options: str, expect: int | None = 0) -> list[dict[str, Any]]:
    command = ("vt", "jobs", "advance", "-s", story.name, "--format", "json", *options)
    done = story.checkout.run(*command, expect=expect)
    found = json.loads(done.stdout)
    return [each for each in found if each["step"] == "schedule"]


def jobs(story: SmallStack) -> list[dict[str, Any]]:
    listed = story.checkout.run("vt", "jobs", "list", "-s", story.name, "--format", "json")
    return [job for job in json.loads(listed.stdout) if job["job"] == "weekly"]


def wait_for_slot(story: SmallStack) -> None:
    story.checkout.run("vt", "jobs", "wait", "weekly", "-s", story.name, "--deadline", "2m")


def test_schedule_does_nothing_before_its_deployment(story: SmallStack) -> None:
    write(story)
    done = story.checkout.run("vt", "jobs", "advance", "-s", story.name, expect=None)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "no stack named" in done.stderr


def test_up_does_not_submit_a_scheduled_job(story: SmallStack) -> None:
    story.checkout.shell(f"pulumi stack select --create {story.name}")
    story.pulumi("up --yes --skip-preview")
    assert jobs(story) == []
    [due] = advance(story, "--dry-run", "--at", FIRST)
    assert due["done"] == "due"
    outputs = story.outputs()
    assert outputs["jobs"].keys() == {"once"}
    assert outputs["schedules"]["weekly"]["artifacts"].endswith("/weekly/${job.slot}")


def test_each_slot_runs_one_job_for_any_caller(story: SmallStack) -> None:
    results: list[list[dict[str, Any]]] = []

    def ask() -> None:
        results.append(advance(story, "--at", FIRST, expect=None))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for_slot(story)
    advance(story, "--at", FIRST)
    [job] = jobs(story)
    assert job["labels"]["vt-slot"] == NAMES[0]
    assert NAMES[0] in story.checkout.run("vt", "jobs", "list", "-s", story.name).stdout
    shown = story.checkout.run("vt", "jobs", "show", "weekly", "-s", story.name).stdout
    assert f"/weekly/{NAMES[0]}" in shown


@pytest.mark.nightly
def test_next_slot_runs_a_deployed_edit(story: SmallStack) -> None:
    write(story, missed="all")
    advance(story, "--at", SECOND)
    wait_for_slot(story)
    preview = story.pulumi("preview --diff")
    assert "missed" in preview
    assert next(job["labels"]["vt-slot"] for job in jobs(story)) == NAMES[1]


@pytest.mark.nightly
def test_paused_schedule_has_no_slots_until_the_revert(story: SmallStack) -> None:
    write(story, paused=True)
    story.pulumi("up --yes --skip-preview")
    assert [each["done"] for each in advance(story, "--at", THIRD)] == ["paused"]
    # As the workflow does it.
    by_timer = story.checkout.run("make", "-o", "setup", "advance", f"STACK={story.name}")
    assert "schedule weekly: the schedule is paused" in by_timer.stdout
    write(story)
    story.pulumi("up --yes --skip-preview")
    assert [each["done"] for each in advance(story, "--at", SECOND)] == ["idle"]
    assert len(jobs(story)) == 2


@pytest.mark.nightly
def test_removal_of_a_schedule_cancels_its_job(story: SmallStack) -> None:
    advance(story, "--at", THIRD)
    story.pulumi("destroy --yes")
    assert {job["state"] for job in jobs(story)} <= {"SUCCEEDED", "CANCELLED"}
    assert len(jobs(story)) == 3
    assert advance(story, "--at", THIRD) == []
