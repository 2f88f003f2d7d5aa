"""Policies on model versions and endpoints."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import ENDPOINT, ENDPOINT_TRAFFIC, MODEL_VERSION
from vertex_training.guardrails.jobs import DIGEST
from vertex_training.guardrails.policy import (
    REHEARSAL_STACKS,
    Resource,
    Unknown,
    is_or_unknown,
    mapping,
    matches_path,
    nested,
    policy,
    text,
)
from vertex_training.naming import PUBLIC_LABEL

PREDICTIONS: Final = (
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/predictions"
)


@policy(
    "model-image-by-digest",
    "high",
    why="What was reviewed is what answers, and can be rolled back to.",
    url=f"{PREDICTIONS}/custom-container-requirements",
    not_in=REHEARSAL_STACKS,
    byTag=[],  # patterns of images; Google's prebuilt ones have a tag only, and end on 2027-01-14
)
def model_image_by_digest(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """A model's serving image is named by digest."""
    given = text(resource.props, "container") if resource.type == MODEL_VERSION else ""
    image = text(json.loads(given), "imageUri") if given else ""
    by_tag = any(matches_path(image, pattern) for pattern in settings["byTag"])
    if image and not DIGEST.fullmatch(image) and not by_tag:
        yield f"{image}. Hint: name the image by its digest, as ${{images.NAME}} does"


@policy(
    "endpoint-not-public",
    "critical",
    why="Whoever has a token of the project reaches a public endpoint from the whole internet.",
    url=f"{PREDICTIONS}/choose-endpoint-type",
    not_in=REHEARSAL_STACKS,
    public=[],  # names of resources for which this is known without that
)
def endpoint_not_public(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
    """An endpoint is private, or the stack file says that it is public."""
    props = resource.props
    connect = nested(props, "privateServiceConnectConfig", "enablePrivateServiceConnect")
    private = connect is True or isinstance(connect, Unknown) or props.get("network")
    named = is_or_unknown(nested(props, "labels"), PUBLIC_LABEL, "named") or any(
        fnmatch.fnmatchcase(resource.name, pattern) for pattern in settings["public"]
    )
    if resource.type == ENDPOINT and not private and not named:
        yield (
            "it is reached from the internet. Hint: Private Service Connect as the stack's network "
            "mode, or public: true at this endpoint in the stack file"
        )


@policy(
    "endpoint-always-served",
    "medium",
    why="The first requests to an endpoint without machines are dropped, not queued.",
    url=f"{PREDICTIONS}/autoscaling",
)
def endpoint_always_served(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """Every deployed version has one replica at least."""
    deployed = mapping(resource.props, "deployed") if resource.type == ENDPOINT_TRAFFIC else {}
    for run, entry in deployed.items():
        least = entry.get("min") if isinstance(entry, Mapping) else None
        if isinstance(least, int | float) and least < 1:
            yield f"{run} has {least:g} replicas at least. Hint: replicas: {{min: 1, …}}"
