"""Policies for buckets, Docker repositories and secrets: access, location, retention."""

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

#: Form of a region's name. Names of multi-regions and dual-regions do not end in a number.
REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+", re.IGNORECASE)
#: Number of seconds in each unit of a duration.
SECONDS_IN: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600}
DAY: Final = SECONDS_IN["d"]
LIFECYCLE: Final = "https://docs.cloud.google.com/storage/docs/lifecycle"
#: Conditions of lifecycle rules that apply only to old versions of objects.
NONCURRENT: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")


def _not_regional(resource: Resource) -> Iterator[str]:
    location = text(resource.props, "location")
    if location and not REGION.fullmatch(location):
        yield f"location {location} is not a region. Hint: use the region of the jobs"


@policy(
    "bucket-uniform-access",
    "high",
    of=BUCKET,
    why="A review does not show the grants on single objects.",
    url="https://docs.cloud.google.com/storage/docs/uniform-bucket-level-access",
    standards=("CIS GCP 5.2", "CKV_GCP_29"),
)
def bucket_uniform_access(resource: Resource, _settings: Settings) -> Found:
    """Buckets must have uniform bucket-level access, so that only IAM grants access."""
    if not is_or_unknown(resource.props, "uniformBucketLevelAccess", True):
        yield "uniform access is off. Hint: set uniformBucketLevelAccess to true"


@policy(
    "bucket-closed-to-public",
    "high",
    of=BUCKET,
    why="The setting prevents every later public grant, also grants by hand.",
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    standards=("CIS GCP 5.1", "CKV_GCP_114"),
)
def bucket_closed_to_public(resource: Resource, _settings: Settings) -> Found:
    """Buckets must enforce public access prevention."""
    if not is_or_unknown(resource.props, "publicAccessPrevention", "enforced"):
        got = text(resource.props, "publicAccessPrevention") or "inherited"
        yield f"public access prevention is {got}. Hint: set publicAccessPrevention to enforced"


@policy(
    "bucket-versioned",
    "medium",
    of=BUCKET,
    why="Without versions, an overwritten checkpoint or record is lost.",
    url="https://docs.cloud.google.com/storage/docs/object-versioning",
    standards=("CKV_GCP_78",),
)
def bucket_versioned(resource: Resource, _settings: Settings) -> Found:
    """Buckets must have object versioning."""
    if not is_or_unknown(resource.props.get("versioning"), "enabled", True):
        yield "object versioning is off. Hint: set versioning.enabled to true"


@policy(
    "bucket-regional",
    "medium",
    of=BUCKET,
    why="Jobs read and write faster in their own region, and traffic between regions costs money.",
    url="https://docs.cloud.google.com/storage/docs/locations",
)
def bucket_regional(resource: Resource, _settings: Settings) -> Found:
    """Buckets must be in one region."""
    yield from _not_regional(resource)


@policy(
    "data-protected",
    "high",
    of=BUCKET,
    why="One wrong line in a stack file could delete data that cannot be restored.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
    unprotected=[],
)
def data_protected(resource: Resource, settings: Settings) -> Found:
    """Buckets with data must be protected, and must not set ``forceDestroy``."""
    name, project = resource.props.get("name"), text(resource.props, "project")
    # Full names are compared, because the name of a project may contain "-staging-".
    names = Names(project, "", "", resource.stack)
    own = name in (names.bucket(STAGING), names.bucket(CONTROL))
    rehearsal = own and is_local(project)  # the program sets forceDestroy on these buckets
    if resource.props.get("forceDestroy") is True and not rehearsal:
        yield "forceDestroy lets a destroy delete all objects. Hint: remove forceDestroy"
    unknown = isinstance(name, Unknown) or isinstance(resource.props.get("project"), Unknown)
    exempt = unknown or own or name in settings["unprotected"]
    if not resource.protect and not exempt:
        yield "the bucket is not protected. Hint: set protect: true on the bucket in the stack file"


