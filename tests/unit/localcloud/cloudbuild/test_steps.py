"""What the steps of a build ask of the engine, and which are refused."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild.steps import engine_request
from localgcp.errors import UnsupportedBuildError

DOCKER = "gcr.io/cloud-builders/docker"
IMAGE = "us-docker.pkg.dev/local-a/training/titanic"


def build(*args: str, create: bool = True, **given: Any) -> cloudbuild_v1.Build:
    steps = [{"name": DOCKER, "args": ["buildx", "create", "--use"]}] if create else []
    steps.append({"name": f"{DOCKER}:24", "args": ["buildx", "build", *args]})
    whole = {
        "steps": steps,
        "images": [f"{IMAGE}:v1"],
        "timeout": datetime.timedelta(seconds=90),
        **given,
    }
    return cloudbuild_v1.Build(whole)


def test_all_options_of_a_build_reach_the_engine() -> None:
    given = build(
        *("--file", "docker/Dockerfile.gpu", "--tag", f"{IMAGE}:v1", "--target", "train"),
        *("--build-arg", "A=b=c", "--build-arg", "EMPTY", "--label", "k=v", "--load", "."),
        *("--builder", "x", "--platform", "linux/amd64", "--provenance", "false"),
        *("--progress", "plain", "--cache-from", "y", "--cache-to", "z"),
        substitutions={"_IDENTITY": "id"},
    )
    assert engine_request(given, "/w/source.tar") == {
        "name": "titanic",
        "archive": "/w/source.tar",
        "context": ".",
        "dockerfile": "docker/Dockerfile.gpu",
        "build_args": {"A": "b=c", "EMPTY": ""},
        "target": "train",
        "image": IMAGE,
        "tag": "v1",
        "labels": {"k": "v"},
        "identity": "id",
        "timeout": 90.0,
    }


TAG = ("--tag", f"{IMAGE}:v1")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (build(*TAG, steps=[{"name": "ubuntu"}]), "step ubuntu"),
        (build(*TAG, steps=[{"name": DOCKER, "entrypoint": "sh"}]), f"step {DOCKER}"),
        (build(*TAG, steps=[{"name": DOCKER, "args": ["buildx", "create"]}]),
         "docker, other than buildx create and one buildx build"),
        (build(*TAG, "--secret", "x"), "docker buildx build --secret"),
        (build("--load", "."), "docker buildx build without --tag"),
        (build(*TAG, images=["other:v1"]), f"images ['other:v1'] beside --tag {IMAGE}:v1"),
    ],
)  # fmt: skip
def test_what_the_engine_cannot_do_is_refused_by_its_name(
    given: cloudbuild_v1.Build, text: str
) -> None:
    with pytest.raises(UnsupportedBuildError) as refused:
        engine_request(given, "")
    assert str(refused.value) == text
