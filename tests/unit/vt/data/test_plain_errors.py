"""Errors of Cloud Storage as lines with a hint, and the clients of stacks."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from requests import ConnectionError as NoConnection

from vertex_training.errors import CommandError
from vertex_training_cli.data import cloud
from vertex_training_cli.data.cloud import Place

OWN, OTHER = Place("acme-data", "x/", "data"), Place("acme-data", "x/")
READER = (
    "gs://acme-data/x/: no permission to read; it requires roles/storage.objectViewer on the "
    "bucket. Hint: request the role, or act as an account with"
)
AGAIN = "run the command again; complete files are not sent again."


@pytest.mark.parametrize(
    ("error", "place", "right", "text"),
    [
        (
            exceptions.Forbidden("no"), OWN, "read",
            f"{READER} `reads: [data]` in the stack file.",
        ),
        (
            exceptions.NotFound("no"), OWN, "read",
            "bucket acme-data does not exist. Hint: `vt up` creates it.",
        ),
        (exceptions.NotFound("no"), OTHER, "read", "bucket acme-data does not exist."),
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
