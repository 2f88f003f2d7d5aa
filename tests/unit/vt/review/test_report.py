"""The verdict, the outcome, what is destroyed, and the digest."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import Problem
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import destroyed, digest, report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

LIMIT = Problem("jobs/a.yaml:1:1", "too dear", rule="limit-job-cost")
MISTAKE = Problem("jobs/a.yaml:2:1", "wrong", rule="unknown-field")

#: Nothing changes but its protection.
UNPROTECTED = plans.step(
    "same", plans.BUCKET, "kept", {"name": "k"}, {"name": "k"}, protect=(True, False)
)


def review(
    *told: plans.Event, expected: str = "", problems: tuple[Problem, ...] = ()
) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", expected=expected, problems=problems)


def submit(name: str, *pools: plans.Event) -> plans.Event:
    return plans.create(plans.JOB, f"training-{name}", **plans.job(name, *pools))


def test_a_plan_without_changes_says_so() -> None:
    same = plans.step("same", plans.BUCKET, "b", old={"name": "b"}, new={"name": "b"})
    assert verdict(review(same)) == "Nothing changes."
    assert review(same).unchanged == 1


def test_the_verdict_says_what_happens_to_jobs_and_what_it_can_cost() -> None:
    old = plans.job("b")
    found = review(
        submit("a"),
        plans.step("replace", plans.JOB, "training-b", old=old, new=plans.job("b", run=2)),
        plans.delete(plans.JOB, "training-c", **plans.job("c")),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
        plans.delete(plans.BUCKET, "storage-old", name="old"),
    )
    assert verdict(found) == (
        "1 job submitted, 1 job replaced, 1 job cancelled; at most $0.22 → $0.44; "
        "1 right gained, 0 lost; 1 resource destroyed; data is lost: storage-old (destroyed)."
    )


def test_jobs_without_a_price_are_counted_not_free() -> None:
    b200 = plans.pool("a4-highgpu-8g", acceleratorType="NVIDIA_B200", acceleratorCount=8)
    assert "no price is known" in verdict(review(submit("a", b200)))
    both = review(submit("a", b200), submit("b"))
    assert "at most $0.22 and 1 job without a price" in verdict(both)
    assert [job.name for job in both.unpriced] == ["a"]


@pytest.mark.parametrize(
    ("told", "problems", "expected", "outcome"),
    [
        ((), (), "", ReviewOutcome.CLEAN),
        ((plans.violation("p", "advisory", "m"),), (), "", ReviewOutcome.CLEAN),
        ((plans.violation("p", "mandatory", "m"),), (), "", ReviewOutcome.FORBIDDEN),
        ((plans.said("error", "no"),), (), "", ReviewOutcome.FAILED),
        ((plans.said("error", "no"),), (MISTAKE,), "", ReviewOutcome.FAILED),
        ((plans.said("error", "no"),), (LIMIT,), "", ReviewOutcome.OVER_LIMIT),
        ((plans.said("error", "no"),), (LIMIT, MISTAKE), "", ReviewOutcome.FAILED),
        ((), (), "0" * 64, ReviewOutcome.DIFFERENT),
        ((), (), digest.plan_digest(plans.plan())[:12], ReviewOutcome.CLEAN),
    ],
)
def test_the_outcome_is_the_exit_code(
    told: tuple[plans.Event, ...],
    problems: tuple[Problem, ...],
    expected: str,
    outcome: ReviewOutcome,
) -> None:
    assert review(*told, expected=expected, problems=problems).outcome is outcome


def test_a_refused_read_is_told_from_a_missing_object() -> None:
    """As ``--refresh`` meets both: Google answers 403 whether the object is there or not."""
    forbidden = "googleapi: Error 403: Permission 'storage.objects.get' denied, forbidden"
    missing = "googleapi: Error 404: No such object: data/a.npz, notFound"
    made = review(plans.said("error", forbidden), plans.said("error", missing))
    first, second = (error.message.splitlines() for error in made.errors)
    assert (first[0], second[0]) == (forbidden, missing)
    assert first[1].startswith("may not look: storage.objects.get is missing")
    assert second[1].startswith("not there: data/a.npz")


def test_what_is_destroyed_is_told_with_what_it_takes_along() -> None:
    found = review(
        plans.delete(plans.BUCKET, "storage-old", name="old"),
        plans.delete("gcp:compute/network:Network", "net", name="net"),
        plans.step("replace", plans.BUCKET, "storage-b", old={"name": "b"}, new={"name": "c"}),
        plans.delete(plans.MEMBER, "m", **plans.member("data")),
        plans.delete(plans.JOB, "training-a", **plans.job("a")),
    )
    assert [(each.name, each.replaced, each.takes) for each in found.destroyed] == [
        ("storage-b", True, "its objects"),
        ("storage-old", False, "its objects"),
        ("net", False, ""),
    ]


def test_new_content_of_a_file_destroys_nothing() -> None:
    object_ = "gcp:storage/bucketObject:BucketObject"
    found = review(plans.step("replace", object_, "o", old={"name": "a"}, new={"name": "b"}))
    assert found.destroyed == ()
    assert [change.name for change in found.changes] == ["o"]


def test_protection_that_is_given_up_is_told_also_where_nothing_else_changes() -> None:
    inputs = {"name": "data"}
    lost = plans.step("same", plans.BUCKET, "b", inputs, inputs, protect=(True, False))
    kept = plans.step("same", plans.BUCKET, "c", inputs, inputs, protect=(True, True))
    found = review(lost, kept)
    assert (found.risks[destroyed.UNPROTECTED], found.protected) == (("b",), ("c",))
    assert not found.nothing


def test_nothing_is_told_twice() -> None:
    found = review(
        submit("a"),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
        plans.create("gcp:compute/network:Network", "net", name="net"),
        plans.create(plans.BUCKET, "b", name="b"),
    )
    assert [change.name for change in found.changes] == ["b"]


def test_drift_is_told_by_the_properties_the_provider_names() -> None:
    same = {"name": "b"}
    diff = {"versioning.enabled": {"diffKind": "update", "inputDiff": False}}
    found = review(plans.step("update", plans.BUCKET, "b", old=same, new=same, detailedDiff=diff))
    assert found.changes[0].paths == ("versioning.enabled",)


def test_components_and_providers_are_no_resources() -> None:
    found = review(
        plans.create("pulumi:pulumi:Stack", "vertex-training-dev"),
        plans.create("pulumi:providers:gcp", "default"),
        plans.create("vertextraining:storage:Storage", "storage"),
    )
    assert found.changes == ()
    assert verdict(found) == "Nothing changes."


def test_equal_plans_have_one_digest_in_whatever_order_they_are_told() -> None:
    steps = [submit("a"), submit("b"), plans.create(plans.BUCKET, "x", name="x")]
    one, other = plans.plan(*steps), plans.plan(plans.said("warning", "w"), *reversed(steps))
    assert digest.plan_digest(one) == digest.plan_digest(other)


@pytest.mark.parametrize(
    "other",
    [
        (),
        (plans.create(plans.BUCKET, "x", name="y"),),
        (plans.step("update", plans.BUCKET, "x", old={"name": "x"}, new={"name": "x"}),),
        (plans.step("create", plans.BUCKET, "x", new={"name": "x"}, protect=(False, True)),),
        (plans.create(plans.BUCKET, "x", name="x"), submit("a")),
        (plans.create(plans.BUCKET, "x", name="x"), UNPROTECTED),
        (plans.create(plans.BUCKET, "x", name="x"), plans.violation("p", "advisory", "m")),
        (plans.create(plans.BUCKET, "x", name="x"), plans.summary(guardrails="1.0")),
        (plans.create(plans.BUCKET, "x", name="x"), plans.summary("failed")),
    ],
)
def test_another_plan_has_another_digest(other: tuple[plans.Event, ...]) -> None:
    one = plans.plan(plans.create(plans.BUCKET, "x", name="x"))
    assert digest.plan_digest(one) != digest.plan_digest(plans.plan(*other))


def test_a_lower_level_of_a_policy_is_another_digest() -> None:
    levels = ("advisory", "mandatory")
    one, other = (plans.plan(plans.violation("p", level, "m")) for level in levels)
    assert digest.plan_digest(one) != digest.plan_digest(other)


def test_the_digest_knows_neither_the_time_nor_the_machine() -> None:
    def told(folder: str) -> plans.Event:
        asset = {"4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17"}
        source = asset | {"hash": "ab" * 32, "path": f"{folder}/package.tar.gz"}
        return plans.create("gcp:storage/bucketObject:BucketObject", "package", source=source)

    def plan(day: str, folder: str) -> Plan:
        return plans.plan(
            plans.said("info", f"reservation h100: from {day} until 2027-01-01"),
            told(folder),
            plans.summary(**{f"guardrails|local|{folder}/policy": "1.0"}),
        )

    one, other = plan("2026-11-21", "/one/place"), plan("2026-12-24", "/another/place")
    assert digest.plan_digest(one) == digest.plan_digest(other)
    assert list(one.packs) == ["guardrails"]
    assert "/one/place" not in repr(one)


@pytest.mark.parametrize(
    ("type_", "lost"),
    [
        ("gcp:artifactregistry/repository:Repository", "its images"),
        ("gcp:secretmanager/secret:Secret", "all versions of the secret"),
        ("gcp:kms/cryptoKey:CryptoKey", "access to everything encrypted with it"),
        ("gcp:vertex/aiTensorboard:AiTensorboard", "its experiments"),
        ("gcp:storage/bucketObject:BucketObject", "the object"),
        ("gcp:compute/subnetwork:Subnetwork", ""),
    ],
)
def test_a_deletion_is_reported_with_the_data_that_is_lost(type_: str, lost: str) -> None:
    [change] = review(plans.delete(type_, "x", name="x")).destroyed
    assert (change.type, change.takes) == (type_, lost)
