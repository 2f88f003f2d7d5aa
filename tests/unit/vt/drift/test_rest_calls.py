"""Each request for a list or an IAM policy, and what is said of an answer that is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import requests

from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli import rest
from vertex_training_cli.rest import RestClient

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


REFUSED = {"error": {"message": "lacks x.get"}}


@pytest.mark.parametrize(
    ("found", "error", "text"),
    [
        (answer(REFUSED, 403, "Forbidden"), ForbiddenReadError,
         "the list cannot be read: 403 Forbidden: lacks x.get"),
        (answer(NONE, 403, "Forbidden"), ForbiddenReadError,
         "the list cannot be read: 403 Forbidden"),
        (answer([]), CommandError,
         "the list cannot be read: the answer is not a JSON object."),
        (requests.ConnectionError("gone"), CommandError, "cannot reach the list: gone"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_told(found: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(CommandError) as failed:
        RestClient(Session(found)).call("GET", URL, "the list")
    assert (type(failed.value), str(failed.value)) == (error, text)


LIST = "https://compute.googleapis.com/l"


def test_a_list_that_is_not_there_is_empty_but_no_page_of_it_is_left_out() -> None:
    assert list(rest.pages(LIST, "l", lambda _: None)) == [{}]
    documents: list[Any] = [{"nextPageToken": "1"}, None]
    with pytest.raises(CommandError, match=r"^l cannot be read: a page of the list does not exist"):
        list(rest.pages(LIST, "l", lambda _: documents.pop(0)))


def test_a_list_that_turns_in_circles_or_never_ends_is_told() -> None:
    with pytest.raises(CommandError, match="l cannot be read: the list does not end"):
        list(rest.pages(LIST, "l", lambda _: {"nextPageToken": "same"}))
    count = 0

    def further(_: str) -> dict[str, Any]:
        nonlocal count
        count += 1
        return {"nextPageToken": str(count)}

    with pytest.raises(CommandError, match="the list does not end"):
        list(rest.pages(LIST, "l", further))
    assert count == 1000
