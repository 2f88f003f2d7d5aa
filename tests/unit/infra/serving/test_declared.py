"""Identities of versions, deployed models and endpoints: made as ever, and of all that counts."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from vertex_training.serving.declared import (
    DeclaredDeployment,
    DeclaredEndpoint,
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


def test_a_deployed_model_has_ten_digits_of_what_cannot_be_changed_in_place() -> None:
    machine = '{"acceleratorCount": 1, "machineType": "n1-standard-2"}'
    digest = int(sha256(VERSION.request_id, machine, ""), 16)
    assert DEPLOYMENT.id == str(1_000_000_000 + digest % 9_000_000_000)
    for run in range(50):
        other = dataclasses.replace(VERSION, source=dataclasses.replace(SOURCE, run=run))
        id_ = dataclasses.replace(DEPLOYMENT, version=other).id
        assert len(id_) == 10
        assert id_[0] != "0"
    assert dataclasses.replace(DEPLOYMENT, minimum=2, maximum=5).id == DEPLOYMENT.id
    assert dataclasses.replace(DEPLOYMENT, account="a@x").id != DEPLOYMENT.id
    assert dataclasses.replace(DEPLOYMENT, machine={"machineType": "x"}).id != DEPLOYMENT.id


def test_an_endpoint_has_the_name_of_its_place() -> None:
    endpoint = DeclaredEndpoint(
        *("titanic", "acme-ml-dev", "us-central1", "dev", "123456789", "dev-titanic"),
        *({3: DEPLOYMENT}, {3: 100}, False, True, {}),
    )
    assert endpoint.name == "projects/acme-ml-dev/locations/us-central1/endpoints/123456789"


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
def test_a_container_is_the_apis_message_without_what_is_empty(
    given: dict[str, Any], more: dict[str, Any]
) -> None:
    plain = {"env": {}, "command": (), "args": (), "deployment_timeout": None}
    text = container_spec("x", "/predict", "/health", 8080, **(plain | given))
    message = {
        **{"imageUri": "x", "predictRoute": "/predict", "healthRoute": "/health"},
        **{"ports": [{"containerPort": 8080}], **more},
    }
    assert json.loads(text) == message
    # Canonical: the identity of a version is made of it.
    assert text == json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
