"""Policies on Docker repositories: immutable tags, clean-up, location."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_training.catalog.resource_types import REPOSITORY
from vertex_training.guardrails.buckets import REGION
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Resource,
    Unknown,
    is_or_unknown,
    items,
    policy,
    text,
)


@policy(
    "registry-immutable-tags",
    "medium",
    why="A tag that was moved makes an approved job run other code.",
    url="https://docs.cloud.google.com/artifact-registry/docs/container-concepts",
    not_in=REHEARSAL_STACKS,
)
def registry_immutable_tags(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """A tag, once pushed, cannot be moved."""
    if resource.type != REPOSITORY or resource.props.get("format", "DOCKER") != "DOCKER":
        return  # packages of Python, say, have no tags
    if not is_or_unknown(resource.props.get("dockerConfig"), "immutableTags", True):
        yield "tags can be moved. Hint: set registry.immutableTags: true in the stack file"


@policy(
    "registry-cleanup",
    "low",
    why="Images of training code are gigabytes, and all of them are paid for.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy",
)
def registry_cleanup(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """A repository deletes what nobody needs and keeps the newest versions."""
    if resource.type != REPOSITORY or isinstance(resource.props.get("cleanupPolicies"), Unknown):
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
    why="A job that starts pulls its image: from its own region that is faster and free of charge.",
    url="https://docs.cloud.google.com/artifact-registry/docs/repositories/repo-locations",
)
def registry_regional(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Repositories are in one region."""
    location = text(resource.props, "location")
    if resource.type == REPOSITORY and location and not REGION.fullmatch(location):
        yield f"location {location} is not one region. Hint: the region of the jobs, us-central1"
