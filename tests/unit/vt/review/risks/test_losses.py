"""Data that is lost although its resource stays: each way, and its harmless opposite."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import MODEL_VERSION, SCHEDULE, TUNING_JOB
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.losses import (
    DataLoss,
    RetentionLock,
    data_losses,
    retention_locks,
)

REPOSITORY = "gcp:artifactregistry/repository:Repository"
DAY = 24 * 3600
VERSIONED = {"versioning": {"enabled": True}}


def delete(**condition):
    return {"action": {"type": "Delete"}, "condition": condition}


def clean_up(keep, days, state="UNTAGGED"):
    return [
        {"action": "DELETE", "condition": {"tagState": state, "olderThan": f"{days * DAY}s"}},
        {"action": "KEEP", "mostRecentVersions": {"keepCount": keep}},
    ]


WAYS = {
    "soft delete shorter": (
        plans.BUCKET,
        {"softDeletePolicy": {"retentionDurationSeconds": 30 * DAY}},
        {"softDeletePolicy": {"retentionDurationSeconds": 7 * DAY}},
    ),
    "soft delete off": (plans.BUCKET, {}, {"softDeletePolicy": {"retentionDurationSeconds": 0}}),
    "versions off": (plans.BUCKET, {"versioning": {"enabled": True}}, {}),
    "retention lock gone": (
        plans.BUCKET,
        {"retentionPolicy": {"retentionPeriod": 9 * DAY, "isLocked": True}},
        {"retentionPolicy": {"retentionPeriod": 9 * DAY}},
    ),
    "retention gone": (plans.BUCKET, {"retentionPolicy": {"retentionPeriod": 9 * DAY}}, {}),
    "deletion by age": (plans.BUCKET, {}, {"lifecycleRules": [delete(age=30, withState="LIVE")]}),
    "old versions sooner": (
        plans.BUCKET,
        VERSIONED | {"lifecycleRules": [delete(daysSinceNoncurrentTime=30, withState="ARCHIVED")]},
        VERSIONED | {"lifecycleRules": [delete(daysSinceNoncurrentTime=7, withState="ARCHIVED")]},
    ),
    "force destroy": (plans.BUCKET, {"forceDestroy": False}, {"forceDestroy": True}),
    "fewer images": (
        REPOSITORY,
        {"cleanupPolicies": clean_up(20, 30)},
        {"cleanupPolicies": clean_up(2, 30)},
    ),
    "images sooner": (
        REPOSITORY,
        {"cleanupPolicies": clean_up(20, 30)},
        {"cleanupPolicies": clean_up(20, 1)},
    ),
    "tagged images": (
        REPOSITORY,
        {"cleanupPolicies": clean_up(20, 30)},
        {"cleanupPolicies": clean_up(20, 30, "ANY")},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_in_the_headline_and_the_opposite_is_not(way):
    type_, kept, less = WAYS[way]
    plan = plans.plan(plans.step("update", type_, "storage-data", kept, less))
    [loss] = data_losses(plan)
    found = verdict(report.build(plan, source="here"))
    assert f"data is lost: storage-data ({loss.what}: {loss.old} → {loss.new})" in found
    assert data_losses(plans.plan(plans.step("update", type_, "storage-data", less, kept))) == ()


def test_a_secret_made_anew_is_empty():
    old, new = {"replication": "a"}, {"replication": "b"}
    secret = plans.step("replace", "gcp:secretmanager/secret:Secret", "token", old, new)
    found = verdict(report.build(plans.plan(secret), source="here"))
    assert "data is lost: token (made anew, empty)" in found


def test_versions_that_are_new_lose_nothing_when_they_get_an_end():
    rule = delete(daysSinceNoncurrentTime=30, withState="ARCHIVED")
    on = {"versioning": {"enabled": True}, "lifecycleRules": [rule]}
    assert data_losses(plans.plan(plans.step("update", plans.BUCKET, "b", {}, on))) == ()


def test_a_rule_for_old_versions_deletes_no_object_in_use():
    rules = [delete(numNewerVersions=3), delete(daysSinceNoncurrentTime=1)]
    plan = plans.plan(plans.step("update", plans.BUCKET, "b", {}, {"lifecycleRules": rules}))
    assert data_losses(plan) == ()


def test_a_rehearsed_clean_up_takes_nothing_until_it_is_real():
    old = {"cleanupPolicies": clean_up(2, 1), "cleanupPolicyDryRun": True}
    new = {**old, "cleanupPolicyDryRun": False}
    found = data_losses(plans.plan(plans.step("update", REPOSITORY, "r", old, new)))
    assert [each.new for each in found] == ["1 days", "2 versions"]


def test_inputs_that_are_not_known_are_no_reason_to_fail():
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    new = {"softDeletePolicy": unknown, "lifecycleRules": unknown, "retentionPolicy": unknown}
    assert data_losses(plans.plan(plans.step("update", plans.BUCKET, "b", {}, new))) == ()


def test_a_name_that_is_markup_stays_a_name():
    hostile = plans.delete(plans.BUCKET, "](https://example.com)@all")
    text = markdown.render(report.build(plans.plan(hostile), source="here"))
    assert "data is lost: `](https://example.com)@all` (destroyed)" in text


def test_a_destroyed_bucket_is_named_in_the_headline():
    plan = plans.plan(plans.delete(plans.BUCKET, "storage-raw", name="acme-raw"))
    assert "data is lost: storage-raw" in verdict(report.build(plan, source="here"))


def test_a_bucket_that_leaves_the_stack_and_stays_in_the_cloud_is_no_loss():
    event = plans.delete(plans.BUCKET, "raw", name="acme-raw")
    event["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    found = report.build(plans.plan(event), source="here")
    assert found.destroyed == ()
    assert [(each.op, each.name) for each in found.changes] == [("forget", "raw")]
    assert "data is lost" not in verdict(found)


def test_egress_to_anywhere_and_a_public_member_are_named_in_the_headline():
    rule = {"direction": "EGRESS", "allows": [{"protocol": "tcp"}]}
    plan = plans.plan(
        plans.create(
            "gcp:compute/firewall:Firewall", "out", **rule, destinationRanges=["0.0.0.0/0"]
        ),
        plans.create(plans.MEMBER, "public", **plans.member("acme-data", who="allUsers")),
    )
    found = verdict(report.build(plan, source="here"))
    assert "machines reach any address: out" in found
    assert "opened to everybody: bucket acme-data" in found


PINNED = f"us-central1-docker.pkg.dev/acme-ml-dev/training-dev/train@sha256:{'b' * 64}"
PLACE = {"location": "us-central1", "project": "acme-ml-dev", "repositoryId": "training-dev"}


def repository(*more):
    keep = {"id": "keep-pinned", "action": "KEEP"}
    digests = [{**keep, "condition": {"versionNamePrefixes": [each]}} for each in more]
    return {**PLACE, "cleanupPolicies": [*clean_up(10, 30), *digests]}


def of_pins(old, new, image=PINNED):
    pool = {**plans.pool(), "containerSpec": {"imageUri": image}}
    job = plans.job("train", pool)
    told = [
        plans.step("same", plans.JOB, "training-train", old=job, new=job, outputs={"state": ""}),
        plans.step("update", REPOSITORY, "registry-docker", old=old, new=new),
    ]
    return [loss for loss in data_losses(plans.plan(*told)) if "which is in use" in loss.what]


def test_a_clean_up_that_no_longer_keeps_an_image_of_a_job_is_a_loss():
    digest = PINNED.partition("@")[2]
    what = "clean-up of train@sha256:bbbbbbbbbbbb, which is in use"
    lost = DataLoss("registry-docker", what, "kept", "not kept")
    assert of_pins(repository(digest), repository()) == [lost]
    assert of_pins(repository(), repository(digest)) == []
    assert of_pins(repository(digest), repository(digest, "sha256:" + "c" * 64)) == []


def test_images_of_tuning_jobs_schedules_and_models_are_in_use_as_well():
    pool = {**plans.pool(), "containerSpec": {"imageUri": PINNED}}
    spec = json.loads(plans.job("train", pool)["request"])["jobSpec"]
    users = {
        TUNING_JOB: {"request": json.dumps({"trialJobSpec": spec})},
        SCHEDULE: {"request": json.dumps({"jobSpec": spec})},
        MODEL_VERSION: {"container": json.dumps({"imageUri": PINNED})},
    }
    old, new = repository(PINNED.partition("@")[2]), repository()
    cleaned = plans.step("update", REPOSITORY, "registry-docker", old=old, new=new)
    for type_, inputs in users.items():
        user = plans.step("same", type_, "user", old=inputs, new=inputs)
        [found] = data_losses(plans.plan(user, cleaned))
        assert "train@sha256:bbbbbbbbbbbb" in found.what, type_
    gone = plans.delete(SCHEDULE, "user", **users[SCHEDULE])
    assert data_losses(plans.plan(gone, cleaned)) == ()


def test_a_clean_up_of_everything_takes_the_image_of_a_job():
    everything = {**PLACE, "cleanupPolicies": [{"action": "DELETE", "condition": {}}]}
    assert len(of_pins(repository(), everything)) == 1
    assert of_pins(repository(), {**everything, "cleanupPolicyDryRun": True}) == []
    elsewhere = PINNED.replace("training-dev", "training-other")
    assert of_pins(repository(), everything, elsewhere) == []


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("soft delete shorter", ("deleted objects can be restored for", "30 days", "7 days")),
        ("soft delete off", ("deleted objects can be restored for", "7 days", "0 days")),
        ("versions off", ("old versions of objects", "on", "off")),
        ("retention lock gone", ("lock of the retention", "on", "off")),
        ("retention gone", ("nothing can be deleted for", "9 days", "0 days")),
        ("deletion by age", ("objects are deleted after", "never deleted", "30 days")),
        ("old versions sooner", ("old versions are deleted after", "30 days", "7 days")),
        ("force destroy", ("refusal to delete a bucket with objects", "on", "off")),
        ("fewer images", ("newest versions kept of an image", "20 versions", "2 versions")),
        ("images sooner", ("images are deleted after", "30 days", "1 days")),
        ("tagged images", ("images with a tag are kept", "on", "off")),
    ],
)
def test_a_loss_says_what_kept_the_data_and_how_much_of_it_is_left(way, told):
    type_, kept, less = WAYS[way]
    plan = plans.plan(plans.step("update", type_, "storage-data", kept, less))
    assert data_losses(plan) == (DataLoss("storage-data", *told),)


@pytest.mark.parametrize("op", ["create", "delete", "replace"])
def test_what_is_destroyed_or_new_is_told_elsewhere(op):
    _, kept, less = WAYS["versions off"]
    sides = {"create": (None, less), "delete": (kept, None), "replace": (kept, less)}[op]
    assert data_losses(plans.plan(plans.step(op, plans.BUCKET, "b", *sides))) == ()


def rules(*conditions, **more):
    return {"lifecycleRules": [delete(**each) for each in conditions], **more}


@pytest.mark.parametrize(
    ("new", "told"),
    [
        # a rule without a state is of objects in use and of old versions
        (rules({"age": 9}), [("objects are deleted after", "never deleted", "9 days")]),
        (rules({"age": 9, "withState": "ANY"}, {"age": 3, "withState": "LIVE"}),
         [("objects are deleted after", "never deleted", "3 days")]),
        (rules({"age": 9, "withState": "ARCHIVED"}), []),
        (rules({"age": 9, "noncurrentTimeBefore": "2026-01-01"}), []),
        # Without an age, like with one that is not known yet, it may delete at once.
        (rules({"matchesPrefixes": ["tmp/"]}),
         [("objects are deleted after", "never deleted", "0 days")]),
        ({"lifecycleRules": [{"action": {"type": "SetStorageClass"}, "condition": {"age": 9}}]},
         []),
        (rules({"age": 9}, **VERSIONED),
         [("objects are deleted after", "never deleted", "9 days")]),
    ],
)  # fmt: skip
def test_a_lifecycle_rule_deletes_what_its_conditions_name(new, told):
    plan = plans.plan(plans.step("update", plans.BUCKET, "b", {}, new))
    assert data_losses(plan) == tuple(DataLoss("b", *each) for each in told)


@pytest.mark.parametrize(
    ("condition", "days"),
    [
        ({"daysSinceNoncurrentTime": 30, "age": 2, "withState": "ARCHIVED"}, "30 days"),
        ({"age": 5, "withState": "ARCHIVED"}, "0 days"),
        ({"daysSinceNoncurrentTime": 4}, "4 days"),
    ],
)
def test_an_old_version_is_kept_by_its_time_as_one_and_by_no_age(condition, days):
    plan = plans.plan(
        plans.step("update", plans.BUCKET, "b", VERSIONED, VERSIONED | rules(condition))
    )
    told = DataLoss("b", "old versions are deleted after", "never deleted", days)
    assert data_losses(plan) == (told,)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ([], clean_up(3, 30), ["images are deleted after never deleted → 30 days",
                               "newest versions kept of an image never deleted → 3 versions"]),
        (clean_up(9, 30), clean_up(9, 30)[:1], ["newest versions kept of an image 9 versions → 0 "
                                                "versions"]),
        (clean_up(9, 30), clean_up(9, 30, "TAGGED"), ["images with a tag are kept on → off"]),
        (clean_up(9, 30), [{"action": "DELETE"}, *clean_up(9, 30)],
         ["images are deleted after 30 days → 0 days", "images with a tag are kept on → off"]),
        (clean_up(9, 30), [*clean_up(2, 60), *clean_up(9, 30)], []),
    ],
)  # fmt: skip
def test_a_clean_up_takes_what_no_policy_keeps(old, new, told):
    sides = ({"cleanupPolicies": each} for each in (old, new))
    found = data_losses(plans.plan(plans.step("update", REPOSITORY, "r", *sides)))
    assert [f"{each.what} {each.old} → {each.new}" for each in found] == told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("2592000s", "30d", ()),
        ("30d", "720h", ()),
        ("30d", "43199m", ("30 days", "29.9993 days")),
        ("30d", "7d", ("30 days", "7 days")),
        ("1d", None, ("1 days", "0 days")),
        ("1d", "soon", ("1 days", "0 days")),
    ],
)
def test_the_age_of_an_image_is_read_in_each_unit_that_the_provider_takes(old, new, told):
    sides = (
        {"cleanupPolicies": [{"action": "DELETE", "condition": {"olderThan": each}}]}
        for each in (old, new)
    )
    found = data_losses(plans.plan(plans.step("update", REPOSITORY, "r", *sides)))
    assert found == ((DataLoss("r", "images are deleted after", *told),) if told else ())


def refreshed(deployed, old, new):
    """A step of a preview that found another state than the deployed one in the cloud."""
    found = plans.step("refresh", plans.BUCKET, "b", deployed, old)
    return found, plans.step("update", plans.BUCKET, "b", old, new)


def soft(days):
    return {"softDeletePolicy": {"retentionDurationSeconds": days * DAY}}


@pytest.mark.parametrize(
    ("deployed", "now", "new", "told"),
    [
        # by hand it was raised, and goes back to what was approved
        (7, 30, 7, ("30 days", "7 days", True)),
        (7, 30, 14, ("30 days", "14 days", True)),
        # by hand it was lowered: what was approved is what counts
        (30, 7, 14, ("30 days", "14 days", False)),
        (30, 40, 14, ("30 days", "14 days", False)),
        (7, 3, 7, None),
    ],
)
def test_beside_a_change_by_hand_what_was_deployed_is_what_was_approved(deployed, now, new, told):
    found = data_losses(plans.plan(*refreshed(soft(deployed), soft(now), soft(new))))
    what = "deleted objects can be restored for"
    assert found == ((DataLoss("b", what, *told),) if told else ())


def test_what_goes_back_as_deployed_is_told_apart_from_what_is_lost():
    told = verdict(report.build(plans.plan(*refreshed(soft(7), soft(30), soft(7))), source="here"))
    what = "b (deleted objects can be restored for: 30 days → 7 days)"
    assert f"back as deployed: {what}" in told
    assert "data is lost" not in told


def test_losses_and_locks_are_by_name():
    off, locked = WAYS["versions off"][1:], {"retentionPeriod": 2 * DAY, "isLocked": True}
    plan = plans.plan(
        *(plans.step("update", plans.BUCKET, name, *off) for name in ("z", "a")),
        *(plans.create(plans.BUCKET, name, retentionPolicy=locked) for name in ("y", "b")),
        plans.create(REPOSITORY, "no-bucket", retentionPolicy=locked),
    )
    assert [each.name for each in data_losses(plan)] == ["a", "z"]
    assert retention_locks(plan) == (RetentionLock("b", 2), RetentionLock("y", 2))
