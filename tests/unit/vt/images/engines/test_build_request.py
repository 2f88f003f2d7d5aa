"""What is asked of Cloud Build, as its official client takes it."""

from pathlib import Path

from google.cloud.devtools import cloudbuild_v1

from vertex_training.naming import Names
from vertex_training_cli.images.engines import build_request
from vertex_training_cli.images.engines.build_request import StoredSource
from vertex_training_cli.images.engines.engine import Build

NAMES = Names("acme-ml-dev", "210987654321", "us-central1", "dev")
SOURCE = StoredSource("acme-ml-dev-staging-dev", "images/0.tar.gz", 42)
IMAGE = f"{NAMES.repository()}/titanic"


def a_build(**changes: object) -> Build:
    fields = {
        "name": "titanic",
        "archive": Path("/nonexistent"),
        "context": "jobs/titanic",
        "dockerfile": "docker/Dockerfile",
        "build_args": {"CUDA": "12", "HOME": "$HOME"},
        "target": "train",
        "image": IMAGE,
        "tag": "context-" + "0" * 32,
        "labels": {"org.opencontainers.image.revision": "abc"},
        "identity": "0" * 64,
        "timeout": 600.0,
        "writes_cache": True,
        **changes,
    }
    return Build(**fields)


def message(**changes: object) -> cloudbuild_v1.Build:
    return build_request.build_message(a_build(**changes), NAMES, SOURCE, "attempt")


def test_two_commits_with_one_context_ask_for_the_same_build() -> None:
    other = message(labels={"org.opencontainers.image.revision": "def"})
    assert build_request.makes_the_same(other, message())
