"""Rows of ``vt catalogue``, whole: for people in a table and in lines, and for programs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price
from vertex_training_cli import catalogue
from vertex_training_cli.catalogue import MachineOption

PRICE = Price(1.234, 0.5, "us-central1", "a page", "2026-11-01")
GPU = Price(0.35, None, "us-central1", "a GPU's page", "2026-11-02")
MACHINE = MachineType(
    name="x1-standard-4", family="x1", vcpus=4, memory_gb=16.5, accelerators={"GPU_A": (1, 2)},
    accelerator_required=False, regions=frozenset({"r1", "r2", "r3", "r4"}),
    regions_without_shape=frozenset({"r4"}), flex_start=True, reservation_required=False,
    single_replica=False, topologies=(), chips=None, pod_regions={}, price=PRICE,
    source="its page", date="2026-10-01",
)  # fmt: skip
TPU = replace(
    MACHINE, name="t1-hightpu-4t", family="t1", vcpus=None, memory_gb=None, accelerators={},
    single_replica=True, topologies=("2x2", "2x4"), price=None,
)  # fmt: skip
BARE, WITH_GPU = MachineOption(MACHINE, "", ()), MachineOption(MACHINE, "GPU_A", (1, 2))
OF_TPU = MachineOption(TPU, "", ())


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue of two machine types and one accelerator."""
    gpu = SimpleNamespace(regions=frozenset({"r1", "r2", "r4"}))
    types = {each.name: each for each in (TPU, MACHINE)}
    monkeypatch.setattr(machines, "machine_types", lambda: types)
    monkeypatch.setattr(machines, "accelerators", lambda: {"GPU_A": gpu})
    monkeypatch.setattr(machines, "regions", lambda: frozenset({"r1", "r2", "r3"}))
    monkeypatch.setattr(
        machines, "machine_prices", lambda machine, _: (machine.price,) if machine.price else ()
    )
    monkeypatch.setattr(
        machines, "accelerator_prices", lambda name, _: (GPU,) if name == "GPU_A" else ()
    )


@pytest.mark.parametrize(
    ("row", "region", "text"),
    [
        (BARE, "", "x1-standard-4: 4 vCPU, 16.5 GB\n"
         "  1.23 USD/h, spot 0.50 (us-central1, 2026-11-01)\n  in r1, r2, r3"),
        (WITH_GPU, "r1", "x1-standard-4: GPU_A (1, 2), 4 vCPU, 16.5 GB\n"
         "  1.23 USD/h, spot 0.50, 0.35 per GPU (us-central1, 2026-11-01)\n  also in r2"),
        (OF_TPU, "r1", "t1-hightpu-4t: 2x2, 2x4\n  no price\n  also in r2, r3"),
        (MachineOption(replace(TPU, regions=frozenset({"r1"})), "", ()), "r1",
         "t1-hightpu-4t: 2x2, 2x4\n  no price\n  also in no other region"),
    ],
)  # fmt: skip
def test_a_row_in_lines_for_a_narrow_terminal(row: MachineOption, region: str, text: str) -> None:
    assert catalogue._as_text(row, region) == text


def test_a_row_for_programs() -> None:
    assert catalogue.as_dict(WITH_GPU) == {
        "machineType": "x1-standard-4",
        "vcpus": 4,
        "memoryGb": 16.5,
        "acceleratorType": "GPU_A",
        "acceleratorCounts": [1, 2],
        "acceleratorRequired": False,
        "tpuTopologies": [],
        "regions": ["r1", "r2"],
        "flexStart": True,
        "reservationRequired": False,
        "price": {
            "onDemand": 1.234, "spot": 0.5, "region": "us-central1", "source": "a page",
            "date": "2026-11-01",
        },
        "pricePerGpu": {
            "onDemand": 0.35, "spot": None, "region": "us-central1", "source": "a GPU's page",
            "date": "2026-11-02",
        },
        "source": "its page",
        "date": "2026-10-01",
    }  # fmt: skip
    tpu = catalogue.as_dict(OF_TPU)
    assert (tpu["acceleratorType"], tpu["tpuTopologies"]) == (None, ["2x2", "2x4"])
    assert (tpu["price"], tpu["pricePerGpu"], tpu["vcpus"]) == (None, None, None)
