"""The client of a preflight: what it sends, what it makes of answers, and what it asks no more."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training_cli.preflight.context import ReadOnlyClient, question

OF = question("projects/p", "something")
URL = "https://compute.googleapis.com/compute/v1/projects/p/global/networks/n"
TEST = "https://cloudresourcemanager.googleapis.com/v3/projects/p:testIamPermissions"


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


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("url", [URL, f"{URL}?x=:testIamPermissions", TEST])
def test_nothing_that_could_change_something_is_sent(method: str, url: str) -> None:
    client, rest = asking({})
    if (method, url) == ("POST", TEST):
        assert client.send(method, url, OF) == {}
        return
    with pytest.raises(AssertionError, match=f"{method} /.* is not a read-only request"):
        client.send(method, url, OF)
    assert (rest.sent, client.calls) == ([], 0)
