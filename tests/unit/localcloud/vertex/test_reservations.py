"""What a job takes of reservations: by name, or of any that fits; and why one cannot serve it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import wrappers_pb2

from localgcp.errors import ApiError, StartRefusedError
from localgcp.inventory.store import Binding, Store, service_agent
from localgcp.vertex import capacity
from localgcp.vertex.capacity import Plan
from localgcp.vertex.operations import Operation, OperationTable, packed
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

RESERVATION = "gcp:compute/reservation:Reservation"
KEY = "compute.googleapis.com/reservation-name"
AGENT = service_agent(PROJECT)
N1 = "n1-standard-4"


class World:
    """Reservations, and jobs that hold machines of them."""

    def __init__(self, path: Path) -> None:
        self.store, self.jobs = Store(path), JobTable(path)
        self.grant(PROJECT)

    def grant(self, project: str) -> None:
        """Let Vertex AI see the reservations of a project."""
        bindings = (Binding("roles/compute.viewer", (f"serviceAccount:{AGENT}",)),)
        resource = f"projects/{project}"
        etag = self.store.policy(resource).etag
        self.store.set_policy(resource, bindings, expected_etag=etag)

    def add(self, name: str, count: int = 1, zone: str = "us-central1-a", **given: Any) -> str:
        project = given.pop("project", PROJECT)
        machine = {"machineType": N1, **given.pop("machine", {})}
        specific = {"count": count, "instanceProperties": machine}
        outputs = {
            "name": name,
            "project": project,
            "zone": zone,
            "specificReservation": specific,
            "specificReservationRequired": False,
            "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
            **given,
        }
        path = f"projects/{project}/zones/{zone}/reservations/{name}"
        self.store.put(RESERVATION, path, project, outputs, outputs)
        return path

    def use(self, path: str, machines: int) -> None:
        """Another job holds machines of it."""
        assert self.jobs.claim("other", {path: machines}, {path: 1000})

    def plan(self, *pools: dict[str, Any]) -> Plan:
        return capacity.plan(self.store, self.jobs, job(*pools))

    def refusal(self, *pools: dict[str, Any]) -> tuple[int, str]:
        with pytest.raises(StartRefusedError) as refused:
            self.plan(*pools)
        return refused.value.code, refused.value.message


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "cloud.sqlite")


def job(*pools: dict[str, Any]) -> JobRecord:
    return job_row("1", {"workerPoolSpecs": list(pools)})


def named(*values: str, replicas: int = 1, **machine: Any) -> dict[str, Any]:
    affinity = {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [*values]}
    spec = {"machineType": N1, "reservationAffinity": affinity, **machine}
    return {"replicaCount": str(replicas), "machineSpec": spec}


def of_any(replicas: int = 1, **machine: Any) -> dict[str, Any]:
    affinity = {"reservationAffinityType": "ANY_RESERVATION"}
    spec = {"machineType": N1, "reservationAffinity": affinity, **machine}
    return {"replicaCount": str(replicas), "machineSpec": spec}


def test_a_reservation_that_cannot_be_seen_or_is_not_there_is_refused(world: World) -> None:
    none = f"projects/{PROJECT}/zones/us-central1-a/reservations/none"
    assert world.refusal(named(none)) == (
        5,
        f"workerpool0: the reservation {none} does not exist or is not visible.",
    )
    over = world.add("over", deleteAtTime="2020-01-01T00:00:00Z")
    assert world.refusal({}, named(over))[1].startswith("workerpool1: the reservation")
    far = world.add("far", project="local-far")
    assert world.refusal(named(far)) == (
        7,
        f"{AGENT} does not have compute.reservations.get on {far}. Grant roles/compute.viewer "
        "to this service agent in project local-far.",
    )


NOT_SHARED = "is not shared with Vertex AI (reservationSharingPolicy.serviceShareType: ALLOW_ALL)"
SSD = {"localSsds": [{"interface": "NVME", "diskSizeGb": 375}]}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, NOT_SHARED),
        ({"reservationSharingPolicy": {}}, NOT_SHARED),
        ({"project": "local-far"}, f"is not shared with project {PROJECT} (shareSettings)"),
        ({"machine": SSD}, "has manually attached local SSDs, which Vertex AI does not support"),
        (
            {"machine": {"machineType": "n1-standard-8"}},
            "has machines of n1-standard-8, the job requests n1-standard-4",
        ),
    ],
)
def test_a_reservation_that_cannot_serve_a_job_is_refused_with_the_reason(
    world: World, given: dict[str, Any], reason: str
) -> None:
    world.grant("local-far")
    path = world.add("r", **given)
    assert world.refusal(named(path)) == (9, f"workerpool0: the reservation {path} {reason}.")
    shape = f"workerpool0: no open reservation of {N1} in us-central1; using on-demand machines"
    assert world.plan(of_any()) == Plan({}, {}, [shape])


def test_a_reservation_by_name_only_is_not_taken_by_others(world: World) -> None:
    path = world.add("r", specificReservationRequired=True)
    assert world.plan(named(path)).wanted == {path: 1}
    assert world.plan(of_any()).wanted == {}


def test_of_zones_with_as_many_the_first_is_taken_and_pools_count(world: World) -> None:
    a, b = world.add("a", 2), world.add("b", 2, "us-central1-b")
    assert world.plan(of_any()).wanted == {a: 1}
    assert world.plan(of_any(), of_any()).wanted == {a: 1, b: 1}
    world.use(a, 2)
    assert world.plan(of_any()).wanted == {b: 1}


@pytest.fixture
def table(tmp_path: Path) -> JobTable:
    return JobTable(tmp_path / "cloud.sqlite")


def row(job_id: str, time: str = "1", **changes: object) -> JobRecord:
    made = job_row(job_id, {"a": [1]})
    return replace(made, create_time=time, **changes)  # pyright: ignore[reportArgumentType]


def test_machines_are_taken_all_or_none(table: JobTable) -> None:
    for job_id, time in (("1", "2"), ("2", "1")):
        table.insert(row(job_id, time, state=JobState.PENDING))
    limits = {"r": 3, "s": 1}
    assert table.claim("1", {"r": 2, "s": 1}, limits)
    assert (table.used("r"), table.used("s"), table.used("none")) == (2, 1, 0)
    assert not table.claim("2", {"r": 1, "s": 1}, limits)
    assert (table.used("r"), table.used("s")) == (2, 1)
    assert table.claim("2", {"r": 1}, limits)
    assert table.used("r") == 3
    assert [each.job_id for each in table.users("r")] == ["2", "1"]
    assert [each.job_id for each in table.users("s")] == ["1"]


PLACE = "projects/1/locations/us-central1"
TARGET = f"{PLACE}/models/m"


@pytest.fixture
def operations(tmp_path: Path) -> OperationTable:
    return OperationTable(tmp_path / "cloud.sqlite")


def text(value: str) -> wrappers_pb2.StringValue:
    return wrappers_pb2.StringValue(value=value)


def begin(operations: OperationTable, target: str = TARGET, method: str = "Upload") -> str:
    return operations.begin(target, method, {"x": 1}, text("meta")).name


def test_an_operation_ends_once(operations: OperationTable) -> None:
    name, other = begin(operations), begin(operations, f"{TARGET}2")
    operations.end(name, text("done"))
    operations.end(name, ApiError(grpc.StatusCode.INTERNAL, "late"))
    meta = packed(text("meta"))
    assert operations.get(name) == Operation(
        name=name, metadata=meta, done=True, response=packed(text("done"))
    )
    operations.end(other, ApiError(grpc.StatusCode.NOT_FOUND, "none"))
    failed = operations.get(other)
    assert failed is not None
    assert (failed.done, failed.error.code, failed.error.message) == (True, 5, "none")
    assert operations.unfinished() == []
    operations.end(f"{TARGET}/operations/1", text("x"))
    assert operations.get(f"{TARGET}/operations/1") is None
