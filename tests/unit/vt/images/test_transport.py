"""Requests to one registry: what is asked again, followed, refused and told, and how."""

from __future__ import annotations

import json
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
ELSEWHERE = "https://elsewhere.example.com"
LOGIN = "gcloud auth application-default login"


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def sender(network: Network) -> Transport:
    return network.client(BASE, "a-token")._transport


def told(refused: pytest.ExceptionInfo[RegistryError]) -> tuple[str, str, int]:
    return refused.value.message, refused.value.hint, refused.value.status


def test_a_request_has_credentials_and_a_bound_of_time(network: Network, sender: Transport) -> None:
    network.answers[URL] = (200, {}, b"yes")
    assert sender.send("PUT", URL, PATH, data=b"body", headers={"X": "1"}).content == b"yes"
    assert network.asked == [("PUT", URL, "Bearer a-token")]
    [(headers, body, options)] = network.sent
    assert (headers["X"], body) == ("1", b"body")
    assert (options["timeout"], options["stream"]) == ((10, 60), False)
    sender.send("GET", URL, PATH, timeout=1, stream=True)
    assert (network.sent[1][2]["timeout"], network.sent[1][2]["stream"]) == (1, True)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize(("method", "times"), [("GET", 3), ("HEAD", 3), ("POST", 1), ("PUT", 1)])
def test_a_question_is_asked_again_where_the_registry_is_busy(
    network: Network, sender: Transport, status: int, method: str, times: int
) -> None:
    network.answers[URL] = (status, {}, b"")
    with pytest.raises(RegistryError):
        sender.send(method, URL, PATH)
    assert len(network.asked) == times
    assert network.waits == [0.5, 2.0][: times - 1]


@pytest.mark.parametrize("status", [400, 403, 404, 409, 501, 507])
def test_what_is_refused_is_asked_once(network: Network, sender: Transport, status: int) -> None:
    network.answers[URL] = (status, {}, b"")
    with pytest.raises(RegistryError):
        sender.send("GET", URL, PATH)
    assert (len(network.asked), network.waits) == (1, [])
    assert sender.send("GET", URL, PATH, (status,)).status_code == status


READER = "it takes roles/artifactregistry.reader on the repository"
WRITER = "it takes roles/artifactregistry.writer on the repository"


@pytest.mark.parametrize(
    ("status", "method", "body", "text", "hint"),
    [
        (401, "GET", {"errors": [{"message": "who\n are you."}]}, " (who are you)", LOGIN),
        (403, "GET", {"errors": [{"message": "no"}, {"message": "never"}]}, " (no; never)", READER),
        (403, "HEAD", None, " (Forbidden)", READER),
        (403, "POST", {"errors": {}}, "", WRITER),
        (403, "PUT", {"errors": 1}, " (Forbidden)", WRITER),
        (403, "PATCH", {"errors": ["x"]}, " (Forbidden)", WRITER),
        (404, "GET", {"errors": [{}]}, "",
         "the stack's `up` makes the repository: run it before the first build"),
        (429, "PUT", {"error": 1}, " (Forbidden)", "try again in a minute"),
        (507, "PUT", [], " (Forbidden)", "the registry's disk is full"),
        (409, "PUT", None, "", ""),
        (400, "PUT", {"errors": [{"message": "x" * 201}]}, f" ({'x' * 200})", ""),
    ],
)  # fmt: skip
def test_a_refusal_names_what_was_asked_and_what_is_missing(
    network: Network, sender: Transport, status: int, method: str, body: Any, text: str, hint: str
) -> None:
    content = b"<html>" if body is None else json.dumps(body).encode()

    def request(method: str, url: str, **_: object) -> requests.Response:
        network.answers[URL] = (status, {}, content)
        answer = Network.send(network, requests.Request(method, url).prepare())
        answer.reason = None if status == 409 else "Forbidden"
        return answer

    sender.session = requests.Session()
    sender.session.request = request  # type: ignore[method-assign,assignment]
    with pytest.raises(RegistryError) as refused:
        sender.send(method, URL, PATH)
    message = f"acme/r/x: the registry answered {status} to {method}{text}."
    assert told(refused) == (message, hint, status)


