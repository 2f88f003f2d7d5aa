"""Jobs as rows for people."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training_cli.jobs import command, view

CREATED: Final = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)


def job(**fields: Any) -> CustomJob:
    name = "projects/1/locations/us-central1/customJobs/42"
    return CustomJob(name=name, create_time=CREATED, **fields)


def test_the_list_has_columns_for_them_where_a_job_has_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ref: Any = SimpleNamespace(is_local=False)
    labels = {"vt-request-id": "x", "vt-job": "titanic", "vt-run": "1"}

    def heads(*more: dict[str, str]) -> list[str]:
        jobs = [job(labels=labels | each) for each in more]
        command.print_jobs(jobs, ref, 9, as_json=False, log=lambda _: None)
        return capsys.readouterr().out.split("\n")[0].split()

    assert heads({}) == ["JOB", "RUN", "STATE", "CREATED", "DURATION", "ID"]
    assert heads({}, {"vt-rung": "2"})[:3] == ["JOB", "RUN", "RUNG"]
    assert heads({}, {"vt-slot": "20261130t060000z"})[:3] == ["JOB", "RUN", "SLOT"]


@pytest.mark.filterwarnings("ignore:Unrecognized")
def test_what_is_newer_than_the_client_is_a_number_and_no_traceback() -> None:
    machine = {"machine_type": "x", "accelerator_type": 999, "accelerator_count": 1}
    pools = [{"replica_count": 2, "machine_spec": machine}]
    found = job(state=99, job_spec={"worker_pool_specs": pools})
    assert (view.row(found, CREATED)["state"], view.has_ended(found)) == ("99", False)
    facts = dict(view.facts(found, "p", "us-central1", CREATED))
    assert facts["worker pool"] == "2 x x with 1 x 999"


def test_replicas_are_called_as_their_logs_call_them() -> None:
    pools = [{"replica_count": 1}, {"replica_count": 2}]
    made = job(job_spec={"worker_pool_specs": pools})
    assert view.replicas(made) == ["workerpool0-0", "workerpool1-0", "workerpool1-1"]
    batch = CustomJob(
        name="projects/p/locations/us-central1/jobs/fit-1", job_spec={"worker_pool_specs": pools}
    )
    assert view.replicas(batch) == ["task-0", "task-1", "task-2"]
