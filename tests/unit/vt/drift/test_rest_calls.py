"""Each request for a list or an IAM policy, and what is said of an answer that is none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from google.auth.exceptions import DefaultCredentialsError

from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli.drift import rest
from vertex_training_cli.drift.policies import Membership
from vertex_training_cli.drift.policy_clients import GooglePolicies
from vertex_training_cli.drift.rest import RestClient
from vertex_training_cli.engine.stacks import StackRef

NONE: Any = object()


def answer(document: Any = NONE, status: int = 200, reason: str = "OK") -> Any:
    def read() -> Any:
        if document is NONE:
            raise ValueError
        return document

    return SimpleNamespace(status_code=status, reason=reason, ok=status < 400, json=read)


class Session:
    """Answers in turn; remembers the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.got: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, url: str, **options: Any) -> Any:
        assert options.pop("timeout") == 30
        self.got.append((method, url, options))
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


URL = "https://iam.googleapis.com/v1/x?a=b"


def test_a_document_is_read_at_google_or_at_the_local_cloud() -> None:
    session = Session(answer({"a": 1}), answer({"b": 2}), answer({}))
    assert RestClient(session).get(URL, "x") == {"a": 1}
    local = RestClient(session, "127.0.0.1:8001")
    assert local.get(URL, "x") == {"b": 2}
    assert local.get("https://iam.googleapis.com/v1/x", "x") == {}
    assert session.got == [
        ("GET", URL, {}),
        ("GET", "http://127.0.0.1:8001/v1/x?a=b", {}),
        ("GET", "http://127.0.0.1:8001/v1/x", {}),
    ]


REFUSED = {"error": {"message": "lacks x.get"}}


