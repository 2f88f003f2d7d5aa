"""Faults on tuning jobs: on calls about them, and on their trials."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as vertex

from tests.unit.localcloud.conftest import PARENT
from tests.unit.localcloud.faults.conftest import ARRIVES, Faulty
from tests.unit.localcloud.tuning.studies import (
    get,
    python,
    submit,
    tuning,
    wait,
)


def listed(faulty: Faulty) -> list[str]:
    found = faulty.cloud.client.list_hyperparameter_tuning_jobs(parent=PARENT)
    return [job.name for job in found]


def test_lists_lag_come_in_short_pages_and_lose_records(faulty: Faulty) -> None:
    names = [submit(faulty.cloud, tuning(trials=1)) for _ in range(3)][::-1]
    stale = faulty.add("stale", seconds=3600)
    assert listed(faulty) == []
    faulty.table.clear(stale)
    short = faulty.add("short-pages", method="ListHyperparameterTuningJobs")
    assert listed(faulty) == names
    faulty.table.clear(short)
    page = faulty.add("lost-page")
    assert listed(faulty) == names[:1]
    faulty.table.clear(page)
    faulty.add("lost-record", match=names[1].rpartition("/")[2])
    assert listed(faulty) == [names[0], names[2]]
    with pytest.raises(exceptions.NotFound, match="HyperparameterTuningJob does not exist"):
        get(faulty.cloud, names[1])
    assert get(faulty.cloud, names[0]).name == names[0]


def test_a_held_cancel_arrives_late_and_ends_all(faulty: Faulty) -> None:
    name = submit(faulty.cloud, tuning(python("import time; time.sleep(600)"), trials=3))
    method = "CancelHyperparameterTuningJob"
    held = faulty.add("hold", method=method, match="tuned")
    with pytest.raises(exceptions.DeadlineExceeded):
        faulty.cloud.client.cancel_hyperparameter_tuning_job(name=name, timeout=ARRIVES)
    faulty.table.wait_held(held, 60)
    faulty.table.release(held)
    assert wait(faulty.cloud, name).state == vertex.JobState.JOB_STATE_CANCELLED
