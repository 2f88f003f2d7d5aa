"""Tuning jobs in a review: trials, worst case, burn rate, quota, what differs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog import costs
from vertex_training_cli.engine.plan import TUNING_JOB
from vertex_training_cli.review import jobs, json_report, markdown
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.jobs import JobChange
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


def only(*told: plans.Event) -> JobChange:
    [found] = reviewed(*told).jobs
    return found


def test_a_tuning_job_costs_what_all_its_trials_cost_and_burns_what_runs_at_once() -> None:
    job = only(plans.create(TUNING_JOB, "training-tune", **tuning()))
    assert (job.name, job.action, job.account) == ("tune", "submit", plans.ACCOUNT)
    assert job.cost.hourly == pytest.approx(4 * RATE.usd)
    assert jobs.at_most(job) == (
        f"Vertex ${20 * RATE.usd:.2f} (20 trials of 1 h)",
        "not Batch: it has no tuning",
    )
    assert "20 trials, 4 at once, which takes quota for 4 of each" in job.trials
    row = markdown.render(reviewed(plans.create(TUNING_JOB, "training-tune", **tuning())))
    assert f"<br>`{job.trials}` |" in row


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


def test_another_number_of_trials_is_a_difference_of_one_field() -> None:
    step = plans.step("replace", TUNING_JOB, "training-tune", old=tuning(), new=tuning(trials=30))
    job = only(step)
    assert [(each.path, each.old, each.new) for each in job.differences] == [
        ("maxTrialCount", "20", "30")
    ]


def test_a_network_that_trials_join_is_reported_as_opened() -> None:
    opened = tuning(network="projects/1/global/networks/x")
    report = reviewed(plans.create(TUNING_JOB, "training-tune", **opened))
    assert ["to job tune" in each.what for each in report.reachability] == [True]


def test_an_image_of_the_trials_that_changes_is_told_as_that_of_any_job() -> None:
    old, new = (tuning(workerPoolSpecs=[plans.pool(image=f"a/train:{tag}")]) for tag in ("1", "2"))
    new["requestId"] = "id-of-tune-2"
    found = reviewed(plans.step("replace", TUNING_JOB, "training-tune", old, new))
    [image] = found.images
    assert (image.name, image.old, image.new, image.jobs) == (
        "train", "a/train:1", "a/train:2", ("tune",),
    )  # fmt: skip
    assert "; image train: a/train:1 → a/train:2; " in verdict(found)