@pytest.mark.parametrize(
    ("found", "error", "text"),
    [
        (answer(REFUSED, 403, "Forbidden"), ForbiddenReadError,
         "the list cannot be read: 403 Forbidden: lacks x.get"),
        (answer(NONE, 403, "Forbidden"), ForbiddenReadError,
         "the list cannot be read: 403 Forbidden"),
        (answer(REFUSED, 400, "Bad Request"), CommandError,
         "the list cannot be read: 400 Bad Request: lacks x.get"),
        (answer({"error": "no"}, 500, "Server Error"), CommandError,
         "the list cannot be read: 500 Server Error"),
        (answer(), CommandError,
         "the list cannot be read: the answer is no document of an API."),
        (answer([]), CommandError,
         "the list cannot be read: the answer is no document of an API."),
        (requests.ConnectionError("gone"), CommandError, "the list cannot be reached: gone"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_told(found: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(CommandError) as failed:
        RestClient(Session(found)).get(URL, "the list")
    assert (type(failed.value), str(failed.value)) == (error, text)


def test_a_write_that_is_refused_says_so_and_a_conflict_is_no_error() -> None:
    client = RestClient(Session(answer(REFUSED, 400, "Bad Request"), answer({}, 412)))
    with pytest.raises(CommandError, match="the policy cannot be written: 400"):
        client.call("PUT", URL, "the policy", conflict=(412,))
    assert client.call("PUT", URL, "the policy", conflict=(412,)) is None
    assert RestClient(Session(answer(REFUSED, 404))).get(URL, "x") is None


def test_who_listens_gets_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(rest, "LISTENERS", [lambda *call: heard.append(call)])
    local = RestClient(Session(answer({"a": 1}), answer(NONE, 404)), "127.0.0.1:1")
    local.get(URL, "x")
    local.get(URL, "x")
    assert heard == [("GET", URL, 200, {"a": 1}), ("GET", URL, 404, None)]


LIST = "https://compute.googleapis.com/l"


def test_a_list_is_read_page_by_page() -> None:
    first = {"items": [{"name": "a"}], "nextPageToken": "t/1"}
    places = {"items": {"r1": {"routes": [{"name": "b"}]}, "r2": {"warning": {}}}}
    session = Session(answer(first), answer({**places, "nextPageToken": "2"}), answer({}))
    found = list(RestClient(session).items(LIST, "routes", "routes"))
    assert found == [{"name": "a"}, {"name": "b"}]
    assert [url for _, url, _ in session.got] == [
        LIST, f"{LIST}?pageToken=t%2F1", f"{LIST}?pageToken=2",
    ]  # fmt: skip
    session = Session(answer({"nextPageToken": "1"}), answer({}))
    list(rest.pages(f"{LIST}?x=y", "l", lambda url: RestClient(session).get(url, "l")))
    assert session.got[1][1] == f"{LIST}?x=y&pageToken=1"


def test_a_list_that_is_not_there_is_empty_but_no_page_of_it_is_left_out() -> None:
    assert list(rest.pages(LIST, "l", lambda _: None)) == [{}]
    documents: list[Any] = [{"nextPageToken": "1"}, None]
    with pytest.raises(CommandError, match=r"^l cannot be read: a page of its list is not there"):
        list(rest.pages(LIST, "l", lambda _: documents.pop(0)))


def test_a_list_that_turns_in_circles_or_never_ends_is_told() -> None:
    with pytest.raises(CommandError, match="l cannot be read: its list has no end"):
        list(rest.pages(LIST, "l", lambda _: {"nextPageToken": "same"}))
    count = 0

    def further(_: str) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"nextPageToken": str(count)}

    with pytest.raises(CommandError, match="its list has no end"):
        list(rest.pages(LIST, "l", further))
    assert count == 1000


PLACE = "projects/p/locations/r"


@pytest.mark.parametrize(
    ("policy", "read", "written"),
    [
        ("b/data", ("GET", "https://storage.googleapis.com/storage/v1/b/data/iam"
                    "?optionsRequestedPolicyVersion=3", {}),
         ("PUT", "https://storage.googleapis.com/storage/v1/b/data/iam")),
        ("projects/p", ("POST", "https://cloudresourcemanager.googleapis.com/v3/projects/p"
                        ":getIamPolicy", {"json": {"options": {"requestedPolicyVersion": 3}}}),
         ("POST", "https://cloudresourcemanager.googleapis.com/v3/projects/p:setIamPolicy")),
        ("projects/p/serviceAccounts/a@p.iam.gserviceaccount.com",
         ("POST", "https://iam.googleapis.com/v1/projects/p/serviceAccounts/"
          "a@p.iam.gserviceaccount.com:getIamPolicy?options.requestedPolicyVersion=3", {}),
         ("POST", "https://iam.googleapis.com/v1/projects/p/serviceAccounts/"
          "a@p.iam.gserviceaccount.com:setIamPolicy")),
        ("projects/p/regions/r/subnetworks/s",
         ("GET", "https://compute.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"
          "/getIamPolicy?optionsRequestedPolicyVersion=3", {}),
         ("POST", "https://compute.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"
          "/setIamPolicy")),
        ("projects/p/secrets/s",
         ("GET", "https://secretmanager.googleapis.com/v1/projects/p/secrets/s:getIamPolicy"
          "?options.requestedPolicyVersion=3", {}),
         ("POST", "https://secretmanager.googleapis.com/v1/projects/p/secrets/s:setIamPolicy")),
    ],
)  # fmt: skip
def test_a_policy_is_read_and_written_as_its_service_wants_it(
    policy: str, read: tuple[str, str, dict[str, Any]], written: tuple[str, str]
) -> None:
    document = {
        "etag": "e",
        "version": 1,
        "bindings": [
            {"role": "r", "members": ["user:a", "user:b"]},
            {"role": "r", "members": ["user:a"], "condition": {"expression": "x"}},
            {"role": "q", "members": ["user:a"]},
        ],
    }
    session = Session(answer(document), answer(document), answer({}))
    client = GooglePolicies(RestClient(session))
    assert client.read(policy) == [
        Membership(policy, "r", "user:a"), Membership(policy, "r", "user:b"),
        Membership(policy, "r", "user:a", "x"), Membership(policy, "q", "user:a"),
    ]  # fmt: skip
    client.remove([Membership(policy, "r", "user:a"), Membership(policy, "q", "user:a")])
    left = {
        "etag": "e",
        "version": 3,
        "bindings": [
            {"role": "r", "members": ["user:b"]},
            {"role": "r", "members": ["user:a"], "condition": {"expression": "x"}},
        ],
    }
    body = left if policy.startswith("b/") else {"policy": left}
    assert session.got == [read, read, (*written, {"json": body})]


def test_a_policy_that_somebody_else_writes_meanwhile_is_read_anew() -> None:
    policy = {"bindings": [{"role": "r", "members": ["user:a"]}]}
    member = Membership("b/x", "r", "user:a")
    session = Session(answer(policy), answer({}, 412), answer(policy), answer({}))
    GooglePolicies(RestClient(session)).remove([member])
    assert [method for method, *_ in session.got] == ["GET", "PUT"] * 2
    session = Session(*(answer(policy), answer({}, 409)) * 5)
    with pytest.raises(CommandError, match="its policy changes all the time; nothing removed"):
        GooglePolicies(RestClient(session)).remove([member])
    assert session.answers == []
    gone = Session(answer(REFUSED, 404))
    GooglePolicies(RestClient(gone)).remove([member])
    assert gone.answers == []


def test_a_policy_of_no_known_service_is_told() -> None:
    with pytest.raises(CommandError, match=r"^x/y: no service is known that has its IAM policy"):
        GooglePolicies(RestClient(Session())).read("x/y")
    with pytest.raises(CommandError) as refused:
        GooglePolicies(RestClient(Session(answer(REFUSED, 403, "Forbidden")))).read("b/x")
    assert str(refused.value) == ("b/x: its IAM policy cannot be read: 403 Forbidden: lacks x.get")


def test_a_stack_of_the_local_cloud_is_read_there_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected: list[StackRef] = []
    monkeypatch.setattr(StackRef, "connect_clients", lambda ref: connected.append(ref))
    monkeypatch.setattr(rest, "local_address", lambda project: f"{project}:1")
    ref = StackRef(Path("/srv"), "p", "local", "local-ml", "us-central1")
    client = rest.connect(ref)
    assert (client._local, client._session.trust_env, connected) == ("local-ml:1", False, [ref])


@pytest.mark.parametrize("impersonated", ["robot", None])
def test_a_stack_of_google_is_read_with_the_callers_credentials(
    monkeypatch: pytest.MonkeyPatch, impersonated: str | None
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(rest, "impersonated_credentials", lambda: impersonated)
    monkeypatch.setattr(
        rest.google.auth, "default", lambda *, scopes: asked.append(scopes) or ("own", "project")
    )
    ref = StackRef(Path("/srv"), "p", "dev", "acme-ml", "us-central1")
    client = rest.connect(ref)
    assert (client._local, client._session.credentials) == (None, impersonated or "own")
    scope = "https://www.googleapis.com/auth/cloud-platform"
    assert asked == ([] if impersonated else [[scope]])

    def refuse(**_: Any) -> Any:
        raise DefaultCredentialsError("none here")

    monkeypatch.setattr(rest, "impersonated_credentials", lambda: None)
    monkeypatch.setattr(rest.google.auth, "default", refuse)
    with pytest.raises(CommandError) as refused:
        rest.connect(ref)
    assert str(refused.value) == "no Google Cloud credentials: none here"
