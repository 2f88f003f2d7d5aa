"""Rows of a small catalogue become machine types, accelerators and prices, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training import catalog
from vertex_training.catalog import costs, machines
from vertex_training.catalog.machines import Accelerator, MachineType, Price

SOURCE = {"source": ["page", "list"], "date": "2026-01-02"}
MACHINES: dict[str, Any] = {
    "families": {
        "big": {
            "accelerators": {"GPU": [8]}, "accelerator_required": True, "regions": ["r1", "r2"],
            "flex_start": True, "reservation_required": True,
        },
        "slice": {
            "accelerator_required": False, "single_replica": True,
            "regions_without_shape": ["r3"],
        },
        "plain": {"accelerator_required": False, "accelerators": {"SMALL": [1, 2, 4]}},
    },
    "types": {
        "big-1": {
            "family": "big", "vcpus": 96, "memory_gb": 680, **SOURCE,
            "price": {"on_demand": 10.0, "spot": 4.0, "region": "r1", **SOURCE},
        },
        "slice-4": {
            "family": "slice", "chips": 4, "topologies": ["2x2", "4x4"], "price": "no price",
            "pod_regions": {"TPU": ["r1"]}, **SOURCE,
        },
        "plain-std-4": {
            "family": "plain", "vcpus": 4, "memory_gb": 15, **SOURCE,
            "price": {"on_demand": 0.2, "spot": 0.05, "region": "r1", **SOURCE},
        },
        "plain-std-8": {
            "family": "plain", "vcpus": 8, "memory_gb": 30, **SOURCE,
            "price": {"on_demand": 0.4, "region": "r1", **SOURCE},
        },
        "vast-std-16": {"family": "plain", "vcpus": 16, "memory_gb": 64, **SOURCE,
                        "price": {"on_demand": 1.6, "region": "r1", **SOURCE}},
        "tiny-std-1": {"family": "plain", "vcpus": 1, "price": "no price", **SOURCE},
        "odd": {"family": "plain", "price": {"on_demand_v2": 1, **SOURCE}, **SOURCE},
    },
    "refused": {"worse": {"reason": "too old"}, "worse-2": {"reason": "gone"}},
    "fee": {"ratio": 1.5},
    "disks": {"types": ["ssd", "hdd"], "size_gb": {"min": 10, "max": 20, "default": 12}},
}  # fmt: skip
ACCELERATORS: dict[str, Any] = {
    "GPU": {
        "memory_gb": 80, "regions": ["r1"], "flex_start": True, "vpc_peering": False,
        "status": "end of support", "default_quota": "0", **SOURCE,
    },
    "SMALL": {"price": {"on_demand": 0.3, "spot": 0.1, "region": "r1", **SOURCE}, **SOURCE},
}  # fmt: skip
ELSEWHERE: dict[str, Any] = {
    "machines": {
        "plain": {
            "source": "other", "date": "2025-01-01",
            "regions": {
                "r2": {"vcpus": [0.01, None], "memory_gb": [0.002, 0.001]},
                "r1": {"vcpus": [0.02, 0.01], "memory_gb": [0.004, 0.002]},
            },
        },
        "big": {"source": "other", "date": "2025-01-01", "regions": {"r2": {"gpus": [1.5, 1.0]}}},
    },
    "accelerators": {
        "SMALL": {
            "source": "other", "date": "2025-01-01",
            "regions": {"r2": [0.4, None], "r3": [0.4, 0.2]},
        }
    },
    "disks": {"dearest": {"ssd": 0.3, "hdd": 0.1}},
}  # fmt: skip
FILES = {
    "machines.yaml": MACHINES,
    "accelerators.yaml": ACCELERATORS,
    "regional_prices.yaml": ELSEWHERE,
    "regions.yaml": [{"region": "r1"}, {"region": "r2"}],
    "bandwidth.yaml": {"big-1": {"gbps": 100}},
}


@pytest.fixture(autouse=True)
def _small_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "load", FILES.__getitem__)
    for name in ("machine_types", "accelerators", "regions"):
        made = getattr(machines, name).__wrapped__()
        monkeypatch.setattr(machines, name, lambda made=made: made)


def test_a_machine_type_has_what_its_row_and_its_family_say() -> None:
    assert machines.machine_type("big-1") == MachineType(
        name="big-1",
        family="big",
        vcpus=96,
        memory_gb=680,
        accelerators={"GPU": (8,)},
        accelerator_required=True,
        regions=frozenset({"r1", "r2"}),
        regions_without_shape=frozenset(),
        flex_start=True,
        reservation_required=True,
        single_replica=False,
        topologies=(),
        chips=None,
        pod_regions={},
        price=Price(10.0, 4.0, "r1", "page+list", "2026-01-02"),
        source="page+list",
        date="2026-01-02",
    )
    assert machines.machine_type("slice-4") == MachineType(
        name="slice-4",
        family="slice",
        vcpus=None,
        memory_gb=None,
        accelerators={},
        accelerator_required=False,
        regions=frozenset(),
        regions_without_shape=frozenset({"r3"}),
        flex_start=False,
        reservation_required=False,
        single_replica=True,
        topologies=("2x2", "4x4"),
        chips=4,
        pod_regions={"TPU": frozenset({"r1"})},
        price=None,
        source="page+list",
        date="2026-01-02",
    )
    assert machines.machine_type("big-2") is None
    assert machines.machine_types()["odd"].price is None
    assert [m.name for m in machines.machine_types().values() if m.tpu] == ["slice-4"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("big-1", "GPU with count 8"), ("odd", "SMALL with count 1 or 2 or 4"), ("slice-4", "")],
)
def test_accelerators_of_a_machine_in_words(name: str, words: str) -> None:
    assert machines.machine_types()[name].choices == words


def test_an_accelerator_has_what_its_row_says() -> None:
    assert machines.accelerators() == {
        "GPU": Accelerator(
            "GPU", 80, frozenset({"r1"}), True, False, "end of support", "0", None, "page+list",
            "2026-01-02",
        ),
        "SMALL": Accelerator(
            "SMALL", None, frozenset(), False, True, "", "",
            Price(0.3, 0.1, "r1", "page+list", "2026-01-02"), "page+list", "2026-01-02",
        ),
    }  # fmt: skip
    assert machines.regions() == {"r1", "r2"}


def test_what_is_no_machine_type_says_why() -> None:
    assert machines.unavailable_reason("worse-2") == "gone"
    assert machines.unavailable_reason("worse-8") == "too old"
    assert machines.unavailable_reason("fine-2") == ""
    assert (machines.bandwidth("big-1"), machines.bandwidth("odd")) == (100, None)


OWN = Price(0.2, 0.05, "r1", "page+list", "2026-01-02")


@pytest.mark.parametrize(
    ("name", "region", "prices"),
    [
        # The row's own price is the best in its region; elsewhere one of the region is.
        ("plain-std-4", "r1", [OWN, Price(0.14, 0.07, "r1", "other", "2025-01-01")]),
        ("plain-std-4", "r2", [Price(0.07, None, "r2", "other", "2025-01-01"), OWN]),
        ("plain-std-4", "r9", [OWN]),
        ("big-1", "r2", [
            Price(12.0, 8.0, "r2", "other", "2025-01-01"),
            Price(10.0, 4.0, "r1", "page+list", "2026-01-02"),
        ]),
        ("slice-4", "r1", []),
        ("odd", "r2", []),
    ],
)  # fmt: skip
def test_prices_of_a_machine_are_the_best_for_the_region_first(
    name: str, region: str, prices: list[Price]
) -> None:
    assert machines.machine_prices(machines.machine_types()[name], region) == prices


@pytest.mark.parametrize(
    ("name", "region", "prices"),
    [
        ("SMALL", "r1", [Price(0.3, 0.1, "r1", "page+list", "2026-01-02")]),
        ("SMALL", "r2", [
            Price(0.4, None, "r2", "other", "2025-01-01"),
            Price(0.3, 0.1, "r1", "page+list", "2026-01-02"),
        ]),
        ("GPU", "r1", []),
        ("NONE", "r1", []),
    ],
)  # fmt: skip
def test_prices_of_an_accelerator_are_the_best_for_the_region_first(
    name: str, region: str, prices: list[Price]
) -> None:
    assert machines.accelerator_prices(name, region) == prices


@pytest.mark.parametrize(
    ("asked", "usd", "where"),
    [
        # On demand, with half of it as the fee.
        (("plain-std-4", None, 0, "r1"), 0.3, ("page+list", "2026-01-02", "r1", True)),
        (("plain-std-4", "SMALL", 2, "r1"), 1.2, ("page+list", "2026-01-02", "r1", True)),
        (("plain-std-4", "SMALL", 1, "r2"), 0.705, ("other", "2025-01-01", "r2", True)),
        (("big-1", "GPU", 8, "r1"), 15.0, ("page+list", "2026-01-02", "r1", True)),
        (("big-1", None, 0, "r9"), 15.0, ("page+list", "2026-01-02", "r1", False)),
        # Spot: where the region has no spot price, that of another; the fee is of its own price.
        (("plain-std-4", None, 0, "r2", "SPOT"), 0.15, ("page+list", "2026-01-02", "r1", False)),
        (("plain-std-4", "SMALL", 1, "r1", "LOW_COST"), 0.4,
         ("page+list", "2026-01-02", "r1", True)),
        (("plain-std-8", None, 0, "r9", "SPOT"), None, None),
        # Accelerators that it cannot have.
        (("plain-std-4", "SMALL", 3, "r1"), None, None),
        (("plain-std-4", "GPU", 8, "r1"), None, None),
        (("slice-4", None, 0, "r1"), None, None),
        (("nothing", None, 0, "r1"), None, None),
    ],
)  # fmt: skip
def test_a_rate_is_the_machine_with_its_accelerators_and_the_fee(
    asked: Any, usd: float | None, where: Any
) -> None:
    found = costs.hourly(*asked)
    if usd is None:
        assert found is None
        return
    assert found is not None
    assert found.usd == pytest.approx(usd)
    assert (found.source, found.date, found.region, found.exact) == where


def test_parts_of_two_places_are_both_named_and_the_older_date_counts() -> None:
    found = costs.hourly("plain-std-4", "SMALL", 1, "r3", "SPOT", fee=False)
    assert found is not None
    assert (found.source, found.date, found.region, found.exact) == (
        *("page+list+other", "2025-01-01", "r1+r3", False),
    )


@pytest.mark.parametrize(
    ("kind", "size", "usd"),
    [
        ("ssd", 12, 0), ("ssd", 11, 0), ("ssd", 13, 0.3), ("hdd", 22, 1.0), ("hyper", 22, 3.0),
        ("", 22, 3.0),
    ],
)  # fmt: skip
def test_a_disk_above_the_default_costs_its_dearest_price(kind: str, size: int, usd: float) -> None:
    assert machines.boot_disk_cost(kind, size) == pytest.approx(usd)
    assert machines.boot_disk_types() == ("ssd", "hdd")
    assert machines.boot_disk_sizes() == range(10, 21)
    assert machines.fee_share() == 0.5


def test_a_smaller_machine_of_an_endpoint_has_a_share_of_size_and_price() -> None:
    small = machines.serving_machine_type("plain-std-2")
    assert small is not None
    assert (small.name, small.family, small.vcpus, small.memory_gb) == (
        *("plain-std-2", "plain", 2, 7.5),
    )
    assert small.price == Price(0.1, 0.025, "r1", "page+list", "2026-01-02")
    assert machines.serving_machine_type("plain-std-8") is machines.machine_types()["plain-std-8"]
    vast = [machines.serving_machine_type(f"vast-std-{size}") for size in (2, 4, 8)]
    assert [(each.vcpus, each.memory_gb, each.price) for each in vast if each] == [
        (2, 8, Price(0.2, None, "r1", "page+list", "2026-01-02")),
        (4, 16, Price(0.4, None, "r1", "page+list", "2026-01-02")),
        (8, 32, Price(0.8, None, "r1", "page+list", "2026-01-02")),
    ]  # fmt: skip
    for name in (
        "plain-std-16",
        "plain-std-1",
        "plain-big-2",
        "big-2",
        "plain-std-x",
        "tiny-std-2",
    ):
        assert machines.serving_machine_type(name) is None
