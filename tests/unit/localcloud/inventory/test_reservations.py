"""Reservations as jobs see them: their machines, whom they are open to, and when they are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory import reservations
from localgcp.inventory.reservations import RESERVATION, Reservation, Shape
from localgcp.inventory.store import Store
from localgcp.projects import local_project_number

PROJECT, OTHER = "local-p1", "local-p2"
PATH = f"projects/{PROJECT}/zones/us-west1-b/reservations/r"
SPECIFIC = {"count": "4", "instanceProperties": {"machineType": "a2-highgpu-2g"}}
A2 = Shape("a2-highgpu-2g", "NVIDIA_TESLA_A100", 2)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.sqlite")


def put(store: Store, **outputs: Any) -> Reservation | None:
    values = {"zone": "us-west1-b", "specificReservation": SPECIFIC, **outputs}
    store.put(RESERVATION, PATH, PROJECT, {}, values)
    return reservations.find(store, PATH)


def test_a_reservation_has_what_is_stored(store: Store) -> None:
    assert put(store) == Reservation(
        PATH, PROJECT, "us-west1-b", 4, A2, 0, False, "DISALLOW_ALL", "LOCAL", frozenset()
    )
    machine = {"machineType": "n1-standard-8", "localSsds": [{}, {}], "guestAccelerators": []}
    found = put(
        store,
        zone="https://x/projects/p/zones/us-west1-b",
        specificReservation={"count": 1, "instanceProperties": machine},
        specificReservationRequired=True,
        reservationSharingPolicy={"serviceShareType": "ALLOW_ALL"},
        shareSettings={
            "shareType": "SPECIFIC_PROJECTS",
            "projectMaps": [{"id": "a", "projectId": "b"}, {"id": "c", "projectId": ""}],
            "projects": ["d"],
        },
    )
    assert found == Reservation(
        PATH, PROJECT, "us-west1-b", 1, Shape("n1-standard-8"), 2, True, "ALLOW_ALL",
        "SPECIFIC_PROJECTS", frozenset("abcd"),
    )  # fmt: skip
    assert found.region == "us-west1"


def test_it_is_found_by_its_name_also_with_a_number_or_a_block(store: Store) -> None:
    wanted = put(store)
    numbered = PATH.replace(PROJECT, local_project_number(PROJECT))
    assert wanted is not None
    for name in (numbered, f"{PATH}/reservationBlocks/b", f"{numbered}/reservationBlocks/b/c/d"):
        assert reservations.find(store, name) == wanted
    assert reservations.find(store, f"{PATH}2") is None
    assert list(reservations.everywhere(store)) == [wanted]


def test_it_is_over_at_its_time(store: Store) -> None:
    now = datetime.now(UTC)
    later, before = ((now + timedelta(hours=n)).isoformat() for n in (1, -1))
    assert put(store, deleteAtTime=later) is not None
    assert put(store, deleteAtTime=None) is not None
    assert put(store, deleteAtTime=before) is None
    assert list(reservations.everywhere(store)) == []


@pytest.mark.parametrize(
    ("share", "own", "other"),
    [
        ({}, True, False),
        ({"shareType": "LOCAL"}, True, False),
        ({"shareType": "ORGANIZATION"}, True, True),
        ({"shareType": "SPECIFIC_PROJECTS", "projects": [OTHER]}, True, True),
        ({"shareType": "SPECIFIC_PROJECTS", "projectMaps": [{"id": local_project_number(OTHER)}]},
         True, True),
        ({"shareType": "SPECIFIC_PROJECTS", "projects": ["local-p3"]}, True, False),
    ],
)  # fmt: skip
def test_it_is_open_to_its_project_and_those_it_is_shared_with(
    store: Store, share: Any, own: bool, other: bool
) -> None:
    found = put(store, shareSettings=share)
    assert found is not None
    assert (found.open_to(PROJECT), found.open_to(OTHER)) == (own, other)


@pytest.mark.parametrize(
    ("machine", "shape", "text"),
    [
        ({}, Shape(""), ""),
        ({"machineType": "n1-standard-8"}, Shape("n1-standard-8"), "n1-standard-8"),
        ({"machineType": "n1-standard-8", "guestAccelerators": [
            {"acceleratorType": "projects/p/zones/z/acceleratorTypes/nvidia-tesla-t4",
             "acceleratorCount": "2"}]},
         Shape("n1-standard-8", "NVIDIA_TESLA_T4", 2), "n1-standard-8 with 2 x NVIDIA_TESLA_T4"),
        ({"machineType": "a2-highgpu-2g"}, A2, "a2-highgpu-2g with 2 x NVIDIA_TESLA_A100"),
    ],
)  # fmt: skip
def test_machines_of_one_shape_fit_each_other(machine: Any, shape: Shape, text: str) -> None:
    assert (reservations.shape_of(machine), str(shape)) == (shape, text)


#: doc:training/configure-compute.
GPUS = {
    "g2-standard-4": ("NVIDIA_L4", 1), "g2-standard-8": ("NVIDIA_L4", 1),
    "g2-standard-12": ("NVIDIA_L4", 1), "g2-standard-16": ("NVIDIA_L4", 1),
    "g2-standard-24": ("NVIDIA_L4", 2), "g2-standard-32": ("NVIDIA_L4", 1),
    "g2-standard-48": ("NVIDIA_L4", 4), "g2-standard-96": ("NVIDIA_L4", 8),
    "g4-standard-48": ("NVIDIA_RTX_PRO_6000", 1), "g4-standard-96": ("NVIDIA_RTX_PRO_6000", 2),
    "g4-standard-192": ("NVIDIA_RTX_PRO_6000", 4), "g4-standard-384": ("NVIDIA_RTX_PRO_6000", 8),
    "a2-highgpu-1g": ("NVIDIA_TESLA_A100", 1), "a2-highgpu-2g": ("NVIDIA_TESLA_A100", 2),
    "a2-highgpu-4g": ("NVIDIA_TESLA_A100", 4), "a2-highgpu-8g": ("NVIDIA_TESLA_A100", 8),
    "a2-megagpu-16g": ("NVIDIA_TESLA_A100", 16), "a2-ultragpu-1g": ("NVIDIA_A100_80GB", 1),
    "a2-ultragpu-2g": ("NVIDIA_A100_80GB", 2), "a2-ultragpu-4g": ("NVIDIA_A100_80GB", 4),
    "a2-ultragpu-8g": ("NVIDIA_A100_80GB", 8), "a3-highgpu-1g": ("NVIDIA_H100_80GB", 1),
    "a3-highgpu-2g": ("NVIDIA_H100_80GB", 2), "a3-highgpu-4g": ("NVIDIA_H100_80GB", 4),
    "a3-highgpu-8g": ("NVIDIA_H100_80GB", 8), "a3-megagpu-8g": ("NVIDIA_H100_MEGA_80GB", 8),
    "a3-ultragpu-8g": ("NVIDIA_H200_141GB", 8), "a4-highgpu-8g": ("NVIDIA_B200", 8),
    "a4x-highgpu-4g": ("NVIDIA_GB200", 4), "n1-standard-4": ("", 0),
}  # fmt: skip


@pytest.mark.parametrize("machine", GPUS)
def test_a_machine_type_may_have_gpus_of_its_own(machine: str) -> None:
    assert reservations.shape_of({"machineType": machine}) == Shape(machine, *GPUS[machine])
