"""Errors of Cloud Storage as lines with a hint, and the clients of stacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.cloud import storage
from requests import ConnectionError as NoConnection

from vertex_training.customjob.google import impersonation, storage_client
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.data import cloud
from vertex_training_cli.data.cloud import Place
from vertex_training_cli.engine.stacks import StackRef

OWN, OTHER = Place("acme-data", "x/", "data"), Place("acme-data", "x/")
READER = "gs://acme-data/x/: you may not read here; that takes roles/storage.objectViewer"
ASK = "have it; ask for it, or act as one of them."
AGAIN = "run it again: what arrived is not sent again."


@pytest.mark.parametrize(
    ("error", "place", "right", "text"),
    [
        (
            exceptions.Forbidden("no"), OWN, "read",
            f"{READER} on the bucket. Hint: accounts with `reads: [data]` in the stack file {ASK}",
        ),
        (
            exceptions.NotFound("no"), OWN, "read",
            "there is no bucket acme-data. Hint: `vt up` makes it.",
        ),
        (exceptions.NotFound("no"), OTHER, "read", "there is no bucket acme-data."),
        (exceptions.BadGateway("later"), OWN, "read", f"gs://acme-data/x/: later Hint: {AGAIN}"),
        (RefreshError("sign in"), OWN, "read", "gs://acme-data/x/: RefreshError: sign in"),
        (NoConnection("gone"), OWN, "read", "gs://acme-data/x/: ConnectionError: gone"),
    ],
)  # fmt: skip
def test_error_of_the_service_is_a_line_with_a_hint(
    error: Exception, place: Place, right: str, text: str
) -> None:
    with pytest.raises(CommandError) as failed, cloud.plain_errors(place, right):
        raise error
    assert str(failed.value) == text


def test_error_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), cloud.plain_errors(OWN, "read"):
        raise ZeroDivisionError


def ref(project: str) -> StackRef:
    return StackRef(Path("/srv"), "p", "dev", project, "us-central1")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Projects that clients were made of, with the account that acts."""
    found: list[Any] = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"):
        os.environ.pop(name, None)

    def make(*, project: str, credentials: Any) -> str:
        found.append((project, credentials))
        return "client"

    monkeypatch.setattr(storage, "Client", make)
    monkeypatch.setattr(impersonation, "_credentials", lambda account, _: f"as {account}")
    monkeypatch.setattr(
        StackRef, "environment", lambda *_: {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"}
    )
    storage_client._client.cache_clear()
    yield found
    storage_client._client.cache_clear()


def test_client_reaches_google_or_the_started_local_cloud(made: list[Any]) -> None:
    assert cloud.connect(ref("acme-ml"), print) == "client"
    assert "STORAGE_EMULATOR_HOST" not in os.environ
    assert cloud.connect(ref("local-ml"), print) == "client"
    assert os.environ["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:1"
    os.environ["STORAGE_EMULATOR_HOST"] = "http://127.0.0.1:2"
    assert cloud.connect(ref("local-ml"), print) == "client"
    assert os.environ["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:2"
    assert made == [("acme-ml", None), ("local-ml", None), ("local-ml", None)]
    with pytest.raises(OperatorError) as refused:
        cloud.connect(ref("acme-ml"), print)
    assert str(refused.value) == (
        "STORAGE_EMULATOR_HOST is set, but project 'acme-ml' is no local one (local-…). "
        "Leave `vt local shell` to reach Google Cloud."
    )


def test_without_credentials_there_is_a_hint(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(storage, "Client", refuse)
    with pytest.raises(OperatorError) as refused:
        cloud.connect(ref("acme-ml"), print)
    assert str(refused.value) == (
        "no Google Cloud credentials. Sign in with `gcloud auth application-default login`, "
        "or let CI use workload identity."
    )
