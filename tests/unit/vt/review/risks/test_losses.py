"""Data that is lost although its resource stays: each way, and its harmless opposite."""

from __future__ import annotations

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import report
from vertex_training_cli.review.headline import verdict

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
    [loss] = plans.findings(plan, "data is lost")
    found = verdict(report.build(plan, source="here"))
    assert f"data is lost: storage-data ({loss.what}: {loss.old} → {loss.new})" in found
    more = plans.plan(plans.step("update", type_, "storage-data", less, kept))
    assert plans.findings(more, "data is lost") == []


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
    found = plans.findings(plans.plan(*told), "data is lost")
    return [loss for loss in found if "in use by the stack" in loss.what]


def test_a_clean_up_of_everything_takes_the_image_of_a_job():
    everything = {**PLACE, "cleanupPolicies": [{"action": "DELETE", "condition": {}}]}
    assert len(of_pins(repository(), everything)) == 1
    assert of_pins(repository(), {**everything, "cleanupPolicyDryRun": True}) == []
    elsewhere = PINNED.replace("training-dev", "training-other")
    assert of_pins(repository(), everything, elsewhere) == []


def refreshed(deployed, old, new):
    """A step of a preview that found another state than the deployed one in the cloud."""
    found = plans.step("refresh", plans.BUCKET, "b", deployed, old)
    return found, plans.step("update", plans.BUCKET, "b", old, new)


def soft(days):
    return {"softDeletePolicy": {"retentionDurationSeconds": days * DAY}}


def test_what_goes_back_as_deployed_is_told_apart_from_what_is_lost():
    told = verdict(report.build(plans.plan(*refreshed(soft(7), soft(30), soft(7))), source="here"))
    what = "b (deleted objects can be restored for: 30 days → 7 days)"
    assert f"manual change undone: {what}" in told
    assert "data is lost" not in told
