"""Policies on buckets, Docker repositories and secrets: access, location, retention."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET, REPOSITORY, SECRET
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Found,
    Resource,
    Settings,
    Unknown,
    is_or_unknown,
    items,
    nested,
    policy,
    text,
)
from vertex_training.naming import CONTROL, STAGING, Names, is_local

#: A region's name ends in a number, like US-CENTRAL1; multi- and dual-regions do not.
REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+", re.IGNORECASE)
#: By the unit of a duration.
SECONDS_IN: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
DAY: Final = SECONDS_IN["d"]
LIFECYCLE: Final = "https://docs.cloud.google.com/storage/docs/lifecycle"
#: Conditions of lifecycle rules that hold for old versions only.
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")


def _not_regional(resource: Resource) -> Iterator[str]:
    location = text(resource.props, "location")
    if location and not REGION.fullmatch(location):
        yield f"location {location} is not one region. Hint: the region of the jobs, us-central1"


@policy(
    "bucket-uniform-access",
    "high",
    of=BUCKET,
    why="Rights given on single objects are in nobody's review.",
    url="https://docs.cloud.google.com/storage/docs/uniform-bucket-level-access",
    standards=("CIS GCP 5.2", "CKV_GCP_29"),
)
def bucket_uniform_access(resource: Resource, _settings: Settings) -> Found:
    """Buckets are governed by IAM alone: uniform bucket-level access is on."""
    if not is_or_unknown(resource.props, "uniformBucketLevelAccess", True):
        yield "uniform access is off. Hint: set uniformBucketLevelAccess to true"


@policy(
    "bucket-closed-to-public",
    "high",
    of=BUCKET,
    why="It holds against every later grant, also one made by hand.",
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    standards=("CIS GCP 5.1", "CKV_GCP_114"),
)
def bucket_closed_to_public(resource: Resource, _settings: Settings) -> Found:
    """Buckets enforce public access prevention."""
    if not is_or_unknown(resource.props, "publicAccessPrevention", "enforced"):
        got = text(resource.props, "publicAccessPrevention") or "inherited"
        yield f"public access prevention is {got}. Hint: set publicAccessPrevention to enforced"


@policy(
    "bucket-versioned",
    "medium",
    of=BUCKET,
    why="Without versions, an overwritten checkpoint or record is gone.",
    url="https://docs.cloud.google.com/storage/docs/object-versioning",
    standards=("CKV_GCP_78",),
)
def bucket_versioned(resource: Resource, _settings: Settings) -> Found:
    """Buckets keep old versions of their objects."""
    if not is_or_unknown(resource.props.get("versioning"), "enabled", True):
        yield "old versions are not kept. Hint: set versioning.enabled to true"


@policy(
    "bucket-regional",
    "medium",
    of=BUCKET,
    why="Jobs read and write faster in their own region, and traffic between regions is paid for.",
    url="https://docs.cloud.google.com/storage/docs/locations",
)
def bucket_regional(resource: Resource, _settings: Settings) -> Found:
    """Buckets are in one region."""
    yield from _not_regional(resource)


@policy(
    "data-protected",
    "high",
    of=BUCKET,
    why="One wrong line in a stack file would delete what cannot be made again.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
    unprotected=[],
)
def data_protected(resource: Resource, settings: Settings) -> Found:
    """Buckets with data are protected, and never emptied in order to be deleted."""
    name, project = resource.props.get("name"), text(resource.props, "project")
    # The program's own two buckets, by their whole names: a project may be called "x-staging-y".
    names = Names(project, "", "", resource.stack)
    own = name in (names.bucket(STAGING), names.bucket(CONTROL))
    rehearsal = own and is_local(project)  # the program makes these so that they can go
    if resource.props.get("forceDestroy") is True and not rehearsal:
        yield "may be deleted with all objects. Hint: remove forceDestroy from the stack file"
    unknown = isinstance(name, Unknown) or isinstance(resource.props.get("project"), Unknown)
    exempt = unknown or own or name in settings["unprotected"]
    if not resource.protect and not exempt:
        yield "is not protected. Hint: set protect: true on the bucket in the stack file"


@policy(
    "registry-immutable-tags",
    "medium",
    of=REPOSITORY,
    why="A tag that was moved makes an approved job run other code.",
    url="https://docs.cloud.google.com/artifact-registry/docs/container-concepts",
    not_in=REHEARSAL_STACKS,
)
def registry_immutable_tags(resource: Resource, _settings: Settings) -> Found:
    """A tag, once pushed, cannot be moved."""
    has_tags = resource.props.get("format", "DOCKER") == "DOCKER"  # packages of Python have none
    if has_tags and not is_or_unknown(resource.props.get("dockerConfig"), "immutableTags", True):
        yield "tags can be moved. Hint: set registry.immutableTags: true in the stack file"


@policy(
    "registry-cleanup",
    "low",
    of=REPOSITORY,
    why="Images of training code are gigabytes, and all of them are paid for.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
)
def registry_cleanup(resource: Resource, _settings: Settings) -> Found:
    """A repository deletes what nobody needs and keeps the newest versions."""
    if isinstance(resource.props.get("cleanupPolicies"), Unknown):
        return
    rules = items(resource.props, "cleanupPolicies")
    missing = [
        action
        for action in ("DELETE", "KEEP")
        if not any(is_or_unknown(rule, "action", action) for rule in rules)
    ]
    if missing:
        yield f"no {' and no '.join(missing)} rule cleans it up. Hint: add cleanupPolicies"
    elif resource.props.get("cleanupPolicyDryRun") is True:
        yield "its clean-up is only rehearsed. Hint: set cleanupPolicyDryRun to false"


@policy(
    "registry-regional",
    "low",
    of=REPOSITORY,
    why="A job that starts pulls its image: from its own region that is faster and free of charge.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/repo-locations",
)
def registry_regional(resource: Resource, _settings: Settings) -> Found:
    """Repositories are in one region."""
    yield from _not_regional(resource)


def _deletions(resource: Resource, state: str) -> Iterator[Mapping[str, Any]]:
    """Conditions of a bucket's lifecycle rules that delete objects in a state: LIVE, ARCHIVED."""
    for rule in items(resource.props, "lifecycleRules"):
        condition = nested(rule, "condition")
        with_state = nested(condition, "withState")
        if nested(rule, "action", "type") != "Delete" or isinstance(with_state, Unknown):
            continue
        if isinstance(condition, Mapping) and (with_state or "ANY") in (state, "ANY"):
            yield condition


