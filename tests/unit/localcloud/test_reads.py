"""What deployments ask over REST: the program's own client against what the local cloud serves."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import requests
from google.cloud.resourcemanager_v3 import types

from localgcp.apis.server import serve
from localgcp.errors import ApiError, RefusedRequestError
from localgcp.faults.model import METHODS, Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import SERVICE, Store, project_number
from localgcp.reads.projects import ProjectService
from localgcp.reads.serving import METHODS as READS
from localgcp.reads.serving import Reads

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


@pytest.mark.parametrize(
    ("status", "code"), [(403, "PERMISSION_DENIED"), (404, "NOT_FOUND"), (429, "UNAVAILABLE")]
)
def test_a_project_that_is_refused_over_rest_is_so_over_grpc(
    tmp_path: Path, status: int, code: str
) -> None:
    asked: list[tuple[str, str, bytes]] = []

    def answer(*request: Any) -> bytes:
        asked.append(request)
        raise RefusedRequestError(status, "why")

    service = ProjectService(Store(tmp_path / "cloud.sqlite"), answer)
    with pytest.raises(ApiError) as told:
        service.get_project(types.GetProjectRequest(name="projects/acme"))
    assert (told.value.code.name, told.value.message) == (code, "why")
    assert asked == [("GET", "/v3/projects/acme", b"")]


def test_faults_name_the_methods_that_are_served() -> None:
    served = {(read.service.value, read.method) for read in READS} - {("storage", "buckets.get")}
    assert (
        served
        == {(s, name) for s in METHODS if s not in OWN_PORTS for name in METHODS[s]} - RUNNING
    )
