"""Which registry an image is in, and with whose credentials it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import google.auth
import pytest
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials

from tests.unit.vt.images.network import Network
from vertex_training.customjob.google import impersonation
from vertex_training.errors import OperatorError, RegistryError
from vertex_training_cli.images.registry import google_session, registry_of
from vertex_training_cli.images.transport import anonymous_session

BASE = "https://us-docker.pkg.dev"


class Login(Credentials):
    """Credentials that are renewed without Google."""

    def refresh(self, request: Any) -> None:
        if self.token == "spent":
            raise RefreshError("it was\n revoked.")
        self.token = "renewed"


LOGIN = "gcloud auth application-default login"


def test_a_token_is_a_new_one_of_this_machines_credentials() -> None:
    found = Network().client(BASE, "old")
    found._transport.session = AuthorizedSession(Login("old"))
    assert found.token() == "renewed"
    found._transport.session = AuthorizedSession(Login("spent"))
    with pytest.raises(RegistryError) as refused:
        found.token()
    assert (refused.value.message, refused.value.hint) == (
        f"no credentials for {BASE}: it was revoked.", LOGIN,
    )  # fmt: skip
    found._transport.session = anonymous_session()
    assert found.token() == ""


@pytest.mark.parametrize(
    ("image", "emulator", "message", "hint"),
    [
        ("docker.io/acme/x", "h:1", "docker.io/acme/x is no image in Artifact Registry.",
         "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME"),
        ("us-docker.pkg.dev/local-a/r/x", "",
         "no registry runs in the local cloud for us-docker.pkg.dev/local-a/r/x.",
         "`make containers` installs one, which the running local cloud takes up; a "
         "`vt local shell` that was open before has to be opened anew."),
    ],
)  # fmt: skip
def test_an_image_without_a_registry_is_refused(
    image: str, emulator: str, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", emulator)
    with pytest.raises(RegistryError) as refused:
        registry_of(image)
    assert (refused.value.message, refused.value.hint) == (message, hint)


def fails(error: Exception) -> Callable[..., Any]:
    def call(*_: object, **_more: object) -> Any:
        raise error

    return call


def test_why_there_are_no_credentials_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impersonation, "impersonated_credentials", lambda: None)
    monkeypatch.setattr(google.auth, "default", fails(DefaultCredentialsError("none\nhere.")))
    with pytest.raises(RegistryError) as refused:
        google_session()
    assert (refused.value.message, refused.value.hint) == (
        "no Google credentials: none here.", LOGIN,
    )  # fmt: skip
    failed = fails(OperatorError("it may not."))
    monkeypatch.setattr(impersonation, "impersonated_credentials", failed)
    with pytest.raises(RegistryError) as refused:
        google_session()
    assert str(refused.value) == "it may not."
