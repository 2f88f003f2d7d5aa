"""Jobs as rows for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.errors import CommandError
from vertex_training_cli.jobs import view

CREATED: Final = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)


def job(**fields: Any) -> CustomJob:
    name = "projects/1/locations/us-central1/customJobs/42"
    return CustomJob(name=name, create_time=CREATED, **fields)


@pytest.mark.filterwarnings("ignore:Unrecognized")
def test_what_is_newer_than_the_client_is_a_number_and_no_traceback() -> None:
    machine = {"machine_type": "x", "accelerator_type": 999, "accelerator_count": 1}
    pools = [{"replica_count": 2, "machine_spec": machine}]
    found = job(state=99, job_spec={"worker_pool_specs": pools})
    assert (view.row(found, CREATED)["state"], view.has_ended(found)) == ("99", False)
    facts = dict(view.facts(found, "p", "us-central1", CREATED))
    assert facts["worker pool"] == "2 x x with 1 x 999"


def trial(number: int, state: str = "SUCCEEDED", **metrics: float) -> dict[str, Any]:
    """A trial as REST writes it."""
    measured = [{"metricId": name, "value": value} for name, value in metrics.items()]
    return {
        "id": str(number),
        "state": state,
        "parameters": [
            {"parameterId": "lr", "value": number / 1000},
            {"parameterId": "optimizer", "value": "adam"},
        ],
        **({"finalMeasurement": {"metrics": measured}} if measured else {}),
        "customJob": f"projects/1/locations/r/customJobs/{number}00",
    }


def tuning(goal: str, *found: dict[str, Any]) -> dict[str, Any]:
    metrics = [
        {"metricId": "heat", "goal": "MINIMIZE", "safetyConfig": {}},
        {"metricId": "acc", "goal": goal},
    ]
    return {
        "maxTrialCount": 12,
        "parallelTrialCount": 3,
        "studySpec": {"metrics": metrics},
        "trials": list(found),
    }


FOUND = (
    trial(10, "ACTIVE"),
    trial(2, acc=0.8, heat=1.0),
    trial(3, "INFEASIBLE"),
    trial(1, acc=0.9, heat=2.0),
    trial(4, acc=0.9, heat=3.0),
)


def test_a_trial_that_is_not_there_is_refused_with_those_that_are() -> None:
    every = view.trials_of(tuning("MAXIMIZE", *FOUND))
    assert view.find_trial(every, "10").job == "1000"
    with pytest.raises(CommandError) as refused:
        view.find_trial(every, "7")
    assert "1, 2, 3, 4, 10" in str(refused.value)
    with pytest.raises(CommandError, match="runs nothing yet"):
        view.find_trial(view.trials_of(tuning("MAXIMIZE", {"id": "1", "state": "REQUESTED"})), "1")
