"""Versions and endpoints that follow from a stack file, whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.infra.stacks import PSC, unjudged
from vertex_training.errors import UnknownReferenceError
from vertex_training.plan.serving import image_of, plan_endpoints, plan_versions
from vertex_training.serving.declared import (
    DeclaredDeployment,
    DeclaredEndpoint,
    DeclaredVersion,
    ModelSource,
)

KEY = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/k"
IMAGE = f"us-docker.pkg.dev/acme/images/x@sha256:{'1' * 64}"
OWN = f"us-central1-docker.pkg.dev/acme-ml-prod/training-prod/own@sha256:{'2' * 64}"
CONTAINER = {
    "image": "${images.own}", "predictRoute": "/p", "healthRoute": "/h", "port": 9000,
    "env": {"B": "2", "A": "1"}, "command": ["serve"], "args": ["--x"], "deploymentTimeout": "600s",
}  # fmt: skip
STACK: dict[str, Any] = {
    "labels": {"org": "ml"},
    "teams": {"vision": {"labels": {"cost": "7"}}},
    "serviceAccounts": {"server": {}},
    "images": {"own": {"digest": f"sha256:{'2' * 64}"}, "later": {"context": "jobs/later"}},
    "models": {
        "titanic": {"run": [2, 1], "container": IMAGE},
        "iris": {
            "job": "train", "run": 3, "container": CONTAINER, "artifacts": "out/model",
            "files": ["model.json"],
        },
    },
    "endpoints": {
        "titanic": {
            "machine": "n1-standard-2", "split": {"run 2": 10, "run 1": 90}, "team": "vision",
        },
        "other": {
            "model": "iris", "machine": "n1-standard-4", "split": {"run 3": 100},
            "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2},
            "replicas": {"min": 2, "max": 5}, "account": "server", "public": True,
        },
    },
}  # fmt: skip


def source(model: str, job: str, run: int) -> ModelSource:
    return ModelSource("acme-ml-prod", "us-central1", "prod", model, job, run)


def test_a_model_has_a_version_for_each_run() -> None:
    found = plan_versions(unjudged(**STACK, encryption={"key": KEY}))
    plain = json.dumps(
        {
            "healthRoute": "/health",
            "imageUri": IMAGE,
            "ports": [{"containerPort": 8080}],
            "predictRoute": "/predict",
        },
        separators=(",", ":"),
    )
    custom = json.dumps(
        {
            "args": ["--x"],
            "command": ["serve"],
            "deploymentTimeout": "600s",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "healthRoute": "/h",
            "imageUri": OWN,
            "ports": [{"containerPort": 9000}],
            "predictRoute": "/p",
        },
        separators=(",", ":"),
    )
    assert found == {
        **{
            ("titanic", run): DeclaredVersion(
                source("titanic", "titanic", run), "titanic-prod", plain, "model", (), KEY
            )
            for run in (1, 2)
        },
        ("iris", 3): DeclaredVersion(
            source("iris", "train", 3), "iris-prod", custom, "out/model", ("model.json",), KEY
        ),
    }
    assert {each.key for each in plan_versions(unjudged(**STACK)).values()} == {""}


def test_an_endpoint_has_a_deployment_for_each_share() -> None:
    settings = unjudged(**STACK, encryption={"key": KEY})
    versions = plan_versions(settings)
    own = {"managed-by": "pulumi", "stack": "prod", "org": "ml", "vt-stack": "prod"}
    small = {"machineType": "n1-standard-2"}
    large = {
        "machineType": "n1-standard-4",
        "acceleratorType": "NVIDIA_TESLA_T4",
        "acceleratorCount": 2,
    }
    server = "server-prod@acme-ml-prod.iam.gserviceaccount.com"
    place = {"project": "acme-ml-prod", "region": "us-central1", "stack": "prod"}
    assert plan_endpoints(settings, versions) == {
        "titanic": DeclaredEndpoint(
            key="titanic",
            **place,
            id=settings.names.endpoint_id("titanic"),
            display_name="titanic-prod",
            deployments={
                run: DeclaredDeployment(versions["titanic", run], small, 1, 1) for run in (1, 2)
            },
            split={1: 90, 2: 10},
            is_private=False,
            is_named_public=False,
            labels=own | {"team": "vision", "cost": "7", "vt-endpoint": "titanic"},
            key_name=KEY,
            model="titanic",
            team="vision",
        ),
        "other": DeclaredEndpoint(
            key="other",
            **place,
            id=settings.names.endpoint_id("other"),
            display_name="other-prod",
            deployments={3: DeclaredDeployment(versions["iris", 3], large, 2, 5, server)},
            split={3: 100},
            is_private=False,
            is_named_public=True,
            labels=own | {"vt-endpoint": "other", "vt-public": "named"},
            key_name=KEY,
            model="iris",
            account=server,
        ),
    }


@pytest.mark.parametrize(
    ("network", "public", "private"),
    [
        ({}, None, False),
        ({}, False, True),
        ({}, True, False),
        (PSC, None, True),
        (PSC, False, True),
        (PSC, True, False),
        ({"mode": "peering"}, None, False),
    ],
)
def test_an_endpoint_is_private_where_the_network_is_or_where_it_says_so(
    network: dict[str, Any], public: bool | None, private: bool
) -> None:
    endpoint = {**STACK["endpoints"]["titanic"], "public": public}
    settings = unjudged(**STACK | {"endpoints": {"titanic": endpoint}, "network": network})
    found = plan_endpoints(settings, plan_versions(settings))["titanic"]
    assert (found.is_private, found.is_named_public) == (private, public is True)


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        ("${images.later}",
         "no image was built of jobs/later yet: vt images build later --stack prod"),
        ("${images.ow}", "did you mean 'images.own'?"),
    ],
)  # fmt: skip
def test_an_image_that_is_not_there_is_told(image: str, hint: str) -> None:
    models = {"titanic": {"run": 1, "container": image}}
    settings = unjudged(**STACK | {"models": models, "endpoints": {}})
    with pytest.raises(UnknownReferenceError) as unknown:
        image_of(settings, settings.models["titanic"])
    assert unknown.value.hint == hint
