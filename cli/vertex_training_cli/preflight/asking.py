"""Reads of Google's services, or of the local cloud's, that change nothing.

Only GET can be sent, and the POST of a ``testIamPermissions``. What may not be read is an answer,
too: an unknown one, with the permission that was missing.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli import rest
from vertex_training_cli.preflight.answers import Answer
from vertex_training_cli.rest import Read, RestClient


class Asking(Protocol):
    """The context of a check."""

    @property
    def client(self) -> ReadOnlyClient:
        """The client that sends the questions."""
        ...


Context = TypeVar("Context", bound=Asking)
Parameters = ParamSpec("Parameters")
#: The only methods that are sent by POST: they ask, and change nothing.
TEST_METHODS: Final = (":testIamPermissions", "/testIamPermissions")
#: Permissions that one ``testIamPermissions`` takes:
#: https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
MOST_PERMISSIONS: Final = 100
#: What a document raises that has another form than its service's reference says.
MALFORMED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class UnansweredError(Exception):
    """A question could not be asked; ``answer`` is its unknown answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.answer)
        self.answer = answer


def answered(
    check: Callable[Concatenate[Context, Parameters], Iterator[Answer]],
) -> Callable[Concatenate[Context, Parameters], Iterator[Answer]]:
    """Return the check with an unknown answer at its end if its question could not be asked.

    The same if the document that answers has another form than expected.
    """

    @functools.wraps(check)
    def run(
        context: Context, *args: Parameters.args, **named: Parameters.kwargs
    ) -> Iterator[Answer]:
        try:
            yield from check(context, *args, **named)
        except UnansweredError as error:
            yield error.answer
        except MALFORMED as error:
            if (asked := context.client.last) is None:
                raise
            yield asked.unknown(f"could not be read: {type(error).__name__}: {error}")

    return run


class ReadOnlyClient:
    """Asks, in any thread, and counts what it asked."""

    def __init__(self, client: RestClient) -> None:
        self._client, self._lock, self._asked = client, threading.Lock(), threading.local()
        self._documents: dict[str, dict[str, Any] | None] = {}
        self.calls = 0

    @property
    def last(self) -> Answer | None:
        """The question that this thread asked last."""
        return getattr(self._asked, "question", None)

    def get(self, read: Read, of: Answer, *names: str) -> dict[str, Any] | None:
        """Return the document that answers the question ``of``, read once; None if it is not there.

        Raises:
            UnansweredError: the caller may not read it, or nobody answers.
        """
        url, self._asked.question = read.url(*names), of
        if url not in self._documents:
            self._documents[url] = self.send("GET", url, of, read.permission)
        return self._documents[url]

    def items(self, read: Read, of: Answer, *names: str) -> list[dict[str, Any]]:
        """Return the complete list that answers the question ``of``, from all pages.

        Raises:
            UnansweredError: the caller may not list it, or nobody answers.
        """
        url = read.url(*names)
        try:
            return list(
                rest.items(
                    read, url, of.subject, lambda page: self.send("GET", page, of, read.permission)
                )
            )
        except CommandError as error:
            raise UnansweredError(of.unknown(str(error))) from None

    def held(self, url: str, permissions: Iterable[str], of: Answer) -> set[str] | None:
        """Those of ``permissions`` that the caller holds on the resource at ``url``, which is the
        address of its ``testIamPermissions``; None if the resource is not there.

        No permission is asked for that (https://docs.cloud.google.com/iam/docs/testing-permissions).

        Raises:
            UnansweredError: nobody answers.
        """
        wanted, held = sorted(permissions), set[str]()
        for start in range(0, len(wanted), MOST_PERMISSIONS):
            some = wanted[start : start + MOST_PERMISSIONS]
            if url.endswith(TEST_METHODS):
                answer = self.send("POST", url, of, json={"permissions": some})
            else:  # Cloud Storage has a GET for it
                query = urlencode([("permissions", permission) for permission in some])
                answer = self.send("GET", f"{url}?{query}", of)
            if answer is None:
                return None
            held |= set(answer.get("permissions") or ())
        return held

    def send(
        self, method: str, url: str, of: Answer, permission: str = "", **more: Any
    ) -> dict[str, Any] | None:
        """Send a request that changes nothing; None if there is no such thing.

        Raises:
            UnansweredError: the caller lacks ``permission``, or nobody answers.
        """
        path = urlsplit(url).path
        if method != "GET" and not (method == "POST" and path.endswith(TEST_METHODS)):
            raise AssertionError(f"a preflight changes nothing: {method} {path}")
        self._asked.question = of
        with self._lock:
            self.calls += 1
        try:
            return self._client.call(method, url, of.subject, **more)
        except CommandError as error:
            missing = permission if isinstance(error, ForbiddenReadError) else ""
            raise UnansweredError(of.unknown(str(error), missing)) from None
