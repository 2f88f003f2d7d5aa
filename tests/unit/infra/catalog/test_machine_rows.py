"""Rows of a small catalogue become machine types, accelerators and prices, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training import catalog
from vertex_training.catalog import machines
from vertex_training.catalog.machines import Price

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


@pytest.mark.parametrize(
    ("name", "words"),
    [("big-1", "GPU with count 8"), ("odd", "SMALL with count 1 or 2 or 4"), ("slice-4", "")],
)
def test_accelerators_of_a_machine_in_words(name: str, words: str) -> None:
    assert machines.machine_types()[name].choices == words


def test_what_is_no_machine_type_says_why() -> None:
    assert machines.unavailable_reason("worse-2") == "gone"
    assert machines.unavailable_reason("worse-8") == "too old"
    assert machines.unavailable_reason("fine-2") == ""
    assert (machines.bandwidth("big-1"), machines.bandwidth("odd")) == (100, None)


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
