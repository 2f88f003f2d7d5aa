"""Errors of Cloud Storage as lines with a hint, and the clients of stacks."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from requests import ConnectionError as NoConnection

from vertex_training.errors import CommandError
from vertex_training_cli.data import cloud
from vertex_training_cli.data.cloud import Place

PLACE = Place("acme-data", "x/")
READER = (
    "gs://acme-data/x/: no permission to read objects. The bucket requires "
    "roles/storage.objectViewer. Hint: request the role, or use an account with"
)
AGAIN = "run the command again. Complete files are not transferred again."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            exceptions.Forbidden("no"),
            f"{READER} `reads: […]` in the stack file.",
        ),
        (exceptions.NotFound("no"), "bucket acme-data does not exist."),
        (exceptions.BadGateway("later"), f"gs://acme-data/x/: later Hint: {AGAIN}"),
        (RefreshError("sign in"), "gs://acme-data/x/: RefreshError: sign in"),
        (NoConnection("gone"), "gs://acme-data/x/: ConnectionError: gone"),
    ],
)  # fmt: skip
def test_error_of_the_service_is_a_line_with_a_hint(error: Exception, text: str) -> None:
    with pytest.raises(CommandError) as failed, cloud.plain_errors(PLACE, "read"):
        raise error
    assert str(failed.value) == text


def test_error_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), cloud.plain_errors(PLACE, "read"):
        raise ZeroDivisionError
