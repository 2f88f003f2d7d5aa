"""Jobs as rows for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from vertex_training.customjob.protocol.idle import Series
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


def test_use_of_accelerators_is_of_all_points_and_says_when_there_are_none() -> None:
    series = [
        Series("workerpool0-0", "gpu=0", [(1.0, 0.02), (2.0, 0.14)]),
        Series("workerpool0-0", "gpu=1", [(1.0, 0.04), (2.0, float("nan"))]),
    ]
    use = view.accelerator_use(series)
    assert use == {"minutes": 30, "series": 2, "mean": 0.0667, "max": 0.14}
    assert view.use_text(use) == (
        "6.7% in use on average, 14.0% at most, in the last 30 minutes (2 series)"
    )
    silent = view.accelerator_use([])
    assert silent == {"minutes": 30, "series": 0, "mean": None, "max": None}
    assert view.use_text(silent) == "no data on the use of accelerators in the last 30 minutes"
    failed = {"minutes": 30, "error": "Cloud Monitoring: 503"}
    assert view.use_text(failed) == "the use of accelerators is unknown: Cloud Monitoring: 503"
