"""Which inputs of a state a job was submitted by."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.catalog.resource_types import BUCKET, JOB, SCHEDULE, TUNING_JOB
from vertex_training_cli.engine.plan import WITH_REQUEST
from vertex_training_cli.jobs import ladders


def test_inputs_are_those_of_jobs_that_the_state_keeps() -> None:
    resources = [
        {"type": JOB, "inputs": {"n": 1}},
        {"type": TUNING_JOB, "inputs": {"n": 2}},
        {"type": SCHEDULE, "inputs": {"n": 3}},
        {"type": BUCKET, "inputs": {"n": 4}},
        {"type": JOB, "inputs": {"n": 5}, "delete": True},
        {"type": JOB},
        {},
    ]
    assert list(ladders.inputs_in({"resources": resources})) == [{"n": 1}, {"n": 2}, {}]
    found = ladders.inputs_in({"resources": resources}, WITH_REQUEST)
    assert list(found) == [{"n": 1}, {"n": 2}, {"n": 3}, {}]
    assert list(ladders.inputs_in({})) == list(ladders.inputs_in({"resources": None})) == []


def given(stack: str, job: str, **more: Any) -> dict[str, Any]:
    return {"submission": {"stack": stack, "job": job}, **more}


OF_JOB, OF_SCHEDULE = given("dev", "fit"), given("dev", "fit", schedule={"cron": "x"})
STATE = [{}, given("prod", "fit"), given("dev", "other"), OF_SCHEDULE, OF_JOB]
LABELS = {"vt-request-id": "x", "vt-stack": "dev", "vt-job": "fit"}


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (LABELS, OF_JOB),
        (LABELS | {"vt-slot": "20261130t060000z"}, OF_SCHEDULE),
        (LABELS | {"vt-job": "gone"}, None),
        (LABELS | {"vt-stack": "qa"}, None),
        # without a request id it is no job of the program's
        ({"vt-stack": "dev", "vt-job": "fit"}, None),
        ({}, None),
    ],
)
def test_a_job_was_submitted_by_the_inputs_of_its_stack_name_and_kind(
    labels: dict[str, str], found: Any
) -> None:
    job = CustomJob(name="projects/1/locations/us-central1/customJobs/42", labels=labels)
    assert ladders.inputs_of(job, STATE) is found
