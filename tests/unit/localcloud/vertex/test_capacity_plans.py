"""What a job takes of reservations: by name, or of any that fits; and why one cannot serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import StartRefusedError
from localgcp.inventory.store import Binding, Store
from localgcp.vertex import agents, capacity
from localgcp.vertex.capacity import Plan
from localgcp.vertex.records import JobRecord, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

RESERVATION = "gcp:compute/reservation:Reservation"
KEY = "compute.googleapis.com/reservation-name"
AGENT = agents.service_agent(PROJECT)
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


def test_a_job_without_an_affinity_takes_nothing(world: World) -> None:
    world.add("r", 8)
    none = {"machineSpec": {"machineType": N1, "reservationAffinity":
            {"reservationAffinityType": "NO_RESERVATION"}}}  # fmt: skip
    assert world.plan({"machineSpec": {"machineType": N1}}, {}, none) == Plan()
    assert capacity.plan(world.store, world.jobs, job_row("1", {})) == Plan({}, {}, [], "")


def test_the_reservations_that_a_job_names_are_taken_in_their_order(world: World) -> None:
    one, two = world.add("one", 2), world.add("two", 3)
    world.use(one, 1)
    assert world.plan(named(two, one, replicas=4)) == Plan(
        {two: 3, one: 1},
        {two: 3, one: 2},
        [f"workerpool0: 3 of reservation {two}", f"workerpool0: 1 of reservation {one}"],
        "",
    )
    assert world.plan(named(two, one, replicas=5)) == Plan(
        {two: 3, one: 1},
        {two: 3, one: 2},
        [f"workerpool0: 3 of reservation {two}", f"workerpool0: 1 of reservation {one}"],
        f"workerpool0 asks for 5 machines; {two}, {one} has 5",
    )


def test_pools_share_a_reservation(world: World) -> None:
    one = world.add("one", 3)
    pool = named(one, replicas=2)
    del pool["replicaCount"]
    assert world.plan(pool, {}, named(one, replicas=2)) == Plan(
        {one: 3},
        {one: 3},
        [f"workerpool0: 1 of reservation {one}", f"workerpool2: 2 of reservation {one}"],
    )
    assert world.plan(named(one, replicas=3), named(one)).short == (
        f"workerpool1 asks for 1 machines; {one} has 3"
    )


def test_a_reservation_that_is_used_up_gives_nothing(world: World) -> None:
    one = world.add("one", 1)
    world.use(one, 1)
    made = world.plan(named(one))
    assert made == Plan({}, {}, [], f"workerpool0 asks for 1 machines; {one} has 1")
    # Before the job is queued what others hold does not count.
    capacity.admit(world.store, job(named(one)))
    with pytest.raises(StartRefusedError) as refused:
        capacity.admit(world.store, job(named(one, replicas=2)))
    assert (refused.value.code, refused.value.message) == (
        9,
        f"workerpool0 asks for 2 machines; {one} has 1 in all.",
    )


def test_a_reservation_that_cannot_be_seen_or_is_not_there_is_refused(world: World) -> None:
    none = f"projects/{PROJECT}/zones/us-central1-a/reservations/none"
    assert world.refusal(named(none)) == (
        5,
        f"workerpool0: the reservation {none} does not exist (or cannot be seen).",
    )
    over = world.add("over", deleteAtTime="2020-01-01T00:00:00Z")
    assert world.refusal({}, named(over))[1].startswith("workerpool1: the reservation")
    far = world.add("far", project="local-far")
    assert world.refusal(named(far)) == (
        7,
        f"{AGENT} does not have compute.reservations.get on {far}. Grant it roles/compute.viewer "
        "in project local-far.",
    )


NOT_SHARED = "is not shared with Vertex AI (reservationSharingPolicy.serviceShareType: ALLOW_ALL)"
SSD = {"localSsds": [{"interface": "NVME", "diskSizeGb": 375}]}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, NOT_SHARED),
        ({"reservationSharingPolicy": {}}, NOT_SHARED),
        ({"project": "local-far"}, f"is not shared with project {PROJECT} (shareSettings)"),
        ({"machine": SSD}, "has local SSDs attached by hand, which Vertex AI cannot use"),
        (
            {"machine": {"machineType": "n1-standard-8"}},
            "is of n1-standard-8, the job asks for n1-standard-4",
        ),
    ],
)
def test_a_reservation_that_cannot_serve_a_job_is_refused_with_the_reason(
    world: World, given: dict[str, Any], reason: str
) -> None:
    world.grant("local-far")
    path = world.add("r", **given)
    assert world.refusal(named(path)) == (9, f"workerpool0: the reservation {path} {reason}.")
    shape = f"workerpool0: no open reservation of {N1} in us-central1; on demand"
    assert world.plan(of_any()) == Plan({}, {}, [shape])


def test_a_reservation_by_name_only_is_not_taken_by_others(world: World) -> None:
    path = world.add("r", specificReservationRequired=True)
    assert world.plan(named(path)).wanted == {path: 1}
    assert world.plan(of_any()).wanted == {}


def test_any_reservation_is_of_the_zone_with_most_free_machines(world: World) -> None:
    world.add("a1", 2)
    b1, b2 = (world.add(name, 2, "us-central1-b") for name in ("b1", "b2"))
    world.add("far", 50, "us-east1-b")
    assert world.plan(of_any(replicas=3)) == Plan(
        {b1: 2, b2: 1},
        {b1: 2, b2: 2},
        [f"workerpool0: 2 of reservation {b1}", f"workerpool0: 1 of reservation {b2}"],
    )
    first = Plan({b1: 2}, {b1: 2}, [f"workerpool0: 2 of reservation {b1}"])
    assert world.plan(of_any(replicas=2)) == first
    assert world.plan(of_any(replicas=4)).notes == [
        f"workerpool0: 2 of reservation {b1}",
        f"workerpool0: 2 of reservation {b2}",
    ]
    assert world.plan(of_any(replicas=5)).notes[2:] == [
        "workerpool0: 1 on demand in us-central1-b, its reservations are used up",
    ]
    assert world.plan(of_any(replicas=5)).short == ""


def test_of_zones_with_as_many_the_first_is_taken_and_pools_count(world: World) -> None:
    a, b = world.add("a", 2), world.add("b", 2, "us-central1-b")
    assert world.plan(of_any()).wanted == {a: 1}
    assert world.plan(of_any(), of_any()).wanted == {a: 1, b: 1}
    world.use(a, 2)
    assert world.plan(of_any()).wanted == {b: 1}


def test_the_shape_has_the_accelerators(world: World) -> None:
    gpu = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
    path = world.add("gpu", machine={"guestAccelerators": [gpu]})
    asked = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    assert world.plan(of_any(**asked)).wanted == {path: 1}
    assert world.plan(of_any()).wanted == {}
    assert world.plan(of_any(**{**asked, "acceleratorCount": 2})).wanted == {}
