"""Policies on how long data is kept: deleted objects, old versions, lifecycle rules, images."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET, REPOSITORY, SECRET
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Resource,
    Unknown,
    items,
    nested,
    policy,
)

#: By the unit of a duration.
SECONDS_IN: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
DAY: Final = SECONDS_IN["d"]
LIFECYCLE: Final = "https://docs.cloud.google.com/storage/docs/lifecycle"
#: Conditions of lifecycle rules that hold for old versions only.
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")


def _deletions(resource: Resource, state: str) -> Iterator[Mapping[str, Any]]:
    """Conditions of a bucket's lifecycle rules that delete objects in a state: LIVE, ARCHIVED."""
    if resource.type != BUCKET:
        return
    for rule in items(resource.props, "lifecycleRules"):
        condition = nested(rule, "condition")
        given = nested(condition, "withState")
        if nested(rule, "action", "type") != "Delete" or isinstance(given, Unknown):
            continue
        if isinstance(condition, Mapping) and (given or "ANY") in (state, "ANY"):
            yield condition


@policy(
    "bucket-deleted-objects-restorable",
    "medium",
    why="Who deletes the wrong folder notices it days later.",
    url="https://docs.cloud.google.com/storage/docs/soft-delete",
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def deleted_objects_restorable(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """Deleted objects can be restored for some days."""
    seconds = nested(resource.props, "softDeletePolicy", "retentionDurationSeconds")
    if resource.type != BUCKET or not isinstance(seconds, int | float):
        return  # without a policy of its own, a bucket has Google's: seven days
    days, least = seconds / DAY, settings["minDays"]
    if days < least:
        hint = f"Hint: softDeleteDays: {least:g} in the stack file, or more"
        yield f"deleted objects can be restored for {days:g} days, not {least:g}. {hint}"


@policy(
    "bucket-old-versions-kept",
    "medium",
    why="An overwritten checkpoint is missed when the next training run loads it.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def old_versions_kept(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
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
    why="A lifecycle rule deletes data that a job may still read, and asks nobody.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=30,
)
def objects_not_deleted_by_age(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
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
    why="A lock is never undone: nobody can delete what is in the bucket, nor the bucket.",
    url="https://docs.cloud.google.com/storage/docs/bucket-lock",
)
def retention_not_locked(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """No retention of a bucket is locked, unless the stack file says that it is meant."""
    retention = resource.props.get("retentionPolicy")
    if resource.type != BUCKET or nested(resource.props, "retentionPolicy", "isLocked") is not True:
        return
    seconds = nested(retention, "retentionPeriod") if isinstance(retention, Mapping) else None
    days = f"{float(seconds) / DAY:g} days" if isinstance(seconds, str) and seconds else "its days"
    hint = "Hint: if it is meant, policyLevels: {bucket-retention-not-locked: advisory}"
    yield f"its retention of {days} is locked, and can never be shortened or removed. {hint}"


@policy(
    "secret-protected",
    "high",
    why="A secret that is made anew is empty: its values are nowhere else.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
)
def secret_protected(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Secrets are protected: none is deleted, or made anew and empty."""
    if resource.type == SECRET and not resource.protect:
        yield "is not protected. Hint: set protect: true on the secret in the stack file"


@policy(
    "registry-keeps-images-in-use",
    "high",
    why="A job that starts again, or a revert, pulls an image that a job file names by digest.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
    not_in=REHEARSAL_STACKS,
    minVersions=5,
    minDays=7,
)
def registry_keeps_images_in_use(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A clean-up spares images with a tag, recent ones, and the newest versions of each."""
    rules = items(resource.props, "cleanupPolicies")
    deletions = [rule for rule in rules if nested(rule, "action") == "DELETE"]
    if resource.type != REPOSITORY or not deletions:
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