def test_a_redirect_is_followed_for_content_alone(network: Network, sender: Transport) -> None:
    for status in (301, 302, 303, 307, 308):
        network.answers[URL] = (status, {"Location": f"{ELSEWHERE}/x"}, b"")
        with pytest.raises(RegistryError) as refused:
            sender.send("PUT", URL, PATH, (status,))
        text = "acme/r/x: the registry sends PUT to another address."
        assert told(refused) == (text, "", 0)
    network.answers[f"{ELSEWHERE}/x"] = (302, {"Location": "y"}, b"")
    network.answers[f"{ELSEWHERE}/y"] = (200, {}, b"content")
    network.asked.clear()
    network.sent.clear()
    answer = sender.content(URL, PATH, headers={"X": "1"})
    assert answer.content == b"content"
    assert network.asked == [
        ("GET", URL, "Bearer a-token"),
        ("GET", f"{ELSEWHERE}/x", ""),
        ("GET", f"{ELSEWHERE}/y", ""),
    ]
    assert [headers.get("X") for headers, _, _ in network.sent] == ["1", None, None]
    assert all(options["stream"] for _, _, options in network.sent)
    network.answers[f"{ELSEWHERE}/y"] = (404, {}, b"")
    assert sender.content(URL, PATH).status_code == 404
    network.answers[f"{ELSEWHERE}/y"] = (403, {}, b"")
    with pytest.raises(RegistryError, match="acme/r/x: the registry answered 403 to GET"):
        sender.content(URL, PATH)


@pytest.mark.parametrize(("steps", "follows"), [(2, True), (3, False)])
def test_two_redirects_are_followed(
    network: Network, sender: Transport, steps: int, follows: bool
) -> None:
    for step in range(steps):
        here = f"{ELSEWHERE}/{step}" if step else URL
        network.answers[here] = (302, {"Location": f"{ELSEWHERE}/{step + 1}"}, b"")
    network.answers[f"{ELSEWHERE}/{steps}"] = (200, {}, b"content")
    if follows:
        assert sender.content(URL, PATH).content == b"content"
        return
    with pytest.raises(RegistryError) as refused:
        sender.content(URL, PATH)
    assert told(refused)[0] == "acme/r/x: the registry sends GET to another address."


@pytest.mark.parametrize(
    ("status", "exists"), [(200, True), (302, True), (307, True), (404, False), (403, None)]
)
def test_what_is_there_or_kept_elsewhere_exists(
    network: Network, sender: Transport, status: int, exists: bool | None
) -> None:
    network.answers[URL] = (status, {"Location": f"{ELSEWHERE}/x"}, b"")
    if exists is None:
        with pytest.raises(RegistryError, match="answered 403 to HEAD"):
            sender.exists(URL, PATH)
    else:
        assert sender.exists(URL, PATH) is exists
    assert [(method, url) for method, url, _ in network.asked] == [("HEAD", URL)]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/v2/x?y=1", f"{BASE}/v2/x?y=1"),
        ("v2/x", f"{BASE}/v2/x"),
        (f"{BASE}/x", f"{BASE}/x"),
        ("//us-docker.pkg.dev/x", f"{BASE}/x"),
        ("http://us-docker.pkg.dev/x", None),
        (f"{BASE}:8443/x", None),
        ("//elsewhere.example.com/x", None),
        (f"{ELSEWHERE}/x", None),
        ("https://us-docker.pkg.dev@elsewhere.example.com/x", None),
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


def test_a_session_without_credentials_sends_none_of_a_netrc_either(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("requests.sessions.get_netrc_auth", lambda _: ("user", "word"))
    for session, sends in ((requests.Session(), True), (transport.anonymous_session(), False)):
        session.mount("https://", network)
        session.get(URL)
        assert bool(network.asked[-1][2]) is sends


def answer_of(size: int) -> requests.Response:
    answer = requests.Response()
    answer.raw = HTTPResponse(BytesIO(b"x" * size), preload_content=False)
    return answer


def test_a_document_has_four_mebibytes_at_most() -> None:
    most = 4 * 1024 * 1024
    assert transport.read(answer_of(most), PATH) == b"x" * most
    with pytest.raises(RegistryError) as refused:
        transport.read(answer_of(most + 1), PATH)
    assert told(refused)[0] == "acme/r/x: a document of more than 4,194,304 bytes."


def test_an_answer_that_breaks_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = answer_of(1)

    def broken(_: int) -> Any:
        yield b"x"
        raise requests.exceptions.ChunkedEncodingError("it\nended.")

    monkeypatch.setattr(answer, "iter_content", broken)
    with pytest.raises(RegistryError) as refused:
        transport.read(answer, PATH)
    assert told(refused)[0] == "acme/r/x: the answer broke off: it ended."
