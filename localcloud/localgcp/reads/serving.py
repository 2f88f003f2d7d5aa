"""Finds the method that a request calls, and applies the faults on it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from localgcp import resources
from localgcp.apis import discovery
from localgcp.apis.discovery import DescribedMethod
from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Fault, Kind
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import Store
from localgcp.reads import access, compute, limits, named, projects
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.resources import RestCall

#: The first that a request fits answers it.
METHODS: Final = (
    *access.METHODS,
    *compute.METHODS,
    *limits.METHODS,
    *projects.METHODS,
    *named.METHODS,
)


class Reads:
    """Serves the methods of ``METHODS``."""

    def __init__(self, store: Store, faults: FaultTable, stopping: threading.Event) -> None:
        self._store, self._faults, self._stopping = store, faults, stopping

    def answer(self, verb: str, target: str, body: bytes) -> bytes | None:
        """The answer as JSON; None if no method is called so. Raises RefusedRequestError.

        A method is one of Google's: what its description does not have is refused, and left out.
        """
        path, _, query = target.partition("?")
        called = discovery.find(verb, path)
        if called is None:
            return None
        called.check_query(query)
        document = _document(body)
        called.check_body(document)
        return json.dumps(called.fit(self._found(called, path, query, document))).encode()

    def _found(
        self, called: DescribedMethod, path: str, query: str, document: Mapping[str, Any]
    ) -> dict[str, Any]:
        for read in METHODS:
            found = read.path.fullmatch(path) if read.verb == called.verb else None
            if found:
                request = Request(self._store, found, document, parse_qs(query))
                return self._answer(read, request, unquote(path))
        call = RestCall(called, *called.parts(path), document)
        return resources.METHODS[called.id](self._store, call)

    def _answer(self, read: ReadMethod, request: Request, path: str) -> dict[str, Any]:
        """What the method answers, with what faults make of it. Raises RefusedRequestError."""
        faults = self._taken(read, [path, *request.permissions])
        denied = tuple(fault.match for fault in faults if fault.kind is Kind.DENY)
        if denied and read.permission:
            raise refused(read.permission, path)
        patches = [fault.patch for fault in faults if fault.kind is Kind.PATCH]
        try:
            answer = read.answer(request.with_denied(denied))
        except RefusedRequestError as error:
            if error.status != 404 or not patches:
                raise
            answer = {}
        for patch in patches:
            answer = merged(answer, patch)
        return answer

    def _taken(self, read: ReadMethod, subjects: list[str]) -> list[Fault]:
        """The faults that happen to this call. Raises RefusedRequestError for an error."""
        taken = self._faults.count_call(
            read.service, read.method, lambda _: subjects, lambda _: True
        )
        for entry in taken:
            if entry.fault.kind is Kind.DELAY:
                self._stopping.wait(entry.fault.seconds)
            if entry.fault.kind is Kind.ERROR:
                text = f"fault {entry.id} of the local cloud"
                raise RefusedRequestError(int(entry.fault.code), text)
        return [entry.fault for entry in taken]


def merged(value: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """``value`` with a merge patch (https://www.rfc-editor.org/rfc/rfc7396) applied.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    found = dict(value) if isinstance(value, dict) else {}
    for name, new in patch.items():
        if new is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), new) if isinstance(new, dict) else new
    return found


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RefusedRequestError(400, "the body is no JSON object.")
    return found
