"""The client of a preflight: what it sends, what it makes of answers, and what it asks no more."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import ReadOnlyClient

OF = question("projects/p", "something")
URL = "https://compute.googleapis.com/compute/v1/projects/p/global/networks/n"
TEST = "https://cloudresourcemanager.googleapis.com/v3/projects/p:testIamPermissions"
STORAGE = "https://storage.googleapis.com/storage/v1/b/x/iam/testPermissions"
MANY = [f"a.b.{number:03}" for number in range(201)]


class Rest:
    """Gives the next of these answers, or raises it."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.sent = list(answers), list[Any]()

    def call(self, method: str, url: str, what: str, **more: Any) -> Any:
        self.sent.append((method, url, what, more))
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


def asking(*answers: Any) -> tuple[ReadOnlyClient, Rest]:
    rest: Any = Rest(*answers)
    return ReadOnlyClient(rest), rest


FORBIDDEN = ForbiddenReadError("it cannot be read: 403")
SILENT = CommandError("it cannot be reached")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"name": "n"}, {"name": "n"}),
        (None, None),
        (FORBIDDEN, OF.unknown("it cannot be read: 403", "x.get")),
        (SILENT, OF.unknown("it cannot be reached")),
    ],
)
def test_a_document_is_read_or_not_known(answer: Any, found: Any) -> None:
    client, rest = asking(answer)
    assert client.get(URL, OF, "x.get") == found
    assert rest.sent == [("GET", URL, "projects/p", {})]
    assert client.calls == 1


def test_permissions_are_asked_for_a_hundred_at_a_time() -> None:
    answers = [{"permissions": MANY[:99]}, {}, {"permissions": [MANY[200]]}]
    client, rest = asking(*answers)
    assert client.held(TEST, reversed(MANY), OF) == {*MANY[:99], MANY[200]}
    assert rest.sent == [
        ("POST", TEST, "projects/p", {"json": {"permissions": some}})
        for some in (MANY[:100], MANY[100:200], MANY[200:])
    ]
    assert client.calls == 3


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_cloud_storage_is_asked_by_a_query(method: str) -> None:
    slash = URL + "/testIamPermissions"  # as Compute Engine has it
    url = slash if method == "POST" else STORAGE
    client, rest = asking({"permissions": ["a.b.c"]})
    assert client.held(url, ["d.e f", "a.b.c"], OF) == {"a.b.c"}
    [(sent, address, _, more)] = rest.sent
    assert sent == method
    if method == "POST":
        assert (address, more) == (url, {"json": {"permissions": ["a.b.c", "d.e f"]}})
        return
    base, _, query = address.partition("?")
    assert (base, more) == (url, {})
    assert parse_qsl(query) == [("permissions", "a.b.c"), ("permissions", "d.e f")]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, None),
        (FORBIDDEN, OF.unknown("it cannot be read: 403")),
        (SILENT, OF.unknown("it cannot be reached")),
    ],
)
def test_one_part_that_is_not_answered_is_the_answer(answer: Any, found: Any) -> None:
    client, rest = asking({"permissions": MANY[:100]}, answer)
    assert client.held(TEST, MANY, OF) == found
    assert len(rest.sent) == 2
    assert client.held(TEST, (), OF) == set()


def test_a_list_is_read_page_by_page() -> None:
    pages = [{"items": [1, 2], "nextPageToken": "t"}, {"items": [3]}]
    client, rest = asking(*pages)
    assert client.items(URL, OF, "x.list", "items") == [1, 2, 3]
    assert [url for _, url, _, _ in rest.sent] == [URL, f"{URL}?pageToken=t"]
    assert client.calls == 2
    by_place = {"items": {"regions/a": {"nets": [1]}, "regions/b": {}, "global": {"nets": [2]}}}
    assert asking(by_place)[0].items(URL, OF, "x.list", "items", "nets") == [1, 2]
    assert asking({})[0].items(URL, OF, "x.list", "items") == []


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (FORBIDDEN, OF.unknown("it cannot be read: 403", "x.list")),
        (SILENT, OF.unknown("it cannot be reached")),
    ],
)
def test_of_a_list_that_breaks_off_no_part_is_known(second: Any, found: Answer) -> None:
    client, _ = asking({"items": [1], "nextPageToken": "t"}, second)
    assert client.items(URL, OF, "x.list", "items") == found


def test_what_was_given_up_is_asked_no_more_by_that_part() -> None:
    client, rest = asking({"name": "n"}, {}, {}, {"items": []})
    part, other = client.questions(), client.questions()
    assert client.give_up("odd") is False
    assert part.give_up("odd") is False  # nothing was asked
    part.get(URL, OF, "x.get")
    assert part.give_up("odd") is True
    assert part.give_up("odd") is False
    unknown = OF.unknown("odd")
    assert part.get(URL, OF, "x.get") == part.items(URL, OF, "x.list", "items") == unknown
    assert len(rest.sent) == 1
    assert other.get(URL, OF, "x.get") == {}
    assert (part.calls, other.calls, client.calls) == (2, 2, 2)
    part.held(TEST, ["a.b.c"], OF)
    assert part.give_up("odd, too") is True
    assert part.held(TEST, ["a.b.c"], OF) == OF.unknown("odd, too")
    part.items(f"{URL}s", OF, "x.list", "items")
    assert part.give_up("again") is True
    assert part.items(f"{URL}s", OF, "x.list", "items") == OF.unknown("again")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("url", [URL, f"{URL}?x=:testIamPermissions", TEST])
def test_nothing_that_could_change_something_is_sent(method: str, url: str) -> None:
    client, rest = asking({})
    if (method, url) == ("POST", TEST):
        assert client._ask(method, url, OF, "") == {}
        return
    with pytest.raises(AssertionError, match=f"a preflight changes nothing: {method} /"):
        client._ask(method, url, OF, "")
    assert (rest.sent, client.calls) == ([], 0)
