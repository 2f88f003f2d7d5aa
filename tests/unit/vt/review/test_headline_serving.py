"""What the verdict and the answers say of models, endpoints and jobs that were just looked at."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.review import report
from vertex_training_cli.review.escaping import code
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.serving import EndpointChange, VersionChange


def told(found: ReviewReport) -> dict[str, str]:
    """The answers that are not nothing, but what the digest binds and policies say."""
    left = ("what the digest binds", "what policies say")
    every = [each for each in answers(found, code) if each.phrases]
    return {each.question: each.text for each in every if each.question not in left}


def review() -> ReviewReport:
    return report.build(
        plans.plan(plans.create("gcp:projects/service:Service", "n")), source="here"
    )


def version(run: int, action: str, unanswered: str = "") -> VersionChange:
    return VersionChange(
        name=f"titanic-{run}", model="titanic", job="titanic", run=str(run), action=action,
        image="", image_before="", metrics={}, unanswered=unanswered,
    )  # fmt: skip


def endpoint(name: str, action: str, before: int, after: int) -> EndpointChange:
    return EndpointChange(
        name=name, model="titanic", action=action, before={"run 3": before},
        after={"run 3": after}, machine="", cost_before=None, cost=None, reach_before="",
        reach="", account="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (["upload", "replace", "keep", "change", "delete", "leave"], "2 model versions uploaded; "),
        (["replace"], "1 model version uploaded; "),
        (["keep", "change", "delete", "leave"], ""),
    ],
)
def test_versions_that_are_uploaded_are_counted(actions: list[str], words: str) -> None:
    models = [version(run, action) for run, action in enumerate(actions)]
    found = dataclasses.replace(review(), models=tuple(models))
    assert verdict(found) == f"No job is submitted; {words}nothing destroyed."


def test_runs_of_what_is_uploaded_that_could_not_be_asked_are_told() -> None:
    actions = ["upload", "replace", "keep", "change", "delete", "leave"]
    models = [version(run, action, "it is off") for run, action in enumerate(actions)]
    found = dataclasses.replace(review(), models=(*models, version(9, "upload")))
    assert told(found) == {
        "what was not looked at": "run `0` of model `titanic`: `it is off`; "
        "run `1` of model `titanic`: `it is off`"
    }


def test_traffic_is_told_where_its_split_changes_and_the_endpoint_stays() -> None:
    every = (
        endpoint("a", "change", 100, 90), endpoint("b", "change", 100, 100),
        endpoint("c", "delete", 100, 0), endpoint("d", "create", 0, 100),
    )  # fmt: skip
    found = dataclasses.replace(review(), endpoints=every)
    assert told(found) == {
        "what runs": "traffic of `a`: `run 3: 100 → run 3: 90`; "
        "traffic of `d`: `run 3: 0 → run 3: 100`"
    }
    assert verdict(found, code) == (
        "No job is submitted; traffic of `a`: `run 3: 100 → run 3: 90`; traffic of `d`: "
        "`run 3: 0 → run 3: 100`; nothing destroyed."
    )


def test_a_job_that_was_seen_and_has_not_run_yet_is_named_alone() -> None:
    gone = plans.step("delete", plans.JOB, "training-a", plans.job("a"))
    gone["resourcePreEvent"]["metadata"]["old"]["id"] = "id/a"
    seen = Observations({"id/a": JobObservation("PENDING")})
    found = report.build(plans.plan(gone), source="here", observed=seen)
    assert told(found) == {"what stops": "`a`"}
    assert verdict(found) == "1 job cancelled; nothing destroyed."