@policy(
    "registry-immutable-tags",
    "medium",
    of=REPOSITORY,
    why="Moving a tag makes an approved job run other code.",
    url="https://docs.cloud.google.com/artifact-registry/docs/container-concepts",
    not_in=REHEARSAL_STACKS,
)
def registry_immutable_tags(resource: Resource, _settings: Settings) -> Found:
    """Repositories must have immutable tags."""
    has_tags = resource.props.get("format", "DOCKER") == "DOCKER"  # Python packages have no tags
    if has_tags and not is_or_unknown(resource.props.get("dockerConfig"), "immutableTags", True):
        yield "tags are not immutable. Hint: set registry.immutableTags: true in the stack file"


@policy(
    "registry-cleanup",
    "low",
    of=REPOSITORY,
    why="Images of training code are large, and the storage of each image costs money.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
)
def registry_cleanup(resource: Resource, _settings: Settings) -> Found:
    """Repositories must have clean-up policies that delete old images and keep the newest."""
    if isinstance(resource.props.get("cleanupPolicies"), Unknown):
        return
    rules = items(resource.props, "cleanupPolicies")
    missing = [
        action
        for action in ("DELETE", "KEEP")
        if not any(is_or_unknown(rule, "action", action) for rule in rules)
    ]
    if missing:
        yield f"the repository has no {' and no '.join(missing)} rule. Hint: add cleanupPolicies"
    elif resource.props.get("cleanupPolicyDryRun") is True:
        yield "the clean-up is a dry run. Hint: set cleanupPolicyDryRun to false"


@policy(
    "registry-regional",
    "low",
    of=REPOSITORY,
    why="Pulling an image from the job's own region is faster and free of charge.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/repo-locations",
)
def registry_regional(resource: Resource, _settings: Settings) -> Found:
    """Repositories must be in one region."""
    yield from _not_regional(resource)


def _conditions_of_deletions(resource: Resource, state: str) -> Iterator[Mapping[str, Any]]:
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
    why="Users notice wrong deletions only days later.",
    url="https://docs.cloud.google.com/storage/docs/soft-delete",
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def deleted_objects_restorable(resource: Resource, settings: Settings) -> Found:
    """Deleted objects must be restorable for ``minDays`` days."""
    seconds = nested(resource.props, "softDeletePolicy", "retentionDurationSeconds")
    if not isinstance(seconds, int | float):
        return  # the default of Cloud Storage is seven days
    days, least = seconds / DAY, settings["minDays"]
    if days < least:
        hint = f"Hint: set softDeleteDays: {least:g} or more in the stack file"
        yield f"deleted objects can be restored for only {days:g} days. {hint}"


@policy(
    "bucket-old-versions-kept",
    "medium",
    of=BUCKET,
    why="A lost checkpoint is noticed only when the next training run loads it.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=7,
)
def old_versions_kept(resource: Resource, settings: Settings) -> Found:
    """Lifecycle rules must not delete old versions of objects within ``minDays`` days."""
    least, versions = settings["minDays"], nested(resource.props, "versioning", "enabled")
    for condition in _conditions_of_deletions(resource, "ARCHIVED"):
        if versions in (None, False) and condition.get("withState") != "ARCHIVED":
            continue  # a rule for all objects, in a bucket without versioning
        # Not `age`, which counts from the creation of a version.
        days = condition.get("daysSinceNoncurrentTime") or 0
        if isinstance(days, int | float) and days < least:
            hint = f"Hint: set keepNoncurrentDays: {least:g} or more in the stack file"
            yield f"old versions are deleted after {days:g} days. {hint}"


