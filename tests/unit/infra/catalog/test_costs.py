"""What a job costs, figure by figure and word by word, against prices that are made up."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.catalog import costs, machines


@pytest.mark.parametrize(
    ("scheduling", "retries"),
    [
        ({}, 3),
        ({"strategy": "STANDARD"}, 3),
        ({"strategy": "FLEX_START"}, 3),
        ({"strategy": "SPOT"}, 6),
        ({"strategy": "LOW_COST"}, 6),
        ({"strategy": "SPOT", "disableRetries": True}, 0),
    ],
)
def test_a_job_on_batch_pays_for_each_attempt(scheduling: dict[str, Any], retries: int) -> None:
    assert costs.batch_retries(scheduling) == retries
    message = {"jobSpec": {"scheduling": scheduling}}
    assert costs.of_job(message, "us-central1", "batch").attempts == 1 + retries
    assert costs.of_job(message, "us-central1").attempts == 1


T4 = "NVIDIA_TESLA_T4"


def test_two_versions_on_small_machines_cost_what_a_hand_calculation_says() -> None:
    # n1-standard-4 in us-central1 is 0.189999 USD an hour, so n1-standard-2 is 0.0949995.
    # With the fee of 15 % it is 0.109249425; times 730 h 79.75208025 a month for one machine.
    # Two versions: 2 machines at least, 159.5041605; 2 x 2 at most, 319.008321.
    cost = costs.of_endpoint("n1-standard-2", None, 0, (1, 2), 2, "us-central1")
    assert cost.monthly == pytest.approx((159.5041605, 319.008321))
    assert str(cost) == "$159.50 to $319.01 a month"


def test_gpus_are_in_the_month() -> None:
    # n1-standard-4 0.189999 + one T4 0.35 = 0.539999; x 1.15 x 730 = 453.3291605 for each replica.
    cost = costs.of_endpoint("n1-standard-4", T4, 1, (1, 3), 1, "us-central1")
    assert cost.monthly == pytest.approx((453.3291605, 1359.9874815))


def test_a_region_of_its_own_price_is_taken_and_another_regions_named() -> None:
    # N1 in europe-west4 (skypilot-v8): n1-standard-8 is 0.41834, a quarter of it n1-standard-2.
    cost = costs.of_endpoint("n1-standard-2", None, 0, (1, 1), 1, "europe-west4")
    assert cost.most == pytest.approx(0.41834 / 4 * 1.15 * 730, rel=1e-3)
    elsewhere = costs.of_endpoint("g2-standard-4", "NVIDIA_L4", 1, (1, 1), 1, "europe-west4")
    assert str(elsewhere).endswith(" a month, at prices of us-central1")


def test_an_endpoint_without_a_price_has_none_and_never_zero() -> None:
    cost = costs.of_endpoint("n9-standard-2", None, 0, (1, 2), 1, "us-central1")
    assert (cost.monthly, cost.most, str(cost)) == (None, None, "no price")


@pytest.mark.parametrize(
    ("machine", "kind", "count"),
    [
        ("a2-highgpu-1g", "NVIDIA_TESLA_A100", 8),
        ("a2-highgpu-1g", "NVIDIA_L4", 1),
        ("n1-standard-2", T4, 3),
    ],
)
def test_gpus_that_a_machine_cannot_have_get_no_price(machine: str, kind: str, count: int) -> None:
    assert costs.of_endpoint(machine, kind, count, (1, 1), 1, "us-central1").monthly is None


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
