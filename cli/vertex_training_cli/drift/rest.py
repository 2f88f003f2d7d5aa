"""Calls of Google's REST methods with the caller's credentials, or of the local cloud's.

The local cloud serves the same methods at the same paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import google.auth
from google.auth.exceptions import GoogleAuthError

from vertex_training.customjob.google.impersonation import SCOPE, impersonated_credentials
from vertex_training.customjob.google.job_service import local_address
from vertex_training.errors import CommandError, ForbiddenReadError, OperatorError
from vertex_training_cli.engine.stacks import StackRef

TIMEOUT: Final = 30
#: Pages of a list, of up to 500 items each.
MAX_PAGES: Final = 1_000
#: Called with the method, Google's URL, the status and the JSON of each answer.
Listener = Callable[[str, str, int, Any], None]
LISTENERS: Final[list[Listener]] = []


class RestClient:
    """``session`` is a session of ``requests`` that adds credentials."""

    def __init__(self, session: Any, local: str | None = None) -> None:
        """``local`` is ``HOST:PORT`` of the local cloud, None for Google's services."""
        self._session, self._local = session, local

    def get(self, url: str, what: str) -> dict[str, Any] | None:
        """The document at ``url``, None if it is not there; ``what`` is named by errors.

        Raises:
            ForbiddenReadError: the caller may not read it.
            CommandError: it cannot be read.
        """
        return self.call("GET", url, what)

    def items(self, url: str, what: str, collection: str) -> Iterator[dict[str, Any]]:
        """All of a list, page by page; of an aggregated one what each place has.

        Raises:
            ForbiddenReadError: the caller may not list it.
            CommandError: it cannot be listed.
        """
        for document in pages(url, what, lambda page: self.get(page, what)):
            found = document.get("items") or ()
            if isinstance(found, dict):
                for place in found.values():
                    yield from place.get(collection, ())
            else:
                yield from found

    def call(
        self, method: str, url: str, what: str, *, conflict: tuple[int, ...] = (404,), **more: Any
    ) -> dict[str, Any] | None:
        """The answer of a method; None for a status in ``conflict``.

        Raises:
            ForbiddenReadError: the caller lacks a permission.
            CommandError: there is no answer, or it is another refusal.
        """
        import requests

        address = url
        if self._local:
            parts = urlsplit(url)
            url = f"http://{self._local}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        try:
            answer = self._session.request(method, url, timeout=TIMEOUT, **more)
        except (requests.RequestException, GoogleAuthError) as failed:
            raise CommandError(f"{what} cannot be reached: {failed}") from None
        document = _document(answer)
        for listen in LISTENERS:
            listen(method, address, answer.status_code, document)
        if answer.status_code in conflict:
            return None
        doing = "read" if method == "GET" or conflict == (404,) else "written"
        if not answer.ok:
            text = f"{what} cannot be {doing}: {answer.status_code} {answer.reason}"
            told = _message(document)
            error = ForbiddenReadError if answer.status_code == 403 else CommandError
            raise error(f"{text}: {told}" if told else text)
        if not isinstance(document, dict):
            raise CommandError(f"{what} cannot be {doing}: the answer is no document of an API.")
        return document


def pages(
    url: str, what: str, get: Callable[[str], dict[str, Any] | None]
) -> Iterator[dict[str, Any]]:
    """The documents of the list ``what``, page by page, each as ``get`` reads it.

    Raises:
        CommandError: a page after the first is not there, or the list has no end.
    """
    page, asked = "", set[str]()
    while page not in asked and len(asked) < MAX_PAGES:
        asked.add(page)
        query = f"{'&' if '?' in url else '?'}{urlencode({'pageToken': page})}" if page else ""
        document = get(url + query)
        if document is None and page:
            raise CommandError(f"{what} cannot be read: a page of its list is not there.")
        yield document or {}
        page = str((document or {}).get("nextPageToken") or "")
        if not page:
            return
    raise CommandError(f"{what} cannot be read: its list has no end.")


def connect(stack: StackRef) -> RestClient:
    """The services of a stack's cloud: Google's, or the local cloud's for ``local-…``.

    Raises:
        CommandError: there are no credentials, or the local cloud does not run.
    """
    if stack.is_local:
        import requests

        stack.connect_clients()
        session = requests.Session()
        session.trust_env = False  # no proxy is on the way to this machine
        return RestClient(session, local_address(stack.project))
    from google.auth.transport.requests import AuthorizedSession

    try:
        credentials = impersonated_credentials() or google.auth.default(scopes=[SCOPE])[0]
    except (GoogleAuthError, OperatorError) as failed:
        raise CommandError(f"no Google Cloud credentials: {failed}") from None
    return RestClient(AuthorizedSession(credentials))


def _document(answer: Any) -> Any:
    """The JSON of an answer; None if it is none: a proxy may answer with a page of its own."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _message(document: Any) -> str:
    """What Google says of an error (google.aip.dev/193); empty if that is not its form."""
    try:
        return str(document["error"]["message"])
    except (KeyError, TypeError):
        return ""
