"""What deployments ask over REST: the program's own client against what the local cloud serves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from google.cloud.resourcemanager_v3 import types

from localgcp.apis.server import serve
from localgcp.errors import ApiError, LocalCloudError, RefusedRequestError
from localgcp.faults.model import METHODS, Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import ACCOUNT, SERVICE, Store, project_number
from localgcp.reads.projects import ProjectService
from localgcp.reads.serving import METHODS as READS
from localgcp.reads.serving import Reads
from vertex_training.customjob.google.prerequisites import GooglePrerequisites
from vertex_training.errors import OperatorError

PROJECT = "local-training"
EMAIL = f"trainer@{PROJECT}.iam.gserviceaccount.com"
NAME = f"projects/{PROJECT}/zones/us-central1-a/reservations/t4"
#: Services whose calls do not come over REST alone.
OWN_PORTS = ("jobs", "models", "operations", "storage")
#: Jobs of BigQuery that run, which are no calls.
RUNNING = {("bigquery", name) for name in ("query", "load", "extract")}
METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus"


@dataclass
class Estate:
    """A cloud with an account, an API and a reservation, and who asks it."""

    client: GooglePrerequisites
    faults: FaultTable

    def asked(self) -> list[object]:
        """Every question, with what it was answered."""
        questions: list[Callable[[], object]] = [
            lambda: self.client.has_permission(f"projects/-/serviceAccounts/{EMAIL}", "a.b.c"),
            lambda: self.client.has_permission(f"projects/{PROJECT}", "a.b.c"),
            lambda: self.client.has_reservation(NAME),
            lambda: self.client.quota(PROJECT, "us-central1", METRIC),
        ]
        return [_answer(each) for each in questions]


def _answer(question: Callable[[], object]) -> object:
    try:
        return question()
    except OperatorError as error:
        return str(error).partition(" ")[0]


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    store, faults = Store(tmp_path / "cloud.sqlite"), FaultTable(tmp_path / "faults.sqlite")
    store.put(ACCOUNT, EMAIL, PROJECT, {}, {"email": EMAIL})
    store.put(SERVICE, f"{PROJECT}/iam.googleapis.com", PROJECT, {}, {})
    machines: dict[str, Any] = {"count": 1, "instanceProperties": {"machineType": "n1-standard-4"}}
    zone = {"zone": "us-central1-a", "specificReservation": machines}
    store.put(RESERVATION, NAME, PROJECT, zone, zone)
    reads = Reads(store, faults, threading.Event())
    server = serve([], 0, folder=tmp_path, also=reads.answer)
    yield Estate(GooglePrerequisites(f"127.0.0.1:{server.port}", ""), faults)
    server.stop(None).wait()


def test_who_asks_holds_everything_on_what_exists_and_nothing_is_limited(estate: Estate) -> None:
    assert estate.asked() == [True, True, True, None]
    assert not estate.client.has_permission("projects/-/serviceAccounts/x@y.z", "a.b.c")
    assert not estate.client.has_permission("projects/acme-elsewhere", "a.b.c")
    assert not estate.client.has_reservation(NAME.replace("t4", "l4"))


def test_a_late_answer_is_the_same(estate: Estate) -> None:
    estate.faults.add(Fault.parse(service="compute", kind="delay", seconds=0.1))
    assert estate.asked() == [True, True, True, None]


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


@pytest.mark.parametrize("given", ["iam drop", "jobs deny", "storage deny"])
def test_other_faults_are_refused_in_words(given: str) -> None:
    service, kind = given.split()
    with pytest.raises(LocalCloudError, match=f"{kind} is no fault of {service}"):
        Fault.parse(service=service, kind=kind)
