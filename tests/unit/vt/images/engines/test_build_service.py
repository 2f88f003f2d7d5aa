"""Calls of Cloud Build: what is sent, what is in doubt, and what a refusal means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud.devtools import cloudbuild_v1

from vertex_training.errors import ImageBuildError
from vertex_training.naming import Names
from vertex_training_cli.images import cloud_build
from vertex_training_cli.images.cloud_build import BuildService
from vertex_training_cli.images.programs import Build

NAMES = Names("acme-ml-dev", "1", "us-central1", "dev")
PARENT = "projects/acme-ml-dev/locations/us-central1"
NAME = f"{PARENT}/builds/b-1"
ACCOUNT = NAMES.account_email("image-build")
BUILD = cloudbuild_v1.Build(id="b-1")


class Client:
    """Answers, or raises; keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any, dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(request: Any, **options: Any) -> Any:
            self.asked.append((method, request, options))
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

        return call


def service(answer: Any) -> tuple[BuildService, Client]:
    client = Client(answer)
    return BuildService(cast(cloudbuild_v1.CloudBuildClient, client), NAMES), client


def told(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ImageBuildError) as failed:
        call()
    return failed.value.message, failed.value.hint


@pytest.mark.parametrize(
    "error",
    [
        exceptions.ServiceUnavailable("x"),
        exceptions.DeadlineExceeded("x"),
        exceptions.InternalServerError("x", errors=()),
        exceptions.Unknown("x"),
        exceptions.Aborted("x"),
        exceptions.Cancelled("x"),
    ],
)
def test_lost_answer_is_asked_to_be_repeated(error: Exception) -> None:
    if error.grpc_status_code is None:  # type: ignore[attr-defined]
        error.grpc_status_code = SimpleNamespace(name="INTERNAL")  # type: ignore[attr-defined]
    made, client = service(error)
    hint = "run the command again: `vt` follows the build if the call started one."
    assert told(lambda: made.create(BUILD))[1] == hint
    assert len(client.asked) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.InvalidArgument("no\n good"), "INVALID_ARGUMENT: no good"),
        (exceptions.AlreadyExists("no"), "ALREADY_EXISTS: no"),
        (RefreshError("no"), "RefreshError: no"),
        (exceptions.RetryError("late", exceptions.NotFound("gone")), "NOT_FOUND: gone"),
    ],
)
def test_refused_build_is_reported(error: Exception, code: str) -> None:
    made, _ = service(error)
    message = f"Google Cloud refused to start a build: {code}"
    assert told(lambda: made.create(BUILD))[0] == message


def test_build_that_has_ended_stays_as_it_is() -> None:
    made, _ = service(exceptions.FailedPrecondition("it has ended"))
    made.cancel(BUILD)
    made, _ = service(exceptions.NotFound("gone"))
    for call, doing in (
        (made.cancel, "cancel a build"),
        (made.get, "read a build"),
        (made.list_tagged, "list builds"),
    ):
        message = f"Google Cloud refused to {doing}: NOT_FOUND: gone"
        assert told(lambda call=call: call(BUILD))[0] == message


EDITOR = "roles/cloudbuild.builds.editor in project acme-ml-dev"
OBJECTS = "roles/storage.objectCreator and roles/storage.objectViewer on bucket"
BUILDERS = "add yourself to `builders` in Pulumi.dev.yaml and deploy the stack."


@pytest.mark.parametrize(
    ("code", "text", "doing", "hint"),
    [
        *((code, "could not Resolve Source: 403", "start a build",
           "deploy the stack, which grants roles/storage.objectViewer on bucket "
           f"{NAMES.bucket('staging')} to {ACCOUNT}.")
          for code in ("PERMISSION_DENIED", "INVALID_ARGUMENT")),
        *(("PERMISSION_DENIED", text, "list builds", (
            "deploy stack dev first: the deployment enables the API."
        ))
          for text in ("API has not been used in project 1", "It is disabled.")),
        *(("PERMISSION_DENIED", text, "start a build",
           f"you need roles/iam.serviceAccountUser on {ACCOUNT}: {BUILDERS}")
          for text in ("may not act as x", "iam.serviceAccounts.actAs")),
        ("PERMISSION_DENIED", "no", "upload the source",
         f"you need {OBJECTS} {NAMES.bucket('staging')}: {BUILDERS}"),
        ("PERMISSION_DENIED", "no", "start a build", f"you need {EDITOR}: {BUILDERS}"),
        ("NOT_FOUND", "no", "start a build",
         f"deploy stack dev first: the deployment creates the staging bucket and {ACCOUNT}."),
        ("RESOURCE_EXHAUSTED", "no", "start a build",
         "wait, or request more quota for cloudbuild.googleapis.com."),
        ("FAILED_PRECONDITION", "due to Quota restrictions", "start a build",
         (
             "request quota for Cloud Build in us-central1, or build on this machine: "
             "--engine docker."
         )),
        ("FAILED_PRECONDITION", "no", "start a build", ""),
        ("UNAUTHENTICATED", "no", "start a build",
         "sign in with `gcloud auth application-default login`."),
        ("RefreshError", "no", "start a build", (
            "sign in with `gcloud auth application-default login`."
        )),
        ("INVALID_ARGUMENT", "quota", "start a build", ""),
    ],
)  # fmt: skip
def test_refusal_names_what_is_missing(code: str, text: str, doing: str, hint: str) -> None:
    error = Exception(text)
    error.grpc_status_code = SimpleNamespace(name=code)  # type: ignore[attr-defined]
    found = cloud_build.refused(error, doing, NAMES)
    assert (found.message, found.hint) == (
        f"Google Cloud refused to {doing}: {code}: {text}", hint,
    )  # fmt: skip


def test_two_commits_with_one_context_request_the_same_build() -> None:
    def message(revision: str) -> cloudbuild_v1.Build:
        build = Build(
            name="titanic", archive=Path("/nonexistent"), context="jobs/titanic",
            dockerfile="docker/Dockerfile", build_args={"CUDA": "12", "HOME": "$HOME"},
            target="train", image=f"{NAMES.repository()}/titanic", tag="context-" + "0" * 32,
            labels={"org.opencontainers.image.revision": revision}, identity="0" * 64,
            timeout=600.0, writes_cache=True,
        )  # fmt: skip
        source = cloudbuild_v1.StorageSource(
            bucket="acme-ml-dev-staging-dev", object_="images/0.tar.gz", generation=42
        )
        return cloud_build.build_message(build, NAMES, source)

    assert cloud_build.makes_the_same(message("abc"), message("def"))
