"""Tuning jobs in a review: trials, worst case, burn rate, quota, what differs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.engine.plan import TUNING_JOB
from vertex_training_cli.review import json_report, markdown
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import ReviewReport, build

RATE = costs.hourly("n1-standard-4", None, 0, "us-central1")
assert RATE is not None


def tuning(name: str = "tune", trials: int = 20, parallel: int = 4, **spec: Any) -> plans.Event:
    made = plans.job(name, **spec)
    message = json.loads(made["request"])
    message["trialJobSpec"] = message.pop("jobSpec")
    message |= {"maxTrialCount": trials, "parallelTrialCount": parallel, "studySpec": {}}
    return made | {"request": json.dumps(message)}


def reviewed(*told: plans.Event) -> ReviewReport:
    return build(plans.plan(*told), source="x")


def test_a_report_has_the_sum_over_jobs_and_tuning_jobs() -> None:
    report = reviewed(
        plans.create(TUNING_JOB, "training-tune", **tuning()),
        plans.create(plans.JOB, "training-a", **plans.job("a")),
    )
    assert report.worst_case == pytest.approx(21 * RATE.usd)
    assert "2 jobs submitted" in verdict(report).lower()
    assert f"{21 * RATE.usd:.2f}" in verdict(report)
    [plain, tuned] = json_report.document(report)["jobs"]
    assert tuned["trials"] == {"max": 20, "parallel": 4}
    assert "trials" not in plain
    assert "20 trials of 1 h" in markdown.render(report)
    assert not report.destroyed
    assert not report.changes