@policy(
    "bucket-deleted-objects-restorable",
    "medium",
    of=BUCKET,
    why="Who deletes the wrong folder notices it days later.",
    url="https://docs.cloud.google.com/storage/docs/soft-delete",
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def deleted_objects_restorable(resource: Resource, settings: Settings) -> Found:
    """Deleted objects can be restored for some days."""
    seconds = nested(resource.props, "softDeletePolicy", "retentionDurationSeconds")
    if not isinstance(seconds, int | float):
        return  # without a policy of its own, a bucket has Google's: seven days
    days, least = seconds / DAY, settings["minDays"]
    if days < least:
        hint = f"Hint: softDeleteDays: {least:g} in the stack file, or more"
        yield f"deleted objects can be restored for {days:g} days, not {least:g}. {hint}"


@policy(
    "bucket-old-versions-kept",
    "medium",
    of=BUCKET,
    why="An overwritten checkpoint is missed when the next training run loads it.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def old_versions_kept(resource: Resource, settings: Settings) -> Found:
    """Old versions of objects are kept for some days."""
    least, versions = settings["minDays"], nested(resource.props, "versioning", "enabled")
    for condition in _deletions(resource, "ARCHIVED"):
        if versions in (None, False) and condition.get("withState") != "ARCHIVED":
            continue  # a rule about any object, in a bucket that keeps no old versions
        # Not `age`: it counts from the day on which a version was made, not overwritten.
        days = condition.get("daysSinceNoncurrentTime") or 0
        if isinstance(days, int | float) and days < least:
            hint = f"Hint: keepNoncurrentDays: {least:g} in the stack file, or more"
            yield f"old versions are deleted after {days:g} days. {hint}"


@policy(
    "bucket-objects-not-deleted-by-age",
    "high",
    of=BUCKET,
    why="A lifecycle rule deletes data that a job may still read, and asks nobody.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=30,
)
def objects_not_deleted_by_age(resource: Resource, settings: Settings) -> Found:
    """No lifecycle rule deletes objects in use before some weeks are over."""
    least = settings["minDays"]
    for condition in _deletions(resource, "LIVE"):
        days = condition.get("age") or 0
        old = any(condition.get(key) for key in NONCURRENT)
        if not old and isinstance(days, int | float) and days < least:
            hint = f"Hint: deleteAfterDays: {least:g} in the stack file, or more"
            yield f"objects are deleted after {days:g} days. {hint}"


@policy(
    "bucket-retention-not-locked",
    "high",
    of=BUCKET,
    why="A lock is never undone: nobody can delete what is in the bucket, nor the bucket.",
    url="https://docs.cloud.google.com/storage/docs/bucket-lock",
)
def retention_not_locked(resource: Resource, _settings: Settings) -> Found:
    """No retention of a bucket is locked, unless the stack file says that it is meant."""
    retention = resource.props.get("retentionPolicy")
    if nested(retention, "isLocked") is not True:
        return
    seconds = nested(retention, "retentionPeriod")
    days = f"{float(seconds) / DAY:g} days" if isinstance(seconds, str) and seconds else "its days"
    hint = "Hint: if it is meant, policyLevels: {bucket-retention-not-locked: advisory}"
    yield f"its retention of {days} is locked, and can never be shortened or removed. {hint}"


@policy(
    "secret-protected",
    "high",
    of=SECRET,
    why="A secret that is made anew is empty: its values are nowhere else.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
)
def secret_protected(resource: Resource, _settings: Settings) -> Found:
    """Secrets are protected: none is deleted, or made anew and empty."""
    if not resource.protect:
        yield "is not protected. Hint: set protect: true on the secret in the stack file"


@policy(
    "registry-keeps-images-in-use",
    "high",
    of=REPOSITORY,
    why="A job that starts again, or a revert, pulls an image that a job file names by digest.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
    not_in=REHEARSAL_STACKS,
    minVersions=5,
    minDays=7,
)
def registry_keeps_images_in_use(resource: Resource, settings: Settings) -> Found:
    """A clean-up spares images with a tag, recent ones, and the newest versions of each."""
    rules = items(resource.props, "cleanupPolicies")
    deletions = [rule for rule in rules if nested(rule, "action") == "DELETE"]
    if not deletions:
        return
    for rule in deletions:
        state, after = (nested(rule, "condition", key) for key in ("tagState", "olderThan"))
        if not isinstance(state, Unknown) and state != "UNTAGGED":
            yield "its clean-up deletes images with a tag. Hint: tagState: UNTAGGED"
        if isinstance(after, Unknown):
            continue
        hint = f"Hint: deleteUntaggedAfterDays: {settings['minDays']:g}, or more"
        if (days := _days(after or "0s")) is None:
            yield f"its clean-up deletes images after {after}, which is no duration. {hint}"
        elif days < settings["minDays"]:
            yield f"its clean-up deletes images after {days:g} days. {hint}"
    counts = [nested(rule, "mostRecentVersions", "keepCount") for rule in rules]
    kept = max((count for count in counts if isinstance(count, int | float)), default=0)
    unknown = any(isinstance(each, Unknown) for each in (*rules, *counts)) or any(
        isinstance(nested(rule, "action"), Unknown) for rule in rules
    )
    if kept < settings["minVersions"] and not unknown:
        hint = f"Hint: keepVersions: {settings['minVersions']:g}, or more"
        yield f"its clean-up keeps {kept:g} versions of an image. {hint}"


def _days(duration: object) -> float | None:
    """``604800s``, or ``7d`` as the provider's users write it; None if it is neither."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", duration if isinstance(duration, str) else "")
    return float(parts[1]) * SECONDS_IN[parts[2]] / DAY if parts else None
