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
T4 = "NVIDIA_TESLA_T4"


def price_of(name: str) -> machines.Price:
    machine = machines.machine_type(name)
    assert machine is not None
    assert machine.price is not None
    return machine.price


def pool(machine: str, replicas: int = 1, **spec: Any) -> dict[str, Any]:
    return {"machineSpec": {"machineType": machine, **spec}, "replicaCount": replicas}


def job(*pools: dict[str, Any], **scheduling: Any) -> dict[str, Any]:
    return {"jobSpec": {"workerPoolSpecs": list(pools), "scheduling": scheduling}}


def test_the_rate_a_source_quotes_for_vertex_ai_comes_out() -> None:
    rate = costs.hourly("n1-standard-4", None, 0, "us-central1")
    assert rate is not None
    assert rate.usd == pytest.approx(0.21849885)  # the catalogue's source n1-vertex-price


def test_a_rate_says_where_and_when_it_was_found() -> None:
    rate = costs.hourly("n1-standard-4", None, 0, "us-central1")
    price = price_of("n1-standard-4")
    assert rate == costs.Rate(
        price.on_demand * FEE, price.source, price.date, "us-central1", exact=True
    )


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "strategy", "usd"),
    [
        # Rows of the sources themselves: skypilot's of europe-west4, Cyclenerd's of 2025-03-06.
        ("n1-standard-8", None, 0, "STANDARD", 0.41834),
        ("n1-standard-8", None, 0, "SPOT", 0.16734),
        ("n1-highmem-8", None, 0, "STANDARD", 0.52094),
        ("n1-standard-96", None, 0, "STANDARD", 5.02003),
        ("n1-standard-8", T4, 2, "STANDARD", 0.41834 + 2 * 0.3675),
        ("n1-standard-8", T4, 2, "SPOT", 0.16734 + 2 * 0.175),
        ("a2-highgpu-2g", "NVIDIA_TESLA_A100", 2, "STANDARD", 7.495944),
    ],
)
def test_a_price_of_the_jobs_own_region_is_taken_where_a_source_has_it(
    machine: str, accelerator: str | None, count: int, strategy: str, usd: float
) -> None:
    rate = costs.hourly(machine, accelerator, count, "europe-west4", strategy, fee=False)
    assert rate is not None
    assert rate.usd == pytest.approx(usd, abs=2e-5)
    assert (rate.exact, rate.region) == (True, "europe-west4")


def test_gpus_of_n1_have_spot_prices() -> None:
    for gpu, spot in ((T4, 0.175), ("NVIDIA_TESLA_P4", 0.2236), ("NVIDIA_TESLA_V100", 1.0885)):
        rate = costs.hourly("n1-standard-4", gpu, 1, "us-central1", "SPOT", fee=False)
        assert rate is not None
        assert rate.usd == pytest.approx((price_of("n1-standard-4").spot or 0) + spot)
        assert rate.exact


def test_regional_prices_agree_with_those_of_the_catalogue_in_its_region() -> None:
    compared = 0
    for machine in machines.machine_types().values():
        found = machines.machine_prices(machine, "us-central1")
        if len(found) == 2:
            own, regional = found
            assert regional.on_demand == pytest.approx(own.on_demand, rel=1e-3), machine.name
            compared += 1
    assert compared >= 20


def test_regional_prices_name_regions_and_sources_that_are_there() -> None:
    rows = catalog.load("regional_prices.yaml")
    known = {**catalog.load("sources.yaml"), **rows["sources"]}
    for row in (*rows["machines"].values(), *rows["accelerators"].values()):
        assert row["source"] in known
        assert set(row["regions"]) <= machines.regions()


def test_prices_of_queries_name_sources_that_are_there() -> None:
    rows = catalog.load("query_prices.yaml")
    for row in rows["prices"].values():
        assert row["source"]
        assert set(row["source"]) <= set(rows["sources"])


def test_where_no_source_has_the_region_the_line_says_so() -> None:
    far = costs.of_job(job(pool("n2-standard-4"), timeout="3600s"), "europe-west4")
    told = ", at prices of us-central1: those of the job's region are unknown"
    assert str(far).endswith(f" in 1 h{told}")
    near = costs.of_job(job(pool("n1-standard-4"), timeout="3600s"), "europe-west4")
    assert str(near).endswith(" in 1 h")


@pytest.mark.parametrize("strategy", ["STANDARD", "SPOT"])
def test_no_price_is_taken_from_another_region_without_a_word(strategy: str) -> None:
    away = 0
    for machine in machines.machine_types().values():
        kind, counts = next(iter(machine.accelerators.items()), ("", (0,)))
        spec = pool(machine.name, acceleratorType=kind, acceleratorCount=counts[0])
        for region in sorted(machine.regions):
            cost = costs.of_job(job(spec, timeout="3600s", strategy=strategy), region)
            rates = [each.rate for each in cost.pools if each.rate]
            exact = all(rate.region == region for rate in rates)
            assert ("unknown" in str(cost)) == (not exact), (machine.name, region)
            away += not exact
    assert away >= 20


def test_a_price_of_another_region_is_not_exact() -> None:
    rate = costs.hourly("n2-standard-4", None, 0, "europe-west4")
    assert rate is not None
    assert (rate.exact, rate.region) == (False, "us-central1")


def test_attached_gpus_are_added_to_the_machine() -> None:
    rate = costs.hourly("n1-standard-8", T4, 2, "us-central1")
    gpu = machines.accelerators()[T4].price
    assert rate is not None
    assert gpu is not None
    assert rate.usd == pytest.approx(
        (price_of("n1-standard-8").on_demand + 2 * gpu.on_demand) * FEE
    )
    assert set(rate.source.split("+")) == {price_of("n1-standard-8").source, gpu.source}
    assert rate.date == "undated"  # the GPU's price is, and the sum is no younger


