"""What is asked of Cloud Build, as its official client takes it."""

from pathlib import Path

import pytest
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


def test_a_request_is_read_by_the_official_client_as_it_was_written() -> None:
    made = message()
    again = cloudbuild_v1.Build.from_json(cloudbuild_v1.Build.to_json(made))
    assert again == made


def test_a_build_runs_as_the_stacks_own_account_and_logs_to_cloud_logging() -> None:
    made = message()
    email = "image-build-dev@acme-ml-dev.iam.gserviceaccount.com"
    assert made.service_account == f"projects/acme-ml-dev/serviceAccounts/{email}"
    assert made.options.logging.name == "CLOUD_LOGGING_ONLY"
    assert not made.logs_bucket


def test_a_source_is_named_with_its_generation() -> None:
    source = message().source.storage_source
    assert (source.bucket, source.object_, source.generation) == (
        "acme-ml-dev-staging-dev", "images/0.tar.gz", 42,
    )  # fmt: skip


def test_buildkit_builds_with_a_cache_in_the_registry_and_cloud_build_pushes() -> None:
    made = message()
    builder, step = made.steps
    docker = "gcr.io/cloud-builders/docker"
    assert [(each.name, each.id) for each in made.steps] == [
        (docker, "builder"), (docker, "build")
    ]  # fmt: skip
    assert list(builder.args) == [
        "buildx", "create", "--name", "images", "--driver", "docker-container",
        "--driver-opt", "image=mirror.gcr.io/moby/buildkit:buildx-stable-1",
    ]  # fmt: skip
    cache = f"type=registry,ref={IMAGE}:buildcache"
    assert list(step.args) == [
        "buildx", "build", "--builder", "images", "--platform", "linux/amd64",
        "--provenance", "false", "--progress", "plain", "--file", "docker/Dockerfile",
        "--tag", f"{IMAGE}:context-{'0' * 32}",
        "--build-arg", "CUDA=12", "--build-arg", "HOME=$$HOME",  # a dollar is no substitution
        "--label", "org.opencontainers.image.revision=abc", "--target", "train",
        "--cache-from", cache, "--cache-to", f"{cache},mode=max,ignore-error=true", "--load", ".",
    ]  # fmt: skip
    assert list(made.images) == [f"{IMAGE}:context-{'0' * 32}"]


def test_a_build_that_nobody_reviewed_leaves_nothing_for_the_next_one() -> None:
    """A layer of a branch must not be what a reviewed context is then made of."""
    args = message(writes_cache=False).steps[1].args
    assert f"type=registry,ref={IMAGE}:buildcache" in args
    assert "--cache-to" not in args


def test_a_build_carries_its_identity_and_has_bounds() -> None:
    made = message()
    assert made.tags[-1] == "context-" + "0" * 32
    assert made.substitutions["_IDENTITY"] == "0" * 64
    assert made.timeout.total_seconds() == 600  # pyright: ignore
    assert made.queue_ttl.total_seconds() == 1800  # pyright: ignore


def test_two_commits_with_one_context_ask_for_the_same_build() -> None:
    other = message(labels={"org.opencontainers.image.revision": "def"})
    assert build_request.makes_the_same(other, message())


@pytest.mark.parametrize(
    "change",
    [
        {"build_args": {"CUDA": "13", "HOME": "$HOME"}},
        {"target": "other"},
        {"dockerfile": "Dockerfile"},
        {"tag": "context-" + "1" * 32},
        {"identity": "1" * 64},
    ],
)
def test_another_build_under_the_same_tag_is_another_one(change: dict[str, object]) -> None:
    assert not build_request.makes_the_same(message(**change), message())


def test_a_build_as_another_account_or_of_another_source_is_another_one() -> None:
    other = message()
    other.service_account = other.service_account.replace("image-build", "admin")
    assert not build_request.makes_the_same(other, message())
    other = message()
    other.source.storage_source.generation = 43
    assert not build_request.makes_the_same(other, message())
    other = message()
    other.steps[1].args.append("--network=cloudbuild")
    assert not build_request.makes_the_same(other, message())


def test_what_google_returns_of_a_build_is_recognised() -> None:
    returned = message()
    for step in returned.steps:
        step.args = [arg.replace("$$", "$") for arg in step.args]
        step.status = cloudbuild_v1.Build.Status.WORKING
    assert build_request.makes_the_same(returned, message())
