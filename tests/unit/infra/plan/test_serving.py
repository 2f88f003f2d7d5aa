"""Versions and endpoints that follow from a stack file, whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import unjudged
from vertex_training.errors import UnknownReferenceError
from vertex_training.plan.serving import image_of, plan_endpoints, plan_versions
from vertex_training.serving.declared import (
    DeclaredDeployment,
    DeclaredEndpoint,
)

KEY = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/k"
IMAGE = f"us-docker.pkg.dev/acme/images/x@sha256:{'1' * 64}"
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
