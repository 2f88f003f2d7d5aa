"""Reads of Google's services, or of the local cloud's, that change nothing.

Only GET can be sent, and the POST of a ``testIamPermissions``. What may not be read is an answer,
too: an unknown one, with the permission that was missing.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from vertex_training.errors import CommandError, ForbiddenReadError
from vertex_training_cli.drift.rest import RestClient, pages
from vertex_training_cli.preflight.answers import Answer

#: The only methods that are sent by POST: they ask, and change nothing.
TEST_METHODS: Final = (":testIamPermissions", "/testIamPermissions")
#: Permissions that one ``testIamPermissions`` takes:
#: https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/testIamPermissions
MOST_PERMISSIONS: Final = 100


class ReadOnlyClient:
    """Asks, in any thread, and counts what it asked."""

    def __init__(self, client: RestClient) -> None:
        self._client, self._lock = client, threading.Lock()
        self._calls = [0]
        self._unreadable: dict[str, str] = {}
        self._last = ""

    @property
    def calls(self) -> int:
        """How often it asked, also for its ``questions``."""
        return self._calls[0]

    def questions(self) -> ReadOnlyClient:
        """The same client for one part, which asks one question at a time."""
        made = copy.copy(self)
        made._unreadable, made._last = {}, ""
        return made

    def give_up(self, reason: str) -> bool:
        """Ask the last question no more: its answer is unknown, for that reason.

        False if nothing was asked since.
        """
        given_up, self._last = self._last, ""
        if given_up:
            self._unreadable[given_up] = reason
        return bool(given_up)

    def get(self, url: str, of: Answer, permission: str) -> dict[str, Any] | Answer | None:
        """The document at ``url``; None if it is not there.

        An unknown answer to the question ``of`` if the caller lacks ``permission``, or nobody
        answers.
        """
        return self._ask("GET", url, of, permission)

    def items(
        self, url: str, of: Answer, permission: str, collection: str, within: str = ""
    ) -> list[dict[str, Any]] | Answer:
        """All of a list, page by page, whose items are in the field ``collection``; never a part.

        An aggregated list has them by place: there they are in the field ``within``.
        """
        found = list[dict[str, Any]]()
        if url in self._unreadable:
            return of.unknown(self._unreadable[url])
        self._last = url
        try:
            for document in pages(url, of.subject, lambda page: self._call("GET", page, of)):
                items = document.get(collection, ())
                if within:
                    items = [each for p in dict(items).values() for each in p.get(within, ())]
                found += items
        except CommandError as error:
            return _unknown(of, error, permission)
        return found

    def held(self, url: str, permissions: Iterable[str], of: Answer) -> set[str] | Answer | None:
        """Those of ``permissions`` that the caller holds on the resource at ``url``, which is the
        address of its ``testIamPermissions``; None if the resource is not there.

        No permission is asked for that (https://docs.cloud.google.com/iam/docs/testing-permissions).
        """
        wanted, held = sorted(permissions), set[str]()
        for start in range(0, len(wanted), MOST_PERMISSIONS):
            some = wanted[start : start + MOST_PERMISSIONS]
            if url.endswith(TEST_METHODS):
                answer = self._ask("POST", url, of, "", json={"permissions": some})
            else:  # Cloud Storage has a GET for it
                query = urlencode([("permissions", each) for each in some])
                answer = self._ask("GET", f"{url}?{query}", of, "")
            if not isinstance(answer, dict):
                return answer
            held |= set(answer.get("permissions") or ())
        return held

    def _ask(
        self, method: str, url: str, of: Answer, permission: str, **more: Any
    ) -> dict[str, Any] | Answer | None:
        if url in self._unreadable:
            return of.unknown(self._unreadable[url])
        self._last = url
        try:
            return self._call(method, url, of, **more)
        except CommandError as error:
            return _unknown(of, error, permission)

    def _call(self, method: str, url: str, of: Answer, **more: Any) -> dict[str, Any] | None:
        path = urlsplit(url).path
        if method != "GET" and not (method == "POST" and path.endswith(TEST_METHODS)):
            raise AssertionError(f"a preflight changes nothing: {method} {path}")
        with self._lock:
            self._calls[0] += 1
        return self._client.call(method, url, of.subject, **more)


def _unknown(of: Answer, error: CommandError, permission: str) -> Answer:
    return of.unknown(str(error), permission if isinstance(error, ForbiddenReadError) else "")
