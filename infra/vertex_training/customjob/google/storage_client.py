"""The official client of Cloud Storage, as the stack reaches it, and lists that end."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from google.auth.exceptions import DefaultCredentialsError

from vertex_training.customjob.google.impersonation import impersonated_credentials
from vertex_training.customjob.google.job_service import NO_CREDENTIALS, local_address
from vertex_training.errors import OperatorError

if TYPE_CHECKING:
    from google.cloud import storage

#: Variable with the URL of a storage emulator. The official client reads it as well.
EMULATOR: Final = "STORAGE_EMULATOR_HOST"
TIMEOUT: Final = 20

_connect_lock = threading.Lock()


def storage_client(project: str, account: str = "") -> storage.Client:
    """The official client of Cloud Storage, or of the local cloud's for ``local-…``.

    All threads share a client, which its documentation allows (docs/index.rst of
    googleapis/python-storage). A client for each submission would connect and request a token.

    Raises:
        OperatorError: a local project without a local cloud or the reverse, or no credentials.
    """
    address = local_address(project, EMULATOR)
    with _connect_lock:
        return _client(project, account, address)


@functools.lru_cache(maxsize=16)
def _client(project: str, account: str, _address: str | None) -> storage.Client:
    from google.cloud import storage  # loads slowly

    credentials = None if _address else impersonated_credentials(account)
    try:
        return storage.Client(project=project, credentials=credentials)
    except DefaultCredentialsError:
        raise OperatorError(NO_CREDENTIALS) from None


def all_blobs(listed: Any) -> Iterator[Any]:
    """Objects of every page of a list of the official client.

    Raises:
        OperatorError: a page comes again: the client would never stop.
    """
    asked = set[str]()
    for page in listed.pages:
        yield from page
        token = listed.next_page_token
        if token in asked:
            raise OperatorError("a list of Cloud Storage has no end: a page comes again")
        asked.add(token)
