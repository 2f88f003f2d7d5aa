"""Policies on customer-managed encryption keys, where a stack requires them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_training.catalog.resource_types import (
    BUCKET,
    ENDPOINT,
    MODEL_VERSION,
    REPOSITORY,
    SECRET,
    TENSORBOARD,
)
from vertex_training.guardrails.jobs import SPECS, job_spec
from vertex_training.guardrails.policy import Resource, Unknown, mapping, nested, policy, text


def _encryption_keys(resource: Resource) -> list[tuple[str, Any]]:
    """(location, key) of all data that a resource stores."""
    props = resource.props
    if resource.type == BUCKET:
        return [(text(props, "location"), nested(props, "encryption", "defaultKmsKeyName"))]
    if resource.type == REPOSITORY:
        return [(text(props, "location"), props.get("kmsKeyName"))]
    if resource.type == TENSORBOARD:
        return [(text(props, "region"), nested(props, "encryptionSpec", "kmsKeyName"))]
    if resource.type == ENDPOINT:
        return [(text(props, "location"), nested(props, "encryptionSpec", "kmsKeyName"))]
    if resource.type == MODEL_VERSION:
        return [(text(mapping(props, "model"), "region"), nested(props, "options", "key"))]
    if resource.type == SECRET:
        return list(_replicas(props.get("replication")))
    if resource.type in SPECS:
        region = text(mapping(props, "submission"), "region")
        return [(region, _job_key(resource))] if job_spec(resource) else []
    return []


def _replicas(replication: Any) -> Iterator[tuple[str, Any]]:
    managed = nested(replication, "userManaged", "replicas")
    if not managed:
        yield "global", nested(replication, "auto", "customerManagedEncryption", "kmsKeyName")
    for replica in managed if isinstance(managed, list) else []:
        yield text(replica, "location"), nested(replica, "customerManagedEncryption", "kmsKeyName")


def _job_key(resource: Resource) -> Any:
    return nested(json.loads(text(resource.props, "request")), "encryptionSpec", "kmsKeyName")


@policy(
    "own-key-where-required",
    "high",
    why="Data under Google's keys cannot be made unreadable by taking a key away.",
    url="https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/cmek",
    standards=("CKV_GCP_84",),
    required=False,
)
def own_key_where_required(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A key is in the location of what it encrypts; with ``required`` everything has one."""
    for location, key in _encryption_keys(resource):
        if isinstance(key, Unknown):
            continue
        if not key:
            if settings["required"]:
                yield "no key of your own encrypts it. Hint: give it kmsKeyName of the stack's key"
        elif location and f"/locations/{location.lower()}/" not in str(key):
            yield f"{key} is not in {location.lower()}. Hint: use a key of that location"
