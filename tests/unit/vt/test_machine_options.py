"""Rows of ``vt catalogue``, whole: for people in a table and in lines, and for programs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price
from vertex_training.errors import UnknownNameError
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


def test_machines_are_listed_alone_and_with_each_accelerator() -> None:
    assert catalogue.select() == [OF_TPU, BARE, WITH_GPU]
    assert catalogue.select("gpu-a") == [WITH_GPU]
    assert catalogue.select("a") == [WITH_GPU]
    assert catalogue.select("_gpu_") == [WITH_GPU]
    assert catalogue.select(region="r3") == [OF_TPU, BARE]
    assert catalogue.select("GPU_A", "r1") == [WITH_GPU]
    assert catalogue.select("GPU_A", "r3") == []


def test_rows_are_ordered_by_family_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def machine(name: str, family: str, vcpus: int | None) -> MachineType:
        return replace(MACHINE, name=name, family=family, vcpus=vcpus, accelerators={})

    types = [
        machine("b-standard-2", "b", 2), machine("a-standard-4", "a", 4),
        machine("a-standard-16", "a", 16), machine("a-highmem-4", "a", 4), machine("a", "a", None),
    ]  # fmt: skip
    monkeypatch.setattr(machines, "machine_types", lambda: {each.name: each for each in types})
    assert [row.machine.name for row in catalogue.select()] == [
        "a", "a-highmem-4", "a-standard-4", "a-standard-16", "b-standard-2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("accelerator", "region", "text"),
    [
        ("GPU_AA", "", "no accelerator 'GPU_AA'; did you mean 'GPU_A'?"),
        ("GP", "", "no accelerator 'GP'; "),
        ("", "r4", "no training region 'r4'; did you mean 'r"),
        ("", "mars", "no training region 'mars'; "),
    ],
)
def test_what_the_catalogue_does_not_have_is_refused(
    accelerator: str, region: str, text: str
) -> None:
    with pytest.raises(UnknownNameError) as refused:
        catalogue.select(accelerator, region)
    assert str(refused.value).startswith(text)


def test_a_machine_that_needs_its_accelerator_is_not_listed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs = replace(MACHINE, accelerator_required=True)
    pods = replace(TPU, accelerators={"TPU_X": (4,)})
    monkeypatch.setattr(machines, "machine_types", lambda: {"a": needs, "b": pods})
    assert list(catalogue._all()) == [
        MachineOption(needs, "GPU_A", (1, 2)), MachineOption(pods, "TPU_X", (4,)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "regions"),
    [(BARE, {"r1", "r2", "r3"}), (WITH_GPU, {"r1", "r2"}), (OF_TPU, {"r1", "r2", "r3"})],
)
def test_a_row_has_the_regions_of_machine_and_accelerator(
    row: MachineOption, regions: set[str]
) -> None:
    assert row.regions == regions


@pytest.mark.parametrize(
    ("row", "region", "cells"),
    [
        (BARE, "", ["x1-standard-4", "-", "-", "4", "16.5", "1.23", "0.50", "-",
                    "us-central1, 2026-11-01", "r1, r2, r3"]),
        (WITH_GPU, "r1", ["x1-standard-4", "GPU_A", "1, 2", "4", "16.5", "1.23", "0.50", "0.35",
                          "us-central1, 2026-11-01", "r2"]),
        (OF_TPU, "", ["t1-hightpu-4t", "-", "2x2, 2x4", "-", "-", "no price", "-", "-", "-",
                      "r1, r2, r3"]),
    ],
)  # fmt: skip
def test_the_cells_of_a_row(row: MachineOption, region: str, cells: list[str]) -> None:
    assert catalogue._cells(row, region) == cells


def test_a_price_without_spot_and_many_regions_are_short() -> None:
    many = frozenset(f"r{number}" for number in range(5))
    machine = replace(MACHINE, price=replace(PRICE, spot=None), regions=many)
    assert catalogue._cells(MachineOption(machine, "", ()), "")[6:] == [
        "-", "-", "us-central1, 2026-11-01", "4 regions",
    ]  # fmt: skip


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


def test_a_file_gets_a_table_that_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    catalogue._table([OF_TPU, WITH_GPU], "")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "",
        "machine type accelerator count or topology vCPU GB USD/h spot per GPU price of regions",
        lines[2],
        "t1-hightpu-4t - 2x2, 2x4 - - no price - - - r1, r2, r3",
        "x1-standard-4 GPU_A 1, 2 4 16.5 1.23 0.50 0.35 us-central1, 2026-11-01 r1, r2",
        "",
        "List prices in USD an hour without Vertex AI's fee, boot disk and network; 'per GPU' is "
        "added to the machine's price, where it stands.",
    ]
    assert set(lines[2]) == {"─"}
    catalogue._table([], "r1")
    assert "price of also in" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("width", "is_table"), [(109, False), (110, True)])
def test_a_terminal_of_110_columns_gets_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, is_table: bool
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    catalogue._table([OF_TPU], "")
    text = capsys.readouterr().out
    assert ("machine type" in text) is is_table
    assert ("t1-hightpu-4t: 2x2, 2x4\n  no price\n" in text) is not is_table