@policy(
    "bucket-objects-not-deleted-by-age",
    "high",
    of=BUCKET,
    why="A lifecycle rule deletes data without review, even if a job still reads it.",
    url=LIFECYCLE,
    not_in=REHEARSAL_STACKS,
    minDays=30,
)
def objects_not_deleted_by_age(resource: Resource, settings: Settings) -> Found:
    """Lifecycle rules must not delete current objects within ``minDays`` days."""
    least = settings["minDays"]
    for condition in _conditions_of_deletions(resource, "LIVE"):
        days = condition.get("age") or 0
        old = any(condition.get(key) for key in NONCURRENT)
        if not old and isinstance(days, int | float) and days < least:
            hint = f"Hint: set deleteAfterDays: {least:g} or more in the stack file"
            yield f"objects are deleted after {days:g} days. {hint}"


@policy(
    "bucket-retention-not-locked",
    "high",
    of=BUCKET,
    why="A lock is irreversible: no user can delete the bucket or its objects.",
    url="https://docs.cloud.google.com/storage/docs/bucket-lock",
)
def retention_not_locked(resource: Resource, _settings: Settings) -> Found:
    """Retention policies of buckets must not be locked unless the stack file lowers this policy."""
    retention = resource.props.get("retentionPolicy")
    if nested(retention, "isLocked") is not True:
        return
    seconds = nested(retention, "retentionPeriod")
    known = isinstance(seconds, str) and seconds
    days = f"{float(seconds) / DAY:g} days" if known else "unknown length"
    hint = "Hint: to lock it anyway, set policyLevels: {bucket-retention-not-locked: advisory}"
    yield f"the retention policy ({days}) is locked and can never be shortened. {hint}"


@policy(
    "secret-protected",
    "high",
    of=SECRET,
    why="A secret that is created again is empty: its values exist nowhere else.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
)
def secret_protected(resource: Resource, _settings: Settings) -> Found:
    """Secrets must be protected against deletion and replacement."""
    if not resource.protect:
        yield "the secret is not protected. Hint: set protect: true on the secret in the stack file"


@policy(
    "registry-keeps-images-in-use",
    "high",
    of=REPOSITORY,
    why="A restarted job or a reverted stack pulls older images by their digests.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
    not_in=REHEARSAL_STACKS,
    minVersions=5,
    minDays=7,
)
def registry_keeps_images_in_use(resource: Resource, settings: Settings) -> Found:
    """Clean-up policies must keep tagged images, recent images, and the newest versions."""
    rules = items(resource.props, "cleanupPolicies")
    deletions = [rule for rule in rules if nested(rule, "action") == "DELETE"]
    if not deletions:
        return
    for rule in deletions:
        state, after = (nested(rule, "condition", key) for key in ("tagState", "olderThan"))
        if not isinstance(state, Unknown) and state != "UNTAGGED":
            yield "the clean-up deletes tagged images. Hint: set tagState: UNTAGGED"
        if isinstance(after, Unknown):
            continue
        hint = f"Hint: set deleteUntaggedAfterDays: {settings['minDays']:g} or more"
        if (days := _days(after or "0s")) is None:
            yield f"the clean-up deletes images after {after}, which is not a duration. {hint}"
        elif days < settings["minDays"]:
            yield f"the clean-up deletes images after {days:g} days. {hint}"
    counts = [nested(rule, "mostRecentVersions", "keepCount") for rule in rules]
    kept = max((count for count in counts if isinstance(count, int | float)), default=0)
    unknown = any(isinstance(value, Unknown) for value in (*rules, *counts)) or any(
        isinstance(nested(rule, "action"), Unknown) for rule in rules
    )
    if kept < settings["minVersions"] and not unknown:
        hint = f"Hint: set keepVersions: {settings['minVersions']:g} or more"
        yield f"the clean-up keeps only {kept:g} versions of an image. {hint}"


def _days(duration: object) -> float | None:
    """Convert a duration like ``604800s`` or ``7d`` to days; return None for other texts."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", duration if isinstance(duration, str) else "")
    return float(parts[1]) * SECONDS_IN[parts[2]] / DAY if parts else None
