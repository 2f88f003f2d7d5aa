"""Data that is lost although its resource stays: each way, and its harmless opposite."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.losses import data_losses

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
    return [loss for loss in data_losses(plans.plan(*told)) if "which a job runs" in loss.what]


def test_a_clean_up_that_no_longer_keeps_an_image_of_a_job_is_a_loss():
    digest = PINNED.partition("@")[2]
    [found] = of_pins(repository(digest), repository())
    assert found.what == "clean-up of train@sha256:bbbbbbbbbbbb, which a job runs"
    assert of_pins(repository(), repository(digest)) == []
    assert of_pins(repository(digest), repository(digest, "sha256:" + "c" * 64)) == []


def test_a_clean_up_of_everything_takes_the_image_of_a_job():
    everything = {**PLACE, "cleanupPolicies": [{"action": "DELETE", "condition": {}}]}
    assert len(of_pins(repository(), everything)) == 1
    assert of_pins(repository(), {**everything, "cleanupPolicyDryRun": True}) == []
    elsewhere = PINNED.replace("training-dev", "training-other")
    assert of_pins(repository(), everything, elsewhere) == []
