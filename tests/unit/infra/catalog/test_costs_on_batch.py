"""What a job costs on Batch and on Vertex AI, by hand.

Prices are those of the catalogue's sources on their dates; the bill is that of an a3-highgpu-8g in
us-central1 of 2025: STANDARD 101.01 USD an hour, the fee of flex-start 0.15 x the price on demand.
"""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.catalog import costs

H100 = {"acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 8}


def job(machine: str, machines: int = 1, **scheduling: Any) -> dict[str, Any]:
    accelerators = H100 if machine.startswith("a3") else {}
    spec = {"machineType": machine, **accelerators}
    pool = {"machineSpec": spec, "replicaCount": machines}
    return {
        "jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"timeout": "3600s", **scheduling}}
    }


@pytest.mark.parametrize(
    ("message", "vertex", "batch"),
    [
        # 0.189999 an hour; with the fee inside 0.21849885, which is Vertex AI's own list price.
        (job("n1-standard-4", disableRetries=True), 0.21849885, 0.189999),
        # 88.49 an hour on demand: 1.15 x 88.49, within 1 % of the 101.01 of the bill.
        (job("a3-highgpu-8g", disableRetries=True), 101.7635, 88.49),
        # Spot at 50.609541: the fee is 15 % of 88.49 beside it, not of the discounted price.
        (
            job("a3-highgpu-8g", strategy="SPOT", disableRetries=True),
            50.609541 + 13.2735,
            50.609541,
        ),
    ],
)
def test_both_services_cost_what_a_calculation_by_hand_says(
    message: dict[str, Any], vertex: float, batch: float
) -> None:
    on = {name: costs.of_job(message, "us-central1", name) for name in ("vertex", "batch")}
    assert on["vertex"].worst_case == pytest.approx(vertex, rel=1e-6)
    assert on["batch"].worst_case == pytest.approx(batch, rel=1e-6)


def test_the_bill_of_an_h100_machine_is_within_one_percent() -> None:
    found = costs.of_job(job("a3-highgpu-8g"), "us-central1").worst_case
    assert found == pytest.approx(101.01, rel=0.01)


def test_on_batch_every_attempt_has_the_whole_timeout() -> None:
    spot = costs.of_job(job("n1-standard-4", 3, strategy="SPOT"), "us-central1", "batch")
    assert spot.attempts == 7
    assert spot.worst_case == pytest.approx(7 * 3 * 0.06701)
    assert str(spot) == "$1.41 in 7 attempts of 1 h"
    once = costs.of_job(job("n1-standard-4", disableRetries=True), "us-central1", "batch")
    assert once.attempts == 1
