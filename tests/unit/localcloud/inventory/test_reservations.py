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
