"""Costs: from the catalogue's prices, never guessed."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training import catalog
from vertex_training.catalog import costs, machines

FEE = 1 + machines.fee_share()


def price_of(name: str) -> machines.Price:
    machine = machines.machine_type(name)
    assert machine is not None
    assert machine.price is not None
    return machine.price


def pool(machine: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    return {"machineSpec": {"machineType": machine, **spec}, "replicaCount": replicas}


def job(*pools: dict[str, Any], **scheduling: Any) -> dict[str, Any]:
    return {"jobSpec": {"workerPoolSpecs": list(pools), "scheduling": scheduling}}


def test_prices_of_queries_name_sources_that_are_there() -> None:
    rows = catalog.load("query_prices.yaml")
    for row in rows["prices"].values():
        assert row["source"]
        assert set(row["source"]) <= set(rows["sources"])


def test_a_slice_of_tpus_is_paid_by_its_machines() -> None:
    cost = costs.of_job(job(pool("ct5lp-hightpu-4t", tpuTopology="4x4")), "us-central1")
    assert cost.pools[0].machines == 4
    assert cost.hourly == pytest.approx(4 * price_of("ct5lp-hightpu-4t").on_demand * FEE)


@given(
    machine=st.sampled_from(sorted(machines.machine_types())),
    replicas=st.integers(1, 100),
    hours=st.integers(1, 1000),
    strategy=st.sampled_from(["STANDARD", "SPOT", "FLEX_START"]),
)
def test_a_price_is_positive_or_absent_and_grows_with_size_and_time(
    machine: str, replicas: int, hours: int, strategy: str
) -> None:
    def cost(replicas: int, hours: int) -> float | None:
        message = job(pool(machine, replicas), timeout=f"{hours * 3600}s", strategy=strategy)
        return costs.of_job(message, "us-central1").worst_case

    one, many = cost(1, 1), cost(replicas, hours)
    assert (one is None) == (many is None)
    if one is not None and many is not None:
        assert one > 0
        assert math.isclose(many, one * replicas * hours, rel_tol=1e-9)
