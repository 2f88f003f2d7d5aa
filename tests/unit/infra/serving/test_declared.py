"""Identities of versions, deployed models and endpoints: made as ever, and of all that counts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from vertex_training.serving.declared import (
    DeclaredDeployment,
    DeclaredVersion,
    ModelSource,
    container_spec,
)

SOURCE = ModelSource("acme-ml-dev", "us-central1", "dev", "titanic", "train", 3)
CONTAINER = '{"imageUri":"us-docker.pkg.dev/p/r/x@sha256:0"}'
VERSION = DeclaredVersion(SOURCE, "titanic-dev", CONTAINER, "model")
MACHINE = {"machineType": "n1-standard-2", "acceleratorCount": 1}
DEPLOYMENT = DeclaredDeployment(VERSION, MACHINE, 1, 2)


def sha256(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {}),
        (
            {"env": {"B": "2", "A": "1"}},
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
        ),
        ({"command": ("serve",), "args": ("--x", "ö")}, {"command": ["serve"],
                                                        "args": ["--x", "ö"]}),
        ({"deployment_timeout": "600s"}, {"deploymentTimeout": "600s"}),
    ],
)  # fmt: skip
def test_container_message_has_no_empty_fields(given: dict[str, Any], more: dict[str, Any]) -> None:
    plain = {"env": {}, "command": (), "args": (), "deployment_timeout": None}
    text = container_spec("x", "/predict", "/health", 8080, **(plain | given))
    message = {
        **{"imageUri": "x", "predictRoute": "/predict", "healthRoute": "/health"},
        **{"ports": [{"containerPort": 8080}], **more},
    }
    assert json.loads(text) == message
    # Canonical: the identity of a version is made of it.
    assert text == json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
