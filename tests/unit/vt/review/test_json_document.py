"""The JSON of a review, whole: what a program reads of each thing that a report has."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from tests.unit.vt.review import plans
from vertex_training.catalog.costs import JobCost, PoolCost, Rate
from vertex_training.customjob.batch.offers import Offer
from vertex_training_cli.review import json_report, report
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.report import ReviewReport

RATE: Final = Rate(0.5, "skypilot-v8", "undated", "us-central1", exact=True)
PRICE: Final = {
    "usd": 0.5, "source": "skypilot-v8", "date": "undated", "region": "us-central1", "exact": True,
}  # fmt: skip
PLAIN: Final = PoolCost(0, "n1-standard-4", "", 0, 1, None)
GPUS: Final = PoolCost(1, "n1-standard-4", "NVIDIA_TESLA_T4", 2, 3, RATE)
COST: Final = JobCost((GPUS,), 7200.0, default_timeout=False)
POOL: Final = {
    "index": 1, "machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4",
    "acceleratorCount": 2, "machines": 3, "hourlyUsd": 1.5, "price": PRICE,
}  # fmt: skip


def job(**given: Any) -> JobChange:
    offers = (Offer("vertex", COST), Offer("batch", None, "it has no such machine"))
    values: dict[str, Any] = {
        "name": "a", "action": "submit", "region": "us-central1", "strategy": "STANDARD",
        "reservation": "", "account": "t@acme", "network": "", "images": ("x/y:1",),
        "cost": COST, "offers": offers, "differences": (), "previous_state": "",
    }  # fmt: skip
    return JobChange(**{**values, **given})


def with_(**given: Any) -> ReviewReport:
    """An empty report with these."""
    return dataclasses.replace(report.build(plans.plan(), source="here"), **given)


def written(**given: Any) -> dict[str, Any]:
    return json.loads(json_report.render(with_(**given)))


def test_a_machine_without_a_price_makes_the_job_one_without_a_price() -> None:
    both = JobCost((PLAIN, GPUS), 3600.0, default_timeout=False)
    found = written(jobs=(job(cost=both), job(name="b"), job(name="c", action="keep", cost=both)))
    assert found["unpricedJobs"] == ["a"]
    assert found["worstCaseUsd"] == 3.0
    assert found["jobs"][0]["worstCaseUsd"] is None
    assert found["jobs"][0]["pools"] == [
        {"index": 0, "machineType": "n1-standard-4", "acceleratorType": None,
         "acceleratorCount": 0, "machines": 1, "hourlyUsd": None, "price": None},
        POOL,
    ]  # fmt: skip
