"""What a job costs, figure by figure and word by word, against prices that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.catalog import costs
from vertex_training.catalog.costs import EndpointCost, JobCost, PoolCost, Rate

HERE = Rate(1.5, "list", "2026-01-01", "us-central1", exact=True)
THERE = Rate(2.0, "list", "2026-01-01", "us-east4", exact=False)


def pool(rate: Rate | None = HERE, machines: int = 2, disk: float = 0.25) -> PoolCost:
    return PoolCost(0, "m", "", 0, machines, rate, disk)


@pytest.mark.parametrize(
    ("amount", "words"),
    [(None, "no price"), (0, "$0.00"), (0.005001, "$0.01"), (1234567.891, "$1,234,567.89")],
)
def test_an_amount_has_two_digits_and_none_is_no_price(amount: float | None, words: str) -> None:
    assert costs.usd(amount) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1800, "0.5 h"),
        (3600, "1 h"),
        (5000, "1.39 h"),
        (604_800, "168 h"),
        (999.4 * 3600, "999 h"),
        (1000 * 3600, "1,000 h"),
        (12_345.6 * 3600, "12,346 h"),
    ],
)
def test_a_duration_has_three_digits_below_a_thousand_hours(seconds: float, words: str) -> None:
    assert costs.hours(seconds) == words


def test_what_is_only_concluded_is_said_once() -> None:
    spot = costs.thin_sources(["SPOT"])
    assert spot == costs.thin_sources(["LOW_COST", "STANDARD", "SPOT", "ON_DEMAND"])
    assert spot == [
        "That Vertex's fee beside Spot machines is of the price on demand is concluded from a bill "
        "of flex start."
    ]
    assert costs.thin_sources(["FLEX_START", "SPOT"]) == [
        "No source has prices of flex start: it counts as on demand, which is more.",
        *spot,
    ]
    assert costs.thin_sources(["STANDARD"]) == []


@pytest.mark.parametrize(
    ("cost", "hourly", "worst", "words"),
    [
        (JobCost((pool(),), 7200, False), 3.5, 7.0, "$7.00 in 2 h"),
        (JobCost((pool(), pool(machines=1)), 7200, False), 5.25, 10.5, "$10.50 in 2 h"),
        (JobCost((pool(),), 7200, False, 4, 2), 7.0, 28.0, "$28.00 in 4 trials of 2 h"),
        (JobCost((pool(),), 7200, False, 0), 3.5, 0.0, "$0.00 in 0 trials of 2 h"),
        (JobCost((pool(),), 7200, False, None, 1, 7), 3.5, 49.0, "$49.00 in 7 attempts of 2 h"),
        (
            JobCost((pool(),), 3600, False, 2, 2, 4),
            *(7.0, 28.0, "$28.00 in 2 trials of 4 attempts of 1 h"),
        ),
        (JobCost((), 3600, False), None, None, "no price in 1 h"),
        (JobCost((pool(), pool(None)), 3600, False), None, None, "no price in 1 h"),
        (
            JobCost((pool(THERE), pool(), pool(THERE)), 3600, False),
            *(12.5, 12.5),
            "$12.50 in 1 h, at prices of us-east4: those of the job's region are unknown",
        ),
        (
            JobCost((pool(THERE), pool(Rate(1, "", "", "us-west1", exact=False))), 3600, False),
            *(7.0, 7.0),
            "$7.00 in 1 h, at prices of us-east4 and us-west1: those of the job's region are "
            "unknown",
        ),
    ],
)
def test_the_worst_case_is_of_all_trials_and_attempts(
    cost: JobCost, hourly: float | None, worst: float | None, words: str
) -> None:
    assert (cost.hourly, cost.worst_case, str(cost)) == (hourly, worst, words)


def test_pools_without_a_price_are_named() -> None:
    without = pool(None)
    assert (without.hourly, pool().hourly) == (None, 3.5)
    assert JobCost((pool(), without), 1, False).unpriced == (without,)


@pytest.mark.parametrize(
    ("cost", "monthly", "most", "at_most", "words"),
    [
        (EndpointCost(2, (1, 3), HERE), (2190.0, 6570.0), 6570.0, "$6,570.00 a month",
         "$2,190.00 to $6,570.00 a month"),
        (EndpointCost(1, (2, 2), HERE), (2190.0, 2190.0), 2190.0, "$2,190.00 a month",
         "$2,190.00 a month"),
        (EndpointCost(1, (1, 2), THERE), (1460.0, 2920.0), 2920.0,
         "$2,920.00 a month, at prices of us-east4",
         "$1,460.00 to $2,920.00 a month, at prices of us-east4"),
        (EndpointCost(1, (1, 2), None), None, None, "no price", "no price"),
    ],
)  # fmt: skip
def test_a_month_has_730_hours_of_all_versions(
    cost: EndpointCost, monthly: Any, most: float | None, at_most: str, words: str
) -> None:
    assert (cost.monthly, cost.most, cost.at_most, str(cost)) == (monthly, most, at_most, words)


@pytest.mark.parametrize(
    ("scheduling", "retries"),
    [
        ({}, 3),
        ({"strategy": "STANDARD"}, 3),
        ({"strategy": "FLEX_START"}, 3),
        ({"strategy": "SPOT"}, 6),
        ({"strategy": "LOW_COST"}, 6),
        ({"strategy": "SPOT", "disableRetries": True}, 0),
        ({"strategy": "SPOT", "disableRetries": False}, 6),
    ],
)
def test_a_job_on_batch_pays_for_each_attempt(scheduling: dict[str, Any], retries: int) -> None:
    assert costs.batch_retries(scheduling) == retries
    message = {"jobSpec": {"scheduling": scheduling}}
    assert costs.of_job(message, "us-central1", "batch").attempts == 1 + retries
    assert costs.of_job(message, "us-central1").attempts == 1


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        (None, 0), ("", 0), ("0s", 0), ("0.999999999s", 0), ("1s", 1), ("1.0s", 1),
        ("1.000000001s", 2), ("3600s", 3600), ("3600", 0), ("1h", 0), ("-5s", 0), ("1e3s", 0),
        ("9" * 20 + "s", 1e15),
    ],
)  # fmt: skip
def test_a_timeout_is_whole_seconds_or_none(timeout: str | None, seconds: float) -> None:
    assert costs.whole_seconds({"timeout": timeout}) == seconds
    cost = costs.of_job({"jobSpec": {"scheduling": {"timeout": timeout}}}, "us-central1")
    assert (cost.timeout, cost.default_timeout) == (seconds or 604_800.0, not seconds)


SPEC = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}}]}


@pytest.mark.parametrize(
    ("counts", "trials", "parallel"),
    [
        ({"maxTrialCount": 4, "parallelTrialCount": 3}, 4, 3),
        ({"maxTrialCount": 2, "parallelTrialCount": 3}, 2, 2),
        ({"maxTrialCount": 4}, 4, 1),
        ({}, 0, 0),
    ],
)
def test_a_tuning_job_pays_for_all_its_trials(
    counts: dict[str, int], trials: int, parallel: int
) -> None:
    cost = costs.of_job({"trialJobSpec": SPEC, **counts}, "us-central1")
    assert (cost.trials, cost.parallel, len(cost.pools)) == (trials, parallel, 1)
    of_job = costs.of_job({"jobSpec": SPEC, **counts}, "us-central1")
    assert (of_job.trials, of_job.parallel, len(of_job.pools)) == (None, 1, 1)


def test_a_pool_is_read_field_by_field() -> None:
    machine = {
        "machineType": "n1-standard-8",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 2,
    }
    spec = {"workerPoolSpecs": [{}, {"machineSpec": machine, "replicaCount": 3}, {"diskSpec": {}}]}
    [found, bare] = costs.of_job({"jobSpec": spec}, "us-central1").pools
    rate = costs.hourly("n1-standard-8", "NVIDIA_TESLA_T4", 2, "us-central1")
    assert rate is not None
    assert found == PoolCost(1, "n1-standard-8", "NVIDIA_TESLA_T4", 2, 3, rate, 0.0)
    assert bare == PoolCost(2, "", "", 0, 1, None, 0.0)
    named = {**machine, "acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED", "acceleratorCount": 0}
    plain = {"workerPoolSpecs": [{"machineSpec": named}]}
    [found] = costs.of_job({"jobSpec": plain}, "us-central1").pools
    rate = costs.hourly("n1-standard-8", None, 0, "us-central1")
    assert found == PoolCost(0, "n1-standard-8", "", 0, 1, rate, 0.0)


def test_batch_takes_no_fee_on_machines_and_disks() -> None:
    disk = {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 600}
    spec = {"workerPoolSpecs": [{**SPEC["workerPoolSpecs"][0], "diskSpec": disk}]}
    [vertex] = costs.of_job({"jobSpec": spec}, "us-central1").pools
    [batch] = costs.of_job({"jobSpec": spec}, "us-central1", "batch").pools
    assert batch.disk == pytest.approx(500 * 0.272 / 730)
    assert vertex.disk == pytest.approx(1.15 * batch.disk)
    assert vertex.rate is not None
    assert batch.rate is not None
    assert (batch.rate.usd, vertex.rate.usd) == (0.189999, pytest.approx(1.15 * 0.189999))


@pytest.mark.parametrize(
    ("machine", "topology", "hosts"),
    [
        ("ct5lp-hightpu-4t", "2x2", 1),
        ("ct5lp-hightpu-4t", "2x4", 2),
        ("ct5lp-hightpu-4t", "16x16", 64),
        ("ct5lp-hightpu-4t", "9x9", 1),
        ("ct5lp-hightpu-4t", "", 1),
        ("ct5lp-hightpu-8t", "2x4", 1),
        ("tpu7x-standard-4t", "2x2x4", 4),
        ("n1-standard-4", "4x4", 1),
    ],
)
def test_a_slice_of_tpus_has_a_machine_for_each_of_its_chips_together(
    machine: str, topology: str, hosts: int
) -> None:
    spec = {"machineSpec": {"machineType": machine, "tpuTopology": topology}, "replicaCount": 2}
    [found] = costs.of_job({"jobSpec": {"workerPoolSpecs": [spec]}}, "us-central1").pools
    assert found.machines == 2 * hosts


def test_the_dearest_rung_counts_and_one_without_a_price_is_none() -> None:
    def message(machine: str) -> dict[str, Any]:
        return {"jobSpec": {"workerPoolSpecs": [{"machineSpec": {"machineType": machine}}]}}

    cheap, dear, unknown = (message(m) for m in ("n1-standard-4", "n1-standard-8", "x"))
    found = costs.of_dearest([cheap, dear, unknown], "us-central1")
    assert found == costs.of_job(dear, "us-central1")
    short = {"jobSpec": {**cheap["jobSpec"], "scheduling": {"timeout": "1s"}}}
    assert costs.of_dearest([unknown, short], "us-central1") == costs.of_job(short, "us-central1")
    assert costs.of_dearest([cheap], "us-central1", "batch") == costs.of_job(
        cheap, "us-central1", "batch"
    )
