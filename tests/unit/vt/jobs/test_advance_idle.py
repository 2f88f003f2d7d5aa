"""``vt jobs advance`` and ``idleStop``: one cancellation for each proof, and a line."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from tests.unit.infra.customjob.protocol.test_idle import ID, NAME, NOW, Cloud, whole
from vertex_training.catalog.resource_types import JOB, SCHEDULE
from vertex_training.customjob import provider
from vertex_training.customjob.protocol.idle import IdleRule, IdleStop, Reading
from vertex_training.errors import OperatorError
from vertex_training_cli.jobs import advance as steps
from vertex_training_cli.jobs.advance import Action, Tick

SLOT = {"vt-slot": "20261130t060000z"}


def inputs(job: str, rule: str = "5% for 10m", **more: Any) -> dict[str, Any]:
    options = {"controlBucket": "c", **({"idleStop": rule} if rule else {})}
    return {"submission": {"stack": "dev", "job": job}, "options": options, **more}


def live(job: str, name: str = NAME, **labels: str) -> CustomJob:
    given = {"vt-request-id": ID, "vt-stack": "dev", "vt-job": job, **labels}
    return CustomJob(name=name, state=JobState.JOB_STATE_RUNNING, labels=given)


def told(resources: list[Any], jobs: list[CustomJob], *, dry_run: bool = False) -> list[str]:
    rows = [{"type": SCHEDULE if "schedule" in each else JOB, "inputs": each} for each in resources]
    tick: Any = Tick(None, {"resources": rows}, dry_run=dry_run)  # pyright: ignore[reportArgumentType]
    tick.__dict__["live"] = jobs
    return [f"{each.job} {each.done}" for each in actions(tick)]


def actions(tick: Tick) -> list[Action]:
    """What is done; each of it is about a step, a job and its resource."""
    found = list(steps.stop_idle(tick))
    for each in found:
        failed = each.done == "failed"
        assert each == Action("idle", each.job, each.done, each.reason, NAME, failed=failed)
        assert REASONS[each.done] == each.reason
    return found


WHY = "no accelerator was at 5% or above for 10m"
REASONS = {
    "failed": "idleStop cannot check the job; the job continues: Cloud Monitoring did not respond",
    "due": f"{WHY}; the next run without --dry-run cancels the job",
    "cancelled": f"{WHY} (idleStop): cancelled",
    "unproven": "idleStop cannot check the job; the job continues: no utilization data of "
    "workerpool0-0",
}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    made = Cloud()

    def idle_stop_of(given: Any) -> IdleStop | None:
        if given["submission"]["job"] == "broken":
            raise OperatorError("Cloud Monitoring did not respond")
        rule = given["options"].get("idleStop")
        port: Any = made
        return (
            IdleStop(IdleRule(rule), port, port, lambda *_: Reading(NOW, made.series))
            if rule
            else None
        )

    made.series = whole()
    monkeypatch.setattr(provider, "idle_stop_of", idle_stop_of)
    return made


def test_one_that_cannot_be_judged_keeps_no_other_back(cloud: Cloud) -> None:
    declared, jobs = [inputs("broken"), inputs("train")], [live("broken"), live("train")]
    assert told(declared, jobs, dry_run=True) == ["broken failed", "train due"]
    assert cloud.cancelled == []
    assert told(declared, jobs) == ["broken failed", "train cancelled"]
    assert told(declared, jobs) == ["broken failed"]
    assert cloud.cancelled == [NAME]


def test_what_is_missing_is_told_and_nothing_is_cancelled(cloud: Cloud) -> None:
    cloud.series = []
    assert told([inputs("train")], [live("train")]) == ["train unproven"]
    assert cloud.cancelled == []


def test_a_slot_goes_by_its_schedule_and_a_job_by_itself(cloud: Cloud) -> None:
    schedule, job = inputs("train", schedule={}), inputs("train", rule="")
    assert told([job, schedule], [live("train")]) == []
    assert told([job, schedule], [live("train", **SLOT)]) == ["train cancelled"]


@pytest.mark.parametrize(
    "labels", [{"vt-stack": "prod"}, {"vt-job": "other"}, {"vt-request-id": ""}]
)
def test_jobs_of_others_are_not_touched(cloud: Cloud, labels: dict[str, str]) -> None:
    other = live("train")
    other.labels = {key: value for key, value in {**other.labels, **labels}.items() if value}
    assert told([inputs("train")], [other]) == []


def test_without_a_rule_no_job_is_listed(cloud: Cloud) -> None:
    class Unlisted(Tick):
        @property
        def live(self) -> Any:
            raise AssertionError

    tick: Any = Unlisted(None, {"resources": [{"type": JOB, "inputs": inputs("a", "")}]})  # pyright: ignore[reportArgumentType]
    assert list(steps.stop_idle(tick)) == []