def test_gpus_of_a_machine_type_are_in_its_price() -> None:
    with_gpus = costs.hourly("a2-highgpu-8g", "NVIDIA_TESLA_A100", 8, "us-central1")
    assert with_gpus is not None
    assert with_gpus.usd == pytest.approx(price_of("a2-highgpu-8g").on_demand * FEE)


def test_spot_pays_the_spot_price_also_by_its_old_name() -> None:
    for strategy in ("SPOT", "LOW_COST"):
        rate = costs.hourly("a2-highgpu-8g", "NVIDIA_TESLA_A100", 8, "us-central1", strategy)
        assert rate is not None
        # The fee is 15 % of the price on demand, whatever is paid for the machine.
        price = price_of("a2-highgpu-8g")
        assert rate.usd == pytest.approx((price.spot or 0) + 0.15 * price.on_demand)


@pytest.mark.parametrize(
    ("machine", "accelerator", "count", "strategy"),
    [
        ("a4-highgpu-8g", "NVIDIA_B200", 8, "STANDARD"),
        ("n1-standard-8", "NVIDIA_TESLA_P100", 1, "SPOT"),  # no source has a spot price of it
        ("n1-standard-8", "NVIDIA_L4", 1, "STANDARD"),
        ("n1-standard-3", None, 0, "STANDARD"),
        ("", None, 0, "STANDARD"),
    ],
)
def test_what_has_no_price_has_none(
    machine: str, accelerator: str | None, count: int, strategy: str
) -> None:
    assert costs.hourly(machine, accelerator, count, "us-central1", strategy) is None


def test_the_worst_case_is_rate_times_replicas_times_timeout() -> None:
    cost = costs.of_job(
        job(pool("n1-standard-4"), {}, pool("n1-highmem-8", 3), timeout="7200s"), "us-central1"
    )
    hourly = price_of("n1-standard-4").on_demand + 3 * price_of("n1-highmem-8").on_demand
    assert [(each.index, each.machines) for each in cost.pools] == [(0, 1), (2, 3)]
    assert cost.hourly == pytest.approx(hourly * FEE)
    assert cost.worst_case == pytest.approx(hourly * FEE * 2)


def test_a_job_without_a_timeout_may_run_for_seven_days() -> None:
    cost = costs.of_job(job(pool("n1-standard-4")), "us-central1")
    assert cost.default_timeout
    assert cost.worst_case == pytest.approx(price_of("n1-standard-4").on_demand * FEE * 168)


@pytest.mark.parametrize("timeout", ["0.000000001s", "0.5s", "0.999999999s", "0s", "-1s"])
def test_a_timeout_below_a_second_is_paid_for_like_none(timeout: str) -> None:
    cost = costs.of_job(job(pool("n1-standard-4"), timeout=timeout), "us-central1")
    assert (cost.timeout, cost.default_timeout) == (costs.DEFAULT_TIMEOUT, True)


def test_a_part_of_a_second_is_paid_for_like_a_whole_one() -> None:
    cost = costs.of_job(job(pool("n1-standard-4"), timeout="1.000000001s"), "us-central1")
    assert cost.timeout == 2


@pytest.mark.parametrize("digits", [13, 400, 5000])
def test_no_timeout_is_too_long_to_be_paid_for(digits: int) -> None:
    cost = costs.of_job(job(pool("n1-standard-4"), timeout=f"{'9' * digits}s"), "us-central1")
    assert cost.worst_case is not None
    assert cost.worst_case > 10**8


@pytest.mark.parametrize(
    ("disk", "usd"),
    [
        ({}, 0),
        ({"bootDiskSizeGb": 100}, 0),
        ({"bootDiskType": "pd-standard"}, 0),
        ({"bootDiskSizeGb": 64000}, 63900 * 0.272 / 730),
        ({"bootDiskType": "pd-ssd", "bootDiskSizeGb": 600}, 500 * 0.272 / 730),
        ({"bootDiskType": "pd-standard", "bootDiskSizeGb": 600}, 500 * 0.064 / 730),
        ({"bootDiskType": "hyperdisk-balanced", "bootDiskSizeGb": 600}, 500 * 0.272 / 730),
    ],
)
def test_a_boot_disk_above_the_default_is_paid_for(disk: dict[str, Any], usd: float) -> None:
    with_disk = pool("n1-standard-4", replicas=3) | {"diskSpec": disk}
    cost = costs.of_job(job(with_disk, timeout="3600s"), "us-central1")
    rate = price_of("n1-standard-4").on_demand
    assert cost.worst_case == pytest.approx(3 * (rate + usd) * FEE)


def test_one_pool_without_a_price_leaves_the_job_without_one() -> None:
    gpus = pool("a4-highgpu-8g", acceleratorType="NVIDIA_B200", acceleratorCount=8)
    cost = costs.of_job(job(pool("n1-standard-4"), gpus), "us-central1")
    assert (cost.hourly, cost.worst_case) == (None, None)
    assert [each.machine_type for each in cost.unpriced] == ["a4-highgpu-8g"]


def test_a_job_whose_request_is_not_known_yet_has_no_price() -> None:
    assert costs.of_job({}, "us-central1").worst_case is None


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


def test_a_job_says_the_most_it_can_cost_and_in_how_long() -> None:
    half_an_hour = costs.of_job(job(pool("n1-standard-4"), timeout="1800s"), "us-central1")
    assert str(half_an_hour) == f"{costs.usd(half_an_hour.worst_case)} in 0.5 h"
    assert str(costs.of_job(job(pool("no-such-machine")), "us-central1")) == "no price in 168 h"
