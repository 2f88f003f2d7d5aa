"""Policies on buckets: access, location, versions, and protection in production."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Resource,
    Unknown,
    is_or_unknown,
    policy,
    text,
)
from vertex_training.naming import CONTROL, STAGING, Names, is_local

#: A region's name ends in a number, like US-CENTRAL1; multi- and dual-regions do not.
REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+", re.IGNORECASE)


@policy(
    "bucket-uniform-access",
    "high",
    why="Rights given on single objects are in nobody's review.",
    url="https://docs.cloud.google.com/storage/docs/uniform-bucket-level-access",
    standards=("CIS GCP 5.2", "CKV_GCP_29"),
)
def bucket_uniform_access(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Buckets are governed by IAM alone: uniform bucket-level access is on."""
    if resource.type == BUCKET and not is_or_unknown(
        resource.props, "uniformBucketLevelAccess", True
    ):
        yield "uniform access is off. Hint: set uniformBucketLevelAccess to true"


@policy(
    "bucket-closed-to-public",
    "high",
    why="It holds against every later grant, also one made by hand.",
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    standards=("CIS GCP 5.1", "CKV_GCP_114"),
)
def bucket_closed_to_public(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Buckets enforce public access prevention."""
    if resource.type == BUCKET and not is_or_unknown(
        resource.props, "publicAccessPrevention", "enforced"
    ):
        got = text(resource.props, "publicAccessPrevention") or "inherited"
        yield f"public access prevention is {got}. Hint: set publicAccessPrevention to enforced"


@policy(
    "bucket-versioned",
    "medium",
    why="Without versions, an overwritten checkpoint or record is gone.",
    url="https://docs.cloud.google.com/storage/docs/object-versioning",
    standards=("CKV_GCP_78",),
)
def bucket_versioned(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Buckets keep old versions of their objects."""
    if resource.type == BUCKET and not is_or_unknown(
        resource.props.get("versioning"), "enabled", True
    ):
        yield "old versions are not kept. Hint: set versioning.enabled to true"


@policy(
    "bucket-regional",
    "medium",
    why="Jobs read and write faster in their own region, and traffic between regions is paid for.",
    url="https://docs.cloud.google.com/storage/docs/locations",
)
def bucket_regional(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Buckets are in one region."""
    location = text(resource.props, "location")
    if resource.type == BUCKET and location and not REGION.fullmatch(location):
        yield f"location {location} is not one region. Hint: the region of the jobs, us-central1"


@policy(
    "data-protected",
    "high",
    why="One wrong line in a stack file would delete what cannot be made again.",
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    not_in=REHEARSAL_STACKS,
    unprotected=[],
)
def data_protected(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """Buckets with data are protected, and never emptied in order to be deleted."""
    if resource.type != BUCKET:
        return
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
