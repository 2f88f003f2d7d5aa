"""Read-only requests to Google's services, or to those of the local cloud.

Only GET and the POST of a ``testIamPermissions`` are sent. A refused read results in an unknown
answer with the missing permission.
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
    """Interface of a check's context: it has a client."""

    @property
    def client(self) -> ReadOnlyClient:
        """The client that sends the requests."""
        ...


Context = TypeVar("Context", bound=Asking)
Parameters = ParamSpec("Parameters")
#: URL endings of the only methods that are sent by POST. These methods are read-only.
TEST_METHODS: Final = (":testIamPermissions", "/testIamPermissions")
#: Maximum of permissions in one ``testIamPermissions``:
#: https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
MOST_PERMISSIONS: Final = 100
#: Errors that an unexpected form of a document causes.
MALFORMED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class UnansweredError(Exception):
    """An error for a check that was not possible; ``answer`` is the check's unknown answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.answer)
        self.answer = answer


def answered(
    check: Callable[Concatenate[Context, Parameters], Iterator[Answer]],
) -> Callable[Concatenate[Context, Parameters], Iterator[Answer]]:
    """Decorate a check: if it is not possible, it yields an unknown answer instead of an error.

    A document with an unexpected form also results in an unknown answer.
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
            if (check_sent := context.client.last) is None:
                raise
            yield check_sent.unknown(f"unexpected form: {type(error).__name__}: {error}")

    return run


class ReadOnlyClient:
    """Sends read-only requests from any thread, and counts them."""

    def __init__(self, client: RestClient) -> None:
        self._client, self._lock, self._asked = client, threading.Lock(), threading.local()
        self._documents: dict[str, dict[str, Any] | None] = {}
        self.calls = 0

    @property
    def last(self) -> Answer | None:
        """The check of this thread's last request."""
        return getattr(self._asked, "question", None)

    def get(self, read: Read, of: Answer, *names: str) -> dict[str, Any] | None:
        """Return the document, read once, for the check ``of``; None if it does not exist.

        Raises:
            UnansweredError: the caller may not read it, or the service does not answer.
        """
        url, self._asked.question = read.url(*names), of
        if url not in self._documents:
            self._documents[url] = self.send("GET", url, of, read.permission)
        return self._documents[url]

    def items(self, read: Read, of: Answer, *names: str) -> list[dict[str, Any]]:
        """Return the complete list for the check ``of``, from all pages.

        Raises:
            UnansweredError: the caller may not list it, or the service does not answer.
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
        """Return which of ``permissions`` the caller has on a resource.

        ``url`` is the address of its ``testIamPermissions``, which requires no permission
        (https://docs.cloud.google.com/iam/docs/testing-permissions). The result is None if the
        resource does not exist.

        Raises:
            UnansweredError: the service does not answer.
        """
        names, held = sorted(permissions), set[str]()
        for start in range(0, len(names), MOST_PERMISSIONS):
            some = names[start : start + MOST_PERMISSIONS]
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
        """Send a read-only request; return None if the resource does not exist.

        Raises:
            UnansweredError: the caller lacks ``permission``, or the service does not answer.
        """
        path = urlsplit(url).path
        if method != "GET" and not (method == "POST" and path.endswith(TEST_METHODS)):
            raise AssertionError(f"a preflight only reads: {method} {path}")
        self._asked.question = of
        with self._lock:
            self.calls += 1
        try:
            return self._client.call(method, url, of.subject, **more)
        except CommandError as error:
            missing = permission if isinstance(error, ForbiddenReadError) else ""
            raise UnansweredError(of.unknown(str(error), missing)) from None
