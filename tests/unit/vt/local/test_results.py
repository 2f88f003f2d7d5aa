"""What ``vt local up`` and ``vt local logs`` read from state, records and buckets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localgcp.vertex.records import JobRecord, JobState
from tests.unit.localcloud.conftest import Cloud
from vertex_training_cli.local import results


def record(job_id: str, name: str) -> JobRecord:
    time = "2026-11-21T10:00:00.000000Z"
    return JobRecord(job_id, "local-x", "1", "us-central1", name, {}, {}, JobState.SUCCEEDED, time,
                     None, None, time, None, None)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "numbers"),
    [('{"loss": 0.5}', {"loss": 0.5}), ('{"loss": 0.5', {}), ("[1, 2]", {}), (b"\xff\xfe", {})],
)
def test_numbers_of_a_job_are_those_of_its_metrics_file(
    cloud_with_storage: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    written: str | bytes,
    numbers: dict[str, float],
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out").blob("run/metrics.json").upload_from_string(written)
    assert cloud.storage is not None
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{cloud.storage.port}")
    prefix = {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/run"}}}
    job = replace(record("1", "a"), request=prefix)
    assert results.metrics(job) == numbers
    assert results.metrics(record("2", "b")) == {}
