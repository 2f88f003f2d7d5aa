"""Calls of the registry client: what it requests, returns and refuses; with whose credentials."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import AuthorizedSession
from google.oauth2.credentials import Credentials

from tests.unit.vt.images.network import Network
from tests.unit.vt.images.stand_in import digest
from vertex_training.customjob.google import IMPERSONATION_VARIABLE
from vertex_training.errors import RegistryError
from vertex_training_cli.images.registry import (
    MAX_DOCUMENT,
    RemoteImage,
    anonymous_session,
    google_session,
    remote_image,
)

CORPUS = yaml.safe_load(
    (Path(__file__).parents[3] / "corpus" / "registry.yaml").read_text(encoding="utf-8")
)
BASE, OTHER = "https://us-docker.pkg.dev", "https://europe-docker.pkg.dev"
PATH, THERE = "acme/one/train", "acme/two/train"
LOGIN = "sign in with `gcloud auth application-default login`"


def filled(text: str) -> str:
    """Replace names of documents by their digests and sizes."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in CORPUS["documents"]:
            return match[0]
        content = filled(CORPUS["documents"][match[1]]).encode()
        return str(len(content)) if match[2] else digest(content)

    return re.sub(r"<([a-z ]+)(#?)>", replace, text)


def address(text: str) -> str:
    """Return ``[METHOD ]ADDRESS`` in full."""
    method, space, url = filled(text).rpartition(" ")
    if url.startswith("/"):
        url = BASE + url
    elif not url.startswith("https:"):
        url = f"{BASE}/v2/{PATH}/{url}"
    return f"{method}{space}{url}"


def content(text: str) -> bytes:
    special = {"LARGE": b"x" * (MAX_DOCUMENT + 1), "NESTED": b"[" * 100_000}
    return special.get(text) or filled(CORPUS["documents"].get(text, text)).encode()


def called(call: str, network: Network, *, other: bool) -> Any:
    """Return the result of a call in the form of the corpus."""
    name, *words = filled(call).split()
    image = network.image(BASE, PATH, "a-token")
    if name == "copy":
        to = network.image(*((OTHER, THERE, "b-token") if other else (BASE, THERE, "a-token")))
        return image.copy(words[0], to, tuple(words[1:]))
    result = getattr(image, name)(*words)
    if name == "manifest":
        return result and result.digest
    if name == "facts" and result:
        return [result.digest, list(result.platforms), dict(result.labels), result.size]
    return result


@pytest.mark.parametrize("name", CORPUS["cases"])
def test_recorded_call_gives_its_recorded_result(name: str) -> None:
    case, network = CORPUS["cases"][name], Network()
    for where, (status, headers, text) in (CORPUS["answers"] | case.get("answers", {})).items():
        named = {key: filled(value) for key, value in headers.items()}
        network.answers[address(where)] = (status, named, content(text))
    if error := case.get("error"):
        with pytest.raises(RegistryError) as refused:
            called(case["call"], network, other=case.get("other", False))
        assert str(refused.value) == filled(error)
    else:
        wanted = yaml.safe_load(filled(yaml.safe_dump(case["gives"], width=10_000)))
        assert called(case["call"], network, other=case.get("other", False)) == wanted
    made = [(method, url) for method, url, _ in network.asked]
    if "asked" in case:
        assert made == [tuple(address(each).split(" ")) for each in case["asked"]]
    if "changes" in case:
        changes = [each for each in made if each[0] not in ("GET", "HEAD")]
        assert changes == [tuple(address(each).split(" ")) for each in case["changes"]]
    if "waits" in case:
        assert network.waits == case["waits"]
    tokens = {BASE: "Bearer a-token", OTHER: "Bearer b-token"}
    for _, url, credentials in network.asked:
        host = "/".join(url.split("/")[:3])
        assert credentials in ("", tokens.get(host)), url
    assert network.asked[0][2] == tokens[BASE]


class Login(Credentials):
    """Credentials that are renewed without Google."""

    def refresh(self, request: Any) -> None:
        if self.token == "spent":
            raise RefreshError("it was\n revoked.")
        self.token = "renewed"


def test_builders_get_a_renewed_token() -> None:
    def token(session: requests.Session) -> str:
        return RemoteImage(BASE, PATH, session).token()

    assert token(AuthorizedSession(Login("old"))) == "renewed"
    with pytest.raises(RegistryError) as refused:
        token(AuthorizedSession(Login("spent")))
    text = f"no Google credentials for {BASE}: it was revoked."
    assert (refused.value.message, refused.value.hint) == (text, LOGIN)
    assert token(anonymous_session()) == ""


@pytest.mark.parametrize(
    ("image", "emulator", "message", "hint"),
    [
        ("docker.io/acme/x", "h:1", "docker.io/acme/x is not an Artifact Registry image.",
         "REGION-docker.pkg.dev/PROJECT/REPOSITORY/NAME"),
        ("us-docker.pkg.dev/local-a/r/x", "",
         "the local cloud has no registry for us-docker.pkg.dev/local-a/r/x.",
         "install a registry with `make containers`. The running local cloud will use the "
         "registry. Restart open `vt local shell`s"),
    ],
)  # fmt: skip
def test_image_without_a_registry_is_refused(
    image: str, emulator: str, message: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", emulator)
    with pytest.raises(RegistryError) as refused:
        remote_image(image)
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_missing_credentials_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none/key.json")
    with pytest.raises(RegistryError) as refused:
        google_session()
    text = "no Google credentials: File /none/key.json was not found"
    assert str(refused.value) == f"{text}. Hint: {LOGIN}"
    monkeypatch.setenv(IMPERSONATION_VARIABLE, "a user")
    with pytest.raises(RegistryError, match="must be the address of a service account"):
        google_session()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RefreshError("it was\nrevoked."),
         f"no Google credentials for {BASE}: it was revoked. Hint: {LOGIN}"),
        (requests.ConnectionError("no\troute.."), f"cannot reach {BASE}: no route."),
        (requests.Timeout("x" * 300), f"cannot reach {BASE}: {'x' * 200}."),
    ],
)  # fmt: skip
def test_unreachable_registry_is_reported(error: Exception, message: str) -> None:
    def request(*_: object, **_more: object) -> requests.Response:
        raise error

    session = requests.Session()
    session.request = request  # type: ignore[method-assign]
    with pytest.raises(RegistryError) as refused:
        RemoteImage(BASE, PATH, session).digest_of("v1")
    assert str(refused.value) == message
