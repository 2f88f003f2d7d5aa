"""What a job costs, figure by figure and word by word, against prices that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.catalog import costs
from vertex_training.catalog.costs import PoolCost


def test_a_concluded_price_is_reported_once() -> None:
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
