"""Jobs side by side: what each ran with and reached, and what is equal in all is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.aiplatform_v1.types import CustomJob, JobState

from vertex_training_cli.jobs import compare
from vertex_training_cli.jobs.compare import Compared

STARTED = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)


def test_parameters_are_machines_flags_and_code_of_every_pool() -> None:
    gpus = {"machineType": "a2", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 2}
    pools = [
        {
            "replicaCount": 3,
            "machineSpec": gpus,
            "pythonPackageSpec": {
                "packageUris": ["gs://b/x/train-1.tar.gz", "gs://b/y/more.tar.gz"],
                "args": ["--lr=0.1=2", "--fast", "--epochs", "3", "bare", "--last"],
            },
        },
        {"containerSpec": {"imageUri": "eu/x/fit:v1", "args": ["--lr", "9", "--own", "-1"]}},
        {},
    ]
    assert compare.parameters({"jobSpec": {"workerPoolSpecs": pools}}) == {
        "pool 0": "3 x a2 + 2 x NVIDIA_TESLA_A100",
        "--lr": "0.1=2",
        "--fast": "",
        "--epochs": "3",
        "bare": "",
        "--last": "",
        "code": "train-1.tar.gz more.tar.gz",
        "pool 1": "1 x ",
        "--own": "",
        "-1": "",
        "pool 2": "1 x ",
    }
    bare = {"pool 0": "1 x ", "code": ""}
    assert compare.parameters({"jobSpec": {"workerPoolSpecs": [{}]}}) == bare
    assert compare.parameters({}) == {}


class Reader:
    """What the job wrote."""

    def metrics(self, job: Any) -> dict[str, float]:
        return {"loss": 0.5}

    def curves(self, job: Any) -> dict[str, list[float]]:
        return {"loss": [1.0, 0.5]}


def ran(machine: str = "n1-standard-4", **fields: Any) -> Compared:
    labels = {"vt-request-id": "x", "vt-job": "fit", "vt-run": "2"}
    pool = {"replica_count": 1, "machine_spec": {"machine_type": machine}}
    job = CustomJob(
        name="projects/1/locations/us-central1/customJobs/42", labels=labels,
        state=JobState.JOB_STATE_SUCCEEDED, job_spec={"worker_pool_specs": [pool]}, **fields,
    )  # fmt: skip
    reader: Any = Reader()
    return compare.compared(job, "us-central1", reader)


def test_what_is_known_of_a_job_is_what_it_ran_on_cost_and_wrote() -> None:
    # n1-standard-4 is $0.2185 an hour with the fee: two hours are $0.44.
    found = ran(start_time=STARTED, end_time=STARTED + timedelta(hours=2))
    assert found == Compared(
        job="fit", run="2", id="42", state="SUCCEEDED", duration="2h 0m", cost="$0.44",
        parameters={"pool 0": "1 x n1-standard-4", "code": ""}, metrics={"loss": 0.5},
        curves={"loss": [1.0, 0.5]},
    )  # fmt: skip
    assert found.as_json()["curves"] == {"loss": [1.0, 0.5]}
    assert (ran().cost, ran().duration) == ("", "")
    assert ran("no-such-machine", start_time=STARTED, end_time=STARTED).cost == ""
