"""What ``vt local up`` and ``vt local logs`` read from state, records and buckets."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from dataclasses import replace
from email.message import Message

import pytest

from localgcp.vertex.records import JobRecord, JobState
from tests.unit.localcloud.conftest import Cloud
from vertex_training_cli.local import results


def record(job_id: str, name: str) -> JobRecord:
    time = "2026-11-21T10:00:00.000000Z"
    return JobRecord(job_id, "local-x", "1", "us-central1", name, {}, {}, JobState.SUCCEEDED, time,
                     None, None, time, None, None)  # fmt: skip


OBJECTS = "http://127.0.0.1:8002/storage/v1/b/out/o"
LIST, NEAREST = (
    f"{OBJECTS}?prefix=run%2F1%2F",
    f"{OBJECTS}/run%2F1%2Fmodel%2Fmetrics.json?alt=media",
)
NAMES = ("run/1/a/b/metrics.json", "run/1/model/metrics.json", "run/1/x/my-metrics.json")
LISTED = json.dumps({"items": [{"name": name} for name in NAMES]}).encode()
OTHERS = json.dumps({"items": [{"name": NAMES[2]}]}).encode()


@pytest.mark.parametrize(
    ("answers", "numbers"),
    [
        ({LIST: LISTED, NEAREST: b'{"loss": 0.5}'}, {"loss": 0.5}),
        ({LIST: LISTED, NEAREST: 404}, {}),
        ({LIST: OTHERS}, {}),
        ({LIST: b"{}"}, {}),
        ({LIST: 500}, None),
        ({LIST: LISTED, NEAREST: 403}, None),
    ],
)
def test_numbers_are_those_of_the_file_nearest_to_the_output_directory(
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[str, bytes | int],
    numbers: dict[str, float] | None,
) -> None:
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        assert timeout == 10
        found = answers[url]
        if isinstance(found, int):
            raise urllib.error.HTTPError(url, found, "no", Message(), None)
        return io.BytesIO(found)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    prefix = {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/run/1"}}}
    job = replace(record("1", "a"), request=prefix)
    if numbers is None:
        with pytest.raises(urllib.error.HTTPError):
            results.metrics(job, 8002)
    else:
        assert results.metrics(job, 8002) == numbers
    assert asked == list(answers)


@pytest.mark.parametrize("written", ['{"loss": 0.5', "[1, 2]", b"\xff\xfe"])
def test_a_metrics_file_that_makes_no_sense_gives_no_numbers(
    cloud_with_storage: Cloud, written: str | bytes
) -> None:
    cloud = cloud_with_storage
    cloud.bucket("out").blob("run/metrics.json").upload_from_string(written)
    assert cloud.storage is not None
    prefix = {"jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/run"}}}
    job = replace(record("1", "a"), request=prefix)
    assert results.metrics(job, cloud.storage.port) == {}
