"""Jobs as rows for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

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
