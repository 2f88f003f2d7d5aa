"""What an approver reads first, word for word: the verdict and twelve answers."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.costs import Rate
from vertex_training.errors import Problem
from vertex_training.plan.access import Access
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import JobObservation, Observations
from vertex_training_cli.review import report
from vertex_training_cli.review.capacity import ReservationChange, ReservationCost
from vertex_training_cli.review.escaping import code
from vertex_training_cli.review.headline import HeadlineAnswer, answers, totals, verdict
from vertex_training_cli.review.jobs import fate, same_requests
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

# n1-standard-4 in us-central1 is $0.2185 an hour with the fee of Vertex AI, n1-standard-8 $0.4370.
SERVICE = "gcp:projects/service:Service"
SMALL, LARGE = plans.pool(), plans.pool("n1-standard-8")


def review(*told: plans.Event, **more: Any) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", **more)


def told(found: ReviewReport) -> dict[str, str]:
    """The answers that are not nothing, but what the digest binds."""
    every = [each for each in answers(found, code) if each.phrases]
    return {each.question: each.text for each in every if each.question != "what the digest binds"}


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


def test_a_question_without_an_answer_is_asked_all_the_same() -> None:
    found = answers(review(), code)
    assert [(each.question, each.danger) for each in found] == [
        ("what runs", "plain"),
        ("what it can cost", "plain"),
        ("who gains a right", "opens"),
        ("what is lost", "destroys"),
        ("what becomes public", "destroys"),
        ("what stops", "destroys"),
        ("what is replaced", "destroys"),
        ("which limits are raised", "opens"),
        ("what policies say", "opens"),
        ("whose data becomes readable", "opens"),
        ("what was not looked at", "opens"),
        ("what the digest binds", "plain"),
    ]
    assert told(review()) == {"what policies say": "no policy pack checked this"}
    binds = "resources before and after, protection, limits, policies and levels, the outcome"
    assert found[-1].phrases == (f"`{review().digest[:12]}`: {binds}",)


def test_an_answer_has_at_most_twelve_phrases_and_counts_the_others() -> None:
    twelve = tuple(f"p{n}" for n in range(12))
    assert HeadlineAnswer("q", twelve).text == "; ".join(twelve)
    assert HeadlineAnswer("q", (*twelve, "x", "y")).text == f"{'; '.join(twelve)}; and 2 more"
    assert HeadlineAnswer("q", ()).text == ""


def test_jobs_are_told_by_what_runs_what_stops_and_what_it_can_cost() -> None:
    found = review(*JOBS)
    assert told(found) == {
        "what runs": "`a` on `1 x n1-standard-4`; "
        "`b` on `1 x n1-standard-4` → `1 x n1-standard-8`, `STANDARD` → `FLEX_START`; "
        "`d` on `1 x n1-standard-4`, when the running one has ended",
        "what it can cost": "at most $0.22 → $0.66; later: $0.22",
        "what stops": "`b` (state not known now); `c` (state not known now)",
        "what is replaced": "job `b`",
        "what policies say": "no policy pack checked this",
    }
    assert verdict(found) == (
        "1 job submitted, 1 job replaced, 1 job cancelled; at most $0.22 → $0.66; "
        "image n1-standard-8: example/n1-standard-4:v1 → example/n1-standard-8:v1; "
        "1 job submitted later, when the running one has ended (at most $0.22); nothing destroyed."
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
    assert told(found)["what was not looked at"] == "jobs as they are now: `the API is off`"
    both = "2 running jobs cancelled after up to 2h 0m ($1.50 so far)"
    assert f"; {both}; 1 job submitted later" in verdict(found)
    one = review(*JOBS, observed=Observations({"id/c": seen["id/b"]}))
    assert "; 1 running job cancelled after 2h 0m ($1.50 so far); " in verdict(one)
    ended = {f"id/{name}": JobObservation("SUCCEEDED", 60, 1.0) for name in "bc"}
    done = review(*JOBS, observed=Observations(ended))
    assert "what stops" not in told(done)
    assert verdict(done).startswith(
        "1 job submitted, 1 job replaced, 1 job that had ended leaves the stack; at most $0.22 → "
    )


def test_jobs_that_had_ended_are_counted() -> None:
    gone = [
        job("delete", name, plans.job(name), None, outputs={"state": "JOB_STATE_FAILED"})
        for name in "ab"
    ]
    assert verdict(review(*gone)) == "2 jobs that had ended leave the stack; nothing destroyed."


def test_a_job_that_nothing_cancels_is_told_as_going_on() -> None:
    gone = [job("delete", name, plans.job(name), None) for name in "abc"]
    for each in gone[:2]:
        each["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    found = review(*gone)
    assert verdict(found).startswith("1 job cancelled, 2 jobs left running without the stack; ")
    assert told(found)["what stops"] == "`c` (state not known now)"


@pytest.mark.parametrize(
    ("op", "does", "would"),
    [("delete", "remove", "leaves the stack"), ("replace", "replace", "submitted anew")],
)
def test_nothing_is_promised_of_a_job_that_up_refuses(op: str, does: str, would: str) -> None:
    inputs = plans.job("a", run=1)
    new = None if op == "delete" else plans.job("a", run=2)
    event = job(op, "a", inputs, new, protect=(True, True))
    seen = Observations({"id/a": JobObservation("RUNNING", 7200, 1.5)})
    ended = Observations({"id/a": JobObservation("SUCCEEDED", 7200, 1.5)})
    for observed in (seen, ended, Observations({})):
        found = review(event, observed=observed)
        assert verdict(found) == f"1 job that `up` refuses to {does}; nothing destroyed."
        asked = ("what runs", "what it can cost", "what stops", "what is replaced")
        assert not set(asked) & set(told(found))
        assert fate(found.jobs[0]) == f"refused, it is protected; otherwise {would}"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (False, "1 job cannot be replaced by its own request; no job is submitted; "),
        (True, "The preview failed; 1 job that `up` refuses to replace; "),
    ],
)
def test_a_job_that_its_own_request_replaces_is_counted_once(error: bool, words: str) -> None:
    event = job("replace", "a", plans.job("a"), plans.job("a"), outputs={"requestId": "id-of-a-1"})
    failed = [plans.said("error", "no")] if error else []
    found = review(event, *failed)
    found = report.with_problems(found, same_requests(found.jobs))
    assert verdict(found) == f"{words}nothing destroyed."


@pytest.mark.parametrize(
    ("jobs", "cost"),
    [
        ([("create", None, SMALL)], "at most $0.22"),
        ([("replace", SMALL, SMALL)], "at most $0.22"),
        ([("replace", SMALL, LARGE)], "at most $0.22 → $0.44"),
        ([("create", None, "none")], "no price is known"),
        ([("replace", SMALL, "none")], "no price is known, at most $0.22 before"),
        ([("replace", "none", "none")], "no price is known"),
        ([("replace", "none", SMALL)], "at most no price → $0.22"),
        (
            [("create", None, SMALL), ("create", None, "none"), ("create", None, "none")],
            "at most $0.22 and 2 jobs without a price",
        ),
        ([("replace", LARGE, SMALL), ("replace", LARGE, SMALL)], "at most $0.87 → $0.44"),
    ],
)
def test_costs_are_told_before_and_after_and_what_has_no_price_is_counted(
    jobs: list[tuple[str, Any, Any]], cost: str
) -> None:
    made = []
    for number, (op, *pools) in enumerate(jobs):
        pools = [plans.pool("x9-none", image="i") if each == "none" else each for each in pools]
        sides = [each and plans.job(f"j{number}", each, run=r) for r, each in enumerate(pools, 1)]
        made.append(job(op, f"j{number}", *sides))
    assert told(review(*made))["what it can cost"] == cost
    assert f"; {cost}; " in verdict(review(*made))


def test_a_price_that_is_not_known_is_said_of_what_is_submitted_later() -> None:
    pools = (plans.pool("x9-none"), SMALL, SMALL, SMALL)
    later = [
        job("same", f"j{n}", plans.job(f"j{n}", each), plans.job(f"j{n}", each, run=2),
            outputs={"requestId": f"id-of-j{n}-1"})
        for n, each in enumerate(pools)
    ]  # fmt: skip
    found = review(*later)
    assert told(found)["what it can cost"] == "later: no price, $0.22, $0.22"
    assert verdict(found) == (
        "No job is submitted; 4 jobs submitted later, when the running one has ended (at a price "
        "not known); nothing destroyed."
    )
    known = review(*later[1:])
    assert "3 jobs submitted later, when the running one has ended (at most $0.66);" in (
        verdict(known)
    )


def kept(name: str, machines: int, usd: float | None, **more: str) -> ReservationCost:
    rate = None if usd is None else Rate(usd, "list", "2026-01-01", "us-east4", exact=True)
    place = {"zone": "us-east4-a", "machine_type": "a3"} | more
    return ReservationCost(name=name, machines=machines, rate=rate, **place)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            [(None, kept("r", 2, 1.0))],
            "+$1,460.00 a month (`r` 0 → 2 x `a3`, $0.00 → $2.00 an hour)",
        ),
        (
            [(kept("r", 3, 1.0), kept("r", 2, 1.0))],
            "-$730.00 a month (`r` 3 → 2 x `a3`, $3.00 → $2.00 an hour)",
        ),
        (
            [(kept("r", 2, 1.0), None)],
            "-$1,460.00 a month (`r` 2 → 0 x `a3`, $2.00 → $0.00 an hour)",
        ),
        (
            [(kept("r", 1, 1.0), kept("r", 1, 1.0, zone="us-east4-b"))],
            "+$0.00 a month (`r` 1 x `a3` in `us-east4-a` → 1 x `a3` in `us-east4-b`, "
            "$1.00 → $1.00 an hour)",
        ),
        (
            [(kept("r", 1, 1.0), kept("r", 1, 2.0, machine_type="a4"))],
            "+$730.00 a month (`r` 1 x `a3` in `us-east4-a` → 1 x `a4` in `us-east4-a`, "
            "$1.00 → $2.00 an hour)",
        ),
        (
            [(None, kept("r", 0, 1.0))],
            "1 reservation without a price (`r` 0 → an unknown number x `a3`, $0.00 → no price an "
            "hour)",
        ),
        (
            [(None, kept("r", 1, 1.0)), (None, kept("s", 1, None)), (None, kept("t", 1, None))],
            "+$730.00 a month and 2 reservations without a price (`r` 0 → 1 x `a3`, $0.00 → "
            "$1.00 an hour, `s` 0 → 1 x `a3`, $0.00 → no price an hour, `t` 0 → 1 x `a3`, $0.00 → "
            "no price an hour)",
        ),
    ],
)
def test_reservations_are_told_by_the_month_and_by_the_hour(
    changes: list[tuple[Any, Any]], words: str
) -> None:
    change = plans.create(plans.BUCKET, "b", name="b")  # a plan that changes something
    made = tuple(ReservationChange(*each) for each in changes)
    found = dataclasses.replace(review(change), reservations=made)
    assert told(found)["what it can cost"] == f"reservations, used or not: {words}"
    assert f"reservations, used or not: {words}; " in verdict(found, code)


def test_rights_and_access_are_told_people_first() -> None:
    act_as = "gcp:serviceaccount/iAMMember:IAMMember"
    account = f"projects/acme-ml-dev/serviceAccounts/{plans.ACCOUNT}"
    user = {"serviceAccountId": account, "role": "roles/iam.serviceAccountUser"}
    found = review(
        plans.create(act_as, "s", **user, member="user:kim@example.com"),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
        plans.delete(plans.MEMBER, "n", **plans.member("old")),
    )
    assert told(found)["who gains a right"] == (
        f"`{plans.ACCOUNT}`: `roles/storage.objectViewer` on bucket `data`; "
        f"`user:kim@example.com`: `roles/iam.serviceAccountUser` on account `{plans.ACCOUNT}`"
    )
    assert told(found)["whose data becomes readable"] == (
        "`user:kim@example.com` reads bucket `data` as `trainer-dev`; "
        f"`{plans.ACCOUNT}` reads bucket `data`"
    )
    assert "; 2 rights gained, 1 lost; nothing destroyed" in verdict(found)
    only_lost = review(plans.delete(plans.MEMBER, "n", **plans.member("old")))
    assert verdict(only_lost) == "No job is submitted; no rights gained, 1 lost; nothing destroyed."


def test_among_people_access_is_in_the_order_of_its_words() -> None:
    given = [("user:b", "reads"), ("user:a", "writes"), ("user:a", "reads")]
    access = tuple(Access(member, verb, "bucket", "d") for member, verb in given)
    found = dataclasses.replace(review(), access_gained=access)
    assert told(found)["whose data becomes readable"] == (
        "`user:a` reads bucket `d`; `user:a` writes bucket `d`; `user:b` reads bucket `d`"
    )


def test_policies_say_what_they_found_of_which_resource() -> None:
    urn = "urn:pulumi:dev::vertex-training::x:y:Z::storage-data"
    found = review(
        plans.violation("bucket-versioned", "advisory", "m", urn),
        plans.violation("no-public-bucket", "mandatory", "m", urn),
        plans.summary(guardrails="1.0"),
    )
    assert told(found) == {
        "what policies say": "warning of `bucket-versioned` for `storage-data`; "
        "forbidden by `no-public-bucket` for `storage-data`"
    }
    assert verdict(found) == "Forbidden by 1 policy violation."


def test_who_may_submit_jobs_reaches_what_a_job_without_an_account_does() -> None:
    grant = {"project": "acme-ml-dev", "role": "roles/aiplatform.user", "member": "user:a@b.cd"}
    found = review(plans.create("gcp:projects/iAMMember:IAMMember", "vertex", **grant))
    assert told(found)["whose data becomes readable"] == "; ".join(
        f"`user:a@b.cd` writes all {data} of project `acme-ml-dev` as `Custom Code Service Agent`"
        for data in ("buckets", "datasets")
    )


def test_warnings_of_policies_are_counted_where_nothing_is_forbidden() -> None:
    made = plans.create(SERVICE, "n")
    warned = [plans.violation(f"p{n}", "advisory", "m") for n in range(2)]
    assert verdict(review(made, *warned, plans.summary(g="1"))) == (
        "No job is submitted; nothing destroyed; 2 policy warnings."
    )
    assert verdict(review(made, plans.summary(g="1"))) == (
        "No job is submitted; nothing destroyed; no policy warnings."
    )
    assert verdict(review(made)) == "No job is submitted; nothing destroyed."


IMAGE = Problem("a", "none", rule="image-missing")
PLATFORM = Problem("b", "arm", rule="image-platform")
MOVED = Problem("c", "moves", rule="job-changes-stacks")
SAME = Problem("d", "same", rule="job-same-request")
UNSEEN = "what comes after the point where the preview failed"


@pytest.mark.parametrize(
    ("problems", "words", "unseen"),
    [
        ((IMAGE,), "1 image cannot be run", None),
        ((IMAGE, PLATFORM), "2 images cannot be run", None),
        ((MOVED,), "1 running job would change stacks", None),
        ((SAME,), "1 job cannot be replaced by its own request", None),
        ((IMAGE, MOVED, MOVED), "1 image cannot be run, 2 running jobs would change stacks", None),
        ((IMAGE, Problem("d", "x", rule="other")), "the preview failed", UNSEEN),
        (
            (Problem("d", "x", rule="limit-job-cost"),),
            "forbidden by the environment's limits",
            UNSEEN,
        ),
    ],
)
def test_what_stands_beside_the_plan_is_no_preview_that_failed(
    problems: tuple[Problem, ...], words: str, unseen: str | None
) -> None:
    found = review(plans.create(SERVICE, "n"), problems=problems)
    assert verdict(found) == (
        f"{words[0].upper()}{words[1:]}; no job is submitted; nothing destroyed."
    )
    assert told(found).get("what was not looked at") == unseen
    alone = review(problems=problems)
    assert verdict(alone) == f"{words[0].upper()}{words[1:]}."


def test_a_preview_that_failed_is_not_what_an_image_alone_is_blamed_for() -> None:
    found = dataclasses.replace(review(plans.said("error", "no")), problems=(IMAGE,))
    assert verdict(found) == "The preview failed."


def test_a_forbidden_preview_that_failed_as_well_says_that_it_did_not_see_the_rest() -> None:
    forbidden = plans.violation("p", "mandatory", "m")
    assert "what was not looked at" not in told(review(forbidden))
    failed = review(forbidden, plans.said("error", "no"))
    assert failed.outcome is ReviewOutcome.FORBIDDEN
    assert told(failed)["what was not looked at"] == UNSEEN


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ReviewOutcome.FAILED, "The preview failed."),
        (ReviewOutcome.FORBIDDEN, "Refused: what is protected would be made anew, empty."),
        (ReviewOutcome.OVER_LIMIT, "Forbidden by the environment's limits."),
        (ReviewOutcome.DIFFERENT, "This is not the plan that was approved."),
        (ReviewOutcome.CLEAN, "Nothing changes."),
    ],
)
def test_an_outcome_is_said_where_nothing_else_is(outcome: ReviewOutcome, words: str) -> None:
    assert verdict(dataclasses.replace(review(), outcome=outcome)) == words


def test_a_preview_without_a_state_says_what_it_could_not_see() -> None:
    plan = plans.plan(plans.create(SERVICE, "n"))
    found = report.build(plan, source="Previewed offline against an empty state")
    assert told(found)["what was not looked at"] == (
        "what is deployed: the preview began with an empty state"
    )


def test_what_is_replaced_names_jobs_and_resources_and_a_budget_says_what_it_does_not() -> None:
    budget = {
        "displayName": "dev",
        "amount": {"specifiedAmount": {"units": "5", "currencyCode": "USD"}},
        "thresholdRules": [{"thresholdPercent": 1}],
    }
    found = review(
        plans.step("replace", plans.BUCKET, "storage-b", {"name": "a"}, {"name": "b"}),
        plans.delete(plans.BUCKET, "storage-c", name="c"),
        plans.create("gcp:billing/budget:Budget", "new", **budget),
        plans.delete("gcp:billing/budget:Budget", "old", **budget),
        JOBS[1],
    )
    assert told(found)["what is replaced"] == "job `b`; `storage-b`"
    assert told(found)["what it can cost"] == (
        "at most $0.22 → $0.44; `dev`: mail at `5 USD a month, at 100%`; it stops nothing"
    )


def test_one_headline_has_three_names_and_the_worst_comes_first() -> None:
    # Protection that goes destroys data some day; a raised limit opens something.
    bare = [
        plans.step(
            "same", plans.BUCKET, f"b{n}", {"name": "b"}, {"name": "b"}, protect=(True, False)
        )
        for n in range(5)
    ]
    stack = plans.step(
        "same",
        "pulumi:pulumi:Stack",
        "s",
        {},
        {},
        outputs={"limits": {"limits": {"regions": ["a"]}}},
    )
    config = {"vertex-training:limits": json.dumps({})}
    plan = events.parse(plans.lines(stack, *bare, config=config), "dev")
    assert verdict(report.build(plan, source="here")) == (
        "No job is submitted; nothing destroyed; protection removed: b0, b1, b2 and 2 more; "
        "limits raised: limits.regions a → no limit."
    )


def test_everything_else_is_counted_by_what_happens() -> None:
    assert totals(review()) == "none"
    objects = "gcp:storage/bucketObject:BucketObject"

    def kept_object(op: str, name: str) -> plans.Event:
        sides = {"create": (None, {"n": 1}), "delete": ({"n": 1}, None)}
        return plans.step(op, objects, f"storage-{name}", *sides.get(op, ({"n": 1}, {"n": 2})))

    found = review(
        plans.create("x:y:Z", "a"),
        plans.step("update", "x:y:Z", "b", {"n": 1}, {"n": 2}),
        plans.step("import-replacement", "x:y:Z", "e", {"n": 1}, {"n": 2}),
        plans.step("import", "x:y:Z", "c", None, {"n": 1}),
        plans.delete("gcp:projects/service:Service", "api", disableOnDestroy=False),
        *(kept_object(op, f"d/f/{n}") for n, op in enumerate(["create", "update", "delete"])),
        *(kept_object("create", f"d/g/{n}") for n in range(2)),
    )
    assert totals(found) == (
        "4 created, 1 updated, 1 replaced, 1 deleted, 1 left as it is in the cloud, 1 import, "
        "1 import-replacement"
    )
