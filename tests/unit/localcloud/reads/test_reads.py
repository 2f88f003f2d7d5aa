"""What deployments ask over REST: the program's own client against what the local cloud serves."""

from __future__ import annotations

import threading
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests

from localgcp.apis.server import serve
from localgcp.faults.model import METHODS, Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.reads import serving
from localgcp.reads.projects import ProjectService
from localgcp.reads.serving import METHODS as READS
from localgcp.reads.serving import Reads
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.rest_cloud import RestCloud

PROJECT = "local-training"
#: Services whose calls do not come over REST alone.
OWN_PORTS = ("jobs", "models", "operations", "storage")
#: Jobs of BigQuery that run, which are no calls.
RUNNING = {("bigquery", name) for name in ("query", "load", "extract")}


def test_a_project_that_is_otherwise_is_so_over_rest_and_over_grpc(tmp_path: Path) -> None:
    store, faults = Store(tmp_path / "cloud.sqlite"), FaultTable(tmp_path / "faults.sqlite")
    store.put(SERVICE, f"{PROJECT}/iam.googleapis.com", PROJECT, {}, {})
    reads = Reads(store, faults, threading.Event())
    service = ProjectService(store, reads.answer)
    server = serve([service], 0, folder=tmp_path, also=reads.answer)
    patch = {"state": "DELETE_REQUESTED", "configuredCapabilities": ["a"]}  # no field of a client
    faults.add(Fault.parse(service="cloudresourcemanager", kind="patch", patch=patch))
    for name in (PROJECT, project_number(PROJECT)):
        with requests.Session() as session:
            session.trust_env = False
            found = session.get(f"http://127.0.0.1:{server.port}/v3/projects/{name}").json()
        assert (found["projectId"], found["state"]) == (PROJECT, "DELETE_REQUESTED")
    server.stop(None).wait()


def test_faults_name_the_methods_that_are_served() -> None:
    served = {read.fault_of(id_) for id_, read in READS.items()} - {("storage", "buckets.get")}
    assert (
        served
        == {(s, name) for s in METHODS if s not in OWN_PORTS for name in METHODS[s]} - RUNNING
    )


GPU = {"machineSpec": {"machineType": "n1-standard-4", "acceleratorCount": 1}, "replicaCount": "2"}
CPU = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}


TYPE = 'metric.type="ml.googleapis.com/training/accelerator/utilization"'


SERIES = "/v3/projects/local-p1/timeSeries"
SINCE, UNTIL = "2026-01-02T03:02:00Z", "2026-01-02T03:04:30Z"


class Clock(datetime):
    """It stands still."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        return cls(2026, 1, 2, 3, 4, 5, 678, tzinfo=tz)


@pytest.fixture
def still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RestCloud:
    """A cloud without a server, whose clock says five seconds after 03:04."""
    monkeypatch.setattr(serving, "datetime", Clock)
    return RestCloud(tmp_path)


def start(cloud: RestCloud, *pools: Any, project: str = "local-p1", **labels: str) -> str:
    body = {"displayName": "train", "labels": labels, "jobSpec": {"workerPoolSpecs": pools}}
    record = JobRecord.new(project, "us-central1", body, JobState.RUNNING)
    JobTable(cloud.store.path).insert(record)
    return record.job_id


def asked(cloud: RestCloud, since: str = SINCE, until: str = UNTIL, more: str = "") -> Any:
    query = {"filter": TYPE + more, "interval.startTime": since, "interval.endTime": until}
    return cloud.get(f"{SERIES}?{urlencode(query)}")


def series(job_id: str, replica: str, value: float, *minutes: str) -> dict[str, Any]:
    times = [f"2026-01-02T{minute}:00Z" for minute in minutes]
    labels = {"project_id": "local-p1", "job_id": job_id, "task_name": replica}
    return {
        "metric": {"type": "ml.googleapis.com/training/accelerator/utilization", "labels": {}},
        "resource": {"type": "cloudml_job", "labels": labels},
        "metricKind": "GAUGE",
        "valueType": "DOUBLE",
        "points": [
            {"interval": {"startTime": at, "endTime": at}, "value": {"doubleValue": value}}
            for at in times
        ],
    }


def test_a_series_is_of_each_replica_with_accelerators_the_newest_point_first(
    still: RestCloud,
) -> None:
    one = {"machineSpec": {"acceleratorCount": 1}}
    own = start(still, CPU, {}, GPU, one)
    start(still, GPU, project="local-p2")
    assert asked(still) == {"unit": "10^2.%"}
    still.fault("monitoring", "utilization", value=0.25, seconds=300)
    found = [
        series(own, replica, 0.25, "03:04", "03:03")
        for replica in ("workerpool2-0", "workerpool2-1", "workerpool3-0")
    ]
    assert asked(still) == {"timeSeries": found, "unit": "10^2.%"}
    assert asked(still, more=' AND resource.labels.job_id="1"') == {"unit": "10^2.%"}
    of_it = f' AND resource.type="cloudml_job" AND resource.labels.job_id="{own}"'
    assert asked(still, more=of_it)["timeSeries"] == found


def test_the_first_fault_that_fits_a_job_says_what_it_does(still: RestCloud) -> None:
    one = {"machineSpec": {"acceleratorCount": 1}}
    named, labelled = start(still, one), start(still, one, team="vision")
    still.fault("monitoring", "utilization", value=0.1, seconds=0, match="vision")
    still.fault("monitoring", "utilization", value=0.2, seconds=0, match=named)
    still.fault("monitoring", "utilization", value=0.3, seconds=0, match="train")
    found = {
        each["resource"]["labels"]["job_id"]: each["points"][0]["value"]["doubleValue"]
        for each in asked(still)["timeSeries"]
    }
    assert found == {labelled: 0.1, named: 0.2}


def test_series_without_an_interval_are_refused(still: RestCloud) -> None:
    still.fault("monitoring", "utilization", value=1, seconds=600)
    start(still, GPU)
    refused = still.refusal("GET", f"{SERIES}?{urlencode({'filter': TYPE})}")
    assert refused == (400, "interval.startTime: Unparseable filter: '' is not a time.")
