"""What an approver reads first, word for word: the verdict and twelve answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.review import formats, report
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.jobs import same_requests
from vertex_training_cli.review.parts import code
from vertex_training_cli.review.report import ReviewReport

# n1-standard-4 in us-central1 is $0.2185 an hour with the fee of Vertex AI, n1-standard-8 $0.4370.
SERVICE = "gcp:projects/service:Service"
SMALL, LARGE = plans.pool(), plans.pool("n1-standard-8")


def review(*told: plans.Event, **more: Any) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", **more)


def told(found: ReviewReport) -> dict[str, str]:
    """The answers that are not nothing, but what the digest binds."""
    every = answers(found, code)
    return {
        question: "; ".join(phrases)
        for question, phrases in every.items()
        if phrases and question != "what the digest binds"
    }


def job(op: str, name: str, old: plans.Event | None, new: plans.Event | None, **more: Any) -> Any:
    event = plans.step(op, plans.JOB, f"training-{name}", old, new, **more)
    if old:
        event["resourcePreEvent"]["metadata"]["old"]["id"] = f"id/{name}"
    return event


JOBS = (
    job("create", "a", None, plans.job("a", SMALL)),
    job(
        "replace",
        "b",
        plans.job("b", SMALL),
        plans.job("b", LARGE, run=2, scheduling={"timeout": "3600s", "strategy": "FLEX_START"}),
    ),
    job("delete", "c", plans.job("c"), None),
    job("update", "d", plans.job("d"), plans.job("d", run=2), outputs={"requestId": "id-of-d-1"}),
    job("same", "e", plans.job("e"), plans.job("e")),
)


def test_jobs_are_told_by_what_runs_what_stops_and_what_it_can_cost() -> None:
    found = review(*JOBS)
    assert told(found) == {
        "what runs": "`a` on `1 x n1-standard-4`; "
        "`b` on `1 x n1-standard-4` → `1 x n1-standard-8`, `STANDARD` → `FLEX_START`; "
        "`d` on `1 x n1-standard-4`, after the end of the running job",
        "what it can cost": "at most $0.22 → $0.66 on Vertex, $2.28 on Batch; "
        "jobs submitted later: $0.22",
        "what stops": "`b` (current state unknown); `c` (current state unknown)",
        "what is replaced": "job `b`",
        "what policies say": "no policy pack checked the plan",
    }
    assert verdict(found) == (
        "1 job submitted, 1 job replaced, 1 job cancelled; at most $0.22 → $0.66; "
        "image n1-standard-8: example/n1-standard-4:v1 → example/n1-standard-8:v1; "
        "1 job submitted after the end of the running job (at most $0.22); nothing destroyed."
    )


def test_jobs_that_were_looked_at_are_told_with_what_they_did() -> None:
    seen = {
        "id/b": JobObservation("RUNNING", 7200, 1.5),
        "id/c": JobObservation("RUNNING", 60, None),
        "id/e": JobObservation("RUNNING", 90000, 99),
    }
    found = review(*JOBS, observed=Observations(seen, "the API is off"))
    assert told(found)["what stops"] == (
        "`b` after 2h 0m, $1.50 so far; `c` after 1m, no price so far"
    )
    assert told(found)["what was not looked at"] == "current states of jobs: `the API is off`"
    both = "2 running jobs cancelled after up to 2h 0m ($1.50 so far)"
    assert f"; {both}; 1 job submitted after " in verdict(found)
    one = review(*JOBS, observed=Observations({"id/c": seen["id/b"]}))
    assert "; 1 running job cancelled after 2h 0m ($1.50 so far); " in verdict(one)
    ended = {f"id/{name}": JobObservation("SUCCEEDED", 60, 1.0) for name in "bc"}
    done = review(*JOBS, observed=Observations(ended))
    assert "what stops" not in told(done)
    assert verdict(done).startswith(
        "1 job submitted, 1 job replaced, 1 job removed from the stack (already ended); at most "
    )


def test_first_deployment_is_not_ready_until_its_images_are_built() -> None:
    image = f"us-docker.pkg.dev/p/r/titanic@sha256:{'0' * 64}"
    steps = [
        plans.create("gcp:secretmanager/secret:Secret", "s", secretId="s"),
        plans.create(plans.MEMBER, "m", **plans.member("data", who="group:ml@example.com")),
        plans.create(plans.MEMBER, "n", **plans.member("raw", who="group:ml@example.com")),
        plans.create(plans.MEMBER, "o", **plans.member("raw")),
        plans.create(plans.JOB, "training-a", **plans.job("a", plans.pool(image=image))),
    ]
    first, *rest = formats.to_markdown(review(*steps)).splitlines()
    assert first == "## Review of stack `dev`: first deployment"
    assert rest[1:5] == [
        "**Not ready:** 1 image not built.", "",
        "1. `vt images build titanic --stack dev`", "2. `vt review --stack dev`",
    ]  # fmt: skip
    assert rest[6].startswith("**1 image not built: `titanic`; 1 job submitted; at most ")
    role = "`roles/storage.objectViewer` on bucket"
    assert [line for line in rest if line.startswith(("| Created", "| Grants"))] == [
        "| Created | 1 secret, 3 grants, 1 job |",
        f"| Grants to people | `group:ml@example.com`: {role} `data`, {role} `raw` |",
        f"| Grants to machines | `{plans.ACCOUNT}`: {role} `raw` |",
    ]


def test_offline_preview_says_first_that_it_was_compared_with_nothing() -> None:
    source = "Previewed offline against an empty state: everything looks new"
    found = report.build(plans.plan(*JOBS), source=source)
    begins = formats.to_markdown(found).splitlines()[:3]
    reason = "the preview started from an empty state, so every resource looks new"
    assert begins == ["## Review of stack `dev`", "", f"**Not compared with the cloud:** {reason}."]


def test_slots_that_are_dropped_and_folders_that_are_written_again_are_named() -> None:
    calendar = {"timeZone": "Etc/UTC", "paused": False, "missed": "latest"}
    old, new = (
        {**plans.job("nightly"), "schedule": {"cron": cron, **calendar}}
        for cron in ("*/15 * * * *", "*/20 * * * *")
    )
    schedule = plans.step("update", SCHEDULE, "training-nightly-schedule", old, new)
    number = "projects/1/locations/r/customJobs/7"
    seen = Observations(repeated={"id-of-b-2": number}, dropped={"nightly": ("20261129t181500z",)})
    found = review(*JOBS, schedule, observed=seen)
    lost = told(found)["what is lost"]
    assert lost == (
        "due start times without a submission: `nightly` `20261129t181500z`; "
        "output written into the folder of an earlier job: `b` (`7`)"
    )
    assert all(phrase in verdict(found, code) for phrase in lost.split("; "))
    assert told(found)["what runs"].endswith(
        "start times of schedule `nightly`: `Every 20th minute of every hour (Etc/UTC)`"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (False, "1 job cannot be replaced by the same request; no job submitted; "),
        (True, "The preview failed; 1 job that `up` refuses to replace; "),
    ],
)
def test_a_job_that_its_own_request_replaces_is_counted_once(error: bool, words: str) -> None:
    event = job("replace", "a", plans.job("a"), plans.job("a"), outputs={"requestId": "id-of-a-1"})
    failed = [plans.said("error", "no")] if error else []
    found = review(event, *failed)
    found = report.with_problems(found, same_requests(found.jobs))
    assert verdict(found) == f"{words}nothing destroyed."


def test_warnings_of_policies_are_counted_where_nothing_is_forbidden() -> None:
    made = plans.create(SERVICE, "n")
    warned = [plans.violation(f"p{n}", "advisory", "m") for n in range(2)]
    assert verdict(review(made, *warned, plans.summary(g="1"))) == (
        "No job submitted; nothing destroyed; 2 policy warnings."
    )
    assert verdict(review(made, plans.summary(g="1"))) == (
        "No job submitted; nothing destroyed; no policy warnings."
    )
    assert verdict(review(made)) == "No job submitted; nothing destroyed."


def test_a_preview_without_a_state_says_what_it_could_not_see() -> None:
    plan = plans.plan(plans.create(SERVICE, "n"))
    found = report.build(plan, source="Previewed offline against an empty state")
    assert told(found)["what was not looked at"] == (
        "deployed resources, because the preview started from an empty state"
    )
