"""What the stand-in of Cloud Monitoring says of jobs, asked by the program's own client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from localgcp.apis.server import serve
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import Store
from localgcp.reads.serving import Reads
from localgcp.vertex.records import JobRecord, JobState, JobTable
from vertex_training.customjob.google import utilization
from vertex_training.customjob.google.job_service import EMULATOR
from vertex_training.customjob.protocol.idle import Reading

PROJECT = "local-training"
GPU = {"machineSpec": {"machineType": "n1-standard-4", "acceleratorCount": 1}, "replicaCount": "2"}
CPU = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}


class Watched:
    """A cloud with jobs, and who asks what their accelerators do."""

    def __init__(self, folder: Path) -> None:
        self.jobs, self.faults = JobTable(folder / "c.sqlite"), FaultTable(folder / "faults")
        reads = Reads(Store(folder / "c.sqlite"), self.faults, threading.Event())
        self.server = serve([], 0, folder=folder, also=reads.answer)

    def run(self, name: str, *pools: Any, state: JobState = JobState.RUNNING) -> str:
        body = {"displayName": name, "jobSpec": {"workerPoolSpecs": list(pools)}}
        record = JobRecord.new(PROJECT, "us-central1", body, state)
        self.jobs.insert(record)
        return record.name

    def do(self, value: float, seconds: float, match: str = "") -> None:
        given: Any = {"kind": "utilization", "value": value, "seconds": seconds, "match": match}
        self.faults.add(Fault.parse(service="monitoring", **given))

    def ask(self, **query: str) -> requests.Response:
        url = f"http://127.0.0.1:{self.server.port}/v3/projects/{PROJECT}/timeSeries"
        return requests.get(url, params=query, timeout=10)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    made = Watched(tmp_path)
    monkeypatch.setenv(EMULATOR, f"127.0.0.1:{made.server.port}")
    yield made
    made.server.stop(None).wait()


def read(name: str, seconds: float = 1800) -> Reading:
    return utilization.read(PROJECT, name, seconds)


def test_nothing_is_known_until_a_fault_says_it(cloud: Watched) -> None:
    name = cloud.run("train", CPU, GPU)
    assert read(name).series == []
    cloud.do(0.25, 600)
    found = read(name)
    assert [each.replica for each in found.series] == ["workerpool1-0", "workerpool1-1"]
    for each in found.series:
        assert len(each.points) in (10, 11)
        assert {value for _, value in each.points} == {0.25}
        assert {time % 60 for time, _ in each.points} == {0}
    assert len(read(name, 150).series[0].points) in (2, 3)


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SUCCEEDED, JobState.CANCELLING])
def test_a_job_that_does_not_run_does_nothing(cloud: Watched, state: JobState) -> None:
    cloud.do(1, 600)
    assert read(cloud.run("train", GPU, state=state)).series == []


def test_a_fault_is_on_the_jobs_that_it_names(cloud: Watched) -> None:
    cloud.do(0.5, 600, match="works")
    idle, works = cloud.run("idle", GPU), cloud.run("works", GPU)
    assert read(idle).series == []
    assert len(read(works).series) == 2


TYPE = 'metric.type="ml.googleapis.com/training/accelerator/utilization"'


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"filter": TYPE},
        {"filter": 'metric.type="ml.googleapis.com/training/cpu/utilization"'},
        {"filter": f"{TYPE} AND metric.labels.x=~y"},
        {"filter": TYPE, "interval.startTime": "now", "interval.endTime": "now"},
        {"filter": TYPE, "every": "minute"},
    ],
)
def test_what_is_not_read_whole_is_refused(cloud: Watched, query: dict[str, str]) -> None:
    cloud.do(1, 600)
    cloud.run("train", GPU)
    answer = cloud.ask(**query)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "given",
    [
        {"service": "monitoring", "value": 0.1},
        {"service": "monitoring", "seconds": 60},
        {"service": "monitoring", "value": 1.1, "seconds": 60},
        {"service": "jobs", "value": 0.1, "seconds": 60},
        {"service": "monitoring", "value": 0.1, "seconds": 60, "replica": "workerpool0-0"},
        {"service": "monitoring", "kind": "error", "code": "503", "value": 0.1},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    parse: Callable[..., Fault] = Fault.parse
    with pytest.raises(Exception, match=r"value|seconds|no fault|replica"):
        parse(**{"kind": "utilization", **given})
