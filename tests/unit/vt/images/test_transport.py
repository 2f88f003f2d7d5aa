"""Requests to one registry: what is asked again, followed, refused and told, and how."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
import requests
from google.auth.exceptions import RefreshError
from urllib3 import HTTPResponse

from tests.unit.vt.images.network import Network
from vertex_training.errors import RegistryError
from vertex_training_cli.images import transport
from vertex_training_cli.images.transport import Transport

BASE = "https://us-docker.pkg.dev"
URL, PATH = f"{BASE}/v2/acme/r/x/tags/list", "acme/r/x"
LOGIN = "gcloud auth application-default login"


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def sender(network: Network) -> Transport:
    return network.client(BASE, "a-token")._transport


def told(refused: pytest.ExceptionInfo[RegistryError]) -> tuple[str, str, int]:
    return refused.value.message, refused.value.hint, refused.value.status


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/v2/x?y=1", f"{BASE}/v2/x?y=1"),
        ("v2/x", f"{BASE}/v2/x"),
        (f"{BASE}/x", f"{BASE}/x"),
        ("//us-docker.pkg.dev/x", f"{BASE}/x"),
        ("http://us-docker.pkg.dev/x", None),
        (f"{BASE}:8443/x", None),
    ],
)
def test_an_address_of_an_answer_is_on_the_registry(
    sender: Transport, given: str, found: str | None
) -> None:
    if found is not None:
        assert sender.own(given, PATH) == found
        return
    with pytest.raises(RegistryError) as refused:
        sender.own(given, PATH)
    text = "acme/r/x: the registry names an address that is not its own."
    assert told(refused) == (text, "", 0)


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (RefreshError("it was\nrevoked."), f"no credentials for {BASE}: it was revoked.", LOGIN),
        (requests.ConnectionError("no\troute.."), f"{BASE} cannot be reached: no route.", ""),
        (requests.Timeout("x" * 300), f"{BASE} cannot be reached: {'x' * 200}.", ""),
    ],
)
def test_a_registry_that_cannot_be_asked_is_told(
    sender: Transport, error: Exception, message: str, hint: str
) -> None:
    def request(*_: object, **_more: object) -> requests.Response:
        raise error

    sender.session = requests.Session()
    sender.session.request = request  # type: ignore[method-assign]
    with pytest.raises(RegistryError) as refused:
        sender.send("GET", URL, PATH)
    assert told(refused) == (message, hint, 0)


def answer_of(size: int) -> requests.Response:
    answer = requests.Response()
    answer.raw = HTTPResponse(BytesIO(b"x" * size), preload_content=False)
    return answer


def test_an_answer_that_breaks_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_of(1)

    def broken(_: int) -> Any:
        yield b"x"
        raise requests.exceptions.ChunkedEncodingError("it\nended.")

    monkeypatch.setattr(answer, "iter_content", broken)
    with pytest.raises(RegistryError) as refused:
        transport.read(answer, PATH)
    assert told(refused)[0] == "acme/r/x: the answer broke off: it ended."
