"""Jobs side by side: what each ran with and reached, and what is equal in all is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from vertex_training_cli.jobs import compare
from vertex_training_cli.jobs.compare import Compared

STARTED = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)


def one(job: str, run: str = "1", **more: Any) -> Compared:
    given = {"id": f"id-{job}", "state": "RUNNING", "duration": "1m", "cost": "$1.00"}
    return Compared(job=job, run=run, **{"parameters": {}, "metrics": {}, **given, **more})


def test_a_table_has_a_column_for_each_job_and_rows_of_what_differs() -> None:
    jobs = [
        one("a", parameters={"lr": "0.1", "same": "x", "only": "y"}, metrics={"loss": 0.25},
            curves={"loss": [1.0, 0.0]}),
        one("b", "", parameters={"lr": "0.2", "same": "x"}, metrics={"loss": 1, "acc": 0.5}),
    ]  # fmt: skip
    assert compare.table(jobs) == (
        ("", "a 1", "b"),
        [
            ("id", "id-a", "id-b"),
            ("state", "RUNNING", "RUNNING"),
            ("duration", "1m", "1m"),
            ("cost", "$1.00", "$1.00"),
            ("lr", "0.1", "0.2"),
            ("only", "y", ""),
            ("loss", "0.25", "1"),
            ("acc", "", "0.5"),
            ("loss (curve)", "█▁ 1 → 0", ""),
        ],
    )


@pytest.mark.parametrize(
    ("series", "lines"),
    [
        ([[]], [""]),
        ([[2.0]], ["▁ 2"]),
        ([[0.0, 1.0], [0.5]], ["▁█ 0 → 1", "▄ 0.5"]),
        ([[1.0, 1.0]], ["▁▁ 1 → 1"]),
        ([[0.0, float("nan"), 7.0]], ["▁?█ 0 → 7"]),
        ([[float("-inf"), 0.0, 7.0, float("inf")]], ["?▁█? -inf → inf"]),
        # on a scale of 0 to 7 each eighth has a bar
        ([[float(n) for n in range(8)]], ["▁▂▃▄▅▆▇█ 0 → 7"]),
        # of more than 24 values every so many, the first and the last among them
        ([[0.0] * 24 + [7.0]], ["▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█ 0 → 7"]),
        ([[0.0] * 24], ["▁" * 24 + " 0 → 0"]),
    ],
)
def test_a_curve_is_a_line_of_bars_with_its_ends(
    series: list[list[float]], lines: list[str]
) -> None:
    assert compare.curves(series) == lines


@pytest.mark.parametrize(
    ("value", "low", "high", "share"),
    [(0, 0, 10, 0.0), (10, 0, 10, 1.0), (2.5, 0, 10, 0.25), (5, 5, 5, 0.75), (0, -1, 1, 0.5)],
)
def test_a_share_is_how_far_up_a_scale_a_value_is(
    value: float, low: float, high: float, share: float
) -> None:
    assert compare.share_of(value, low, high, flat=0.75) == share
    assert compare.share_of(1.7e308, -1.7e308, 1.7e308, flat=0.0) == 1.0


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
