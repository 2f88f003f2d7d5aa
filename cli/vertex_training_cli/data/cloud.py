"""Cloud Storage for ``vt data``: its client, its objects, and its errors as plain lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from vertex_training.errors import CommandError
from vertex_training_cli.data.comparison import RemoteObject
from vertex_training_cli.data.places import Place
from vertex_training_cli.engine.stacks import STORAGE_EMULATOR, StackRef

if TYPE_CHECKING:
    from google.cloud import storage

TIMEOUT: Final = 60
_FIELDS: Final = "items(name,size,crc32c,generation,updated),nextPageToken"


def connect(ref: StackRef, log: Callable[[str], None]) -> storage.Client:
    """The client of the stack's project; a local stack's cloud is started.

    Raises:
        CommandError: the local cloud does not start.
        OperatorError: no credentials, or a local cloud for a project that is none.
    """
    from vertex_training.customjob.google.storage_client import storage_client

    if ref.is_local and not os.environ.get(STORAGE_EMULATOR):
        os.environ[STORAGE_EMULATOR] = ref.environment(log)[STORAGE_EMULATOR]
    return storage_client(ref.project)


def objects(client: storage.Client, place: Place) -> Iterator[RemoteObject]:
    """The objects below the prefix, by name; what stands for a folder is left out."""
    from vertex_training.customjob.google.storage_client import all_blobs

    with plain_errors(place, "read"):
        listed = client.list_blobs(
            place.bucket, prefix=place.prefix, fields=_FIELDS, timeout=TIMEOUT
        )
        for blob in all_blobs(listed):
            name = str(blob.name).removeprefix(place.prefix)
            if name and not name.endswith("/"):
                updated = blob.updated.strftime("%Y-%m-%d %H:%M:%S") if blob.updated else ""
                yield RemoteObject(
                    name, blob.size or 0, blob.crc32c or "", blob.generation or 0, updated
                )


@contextmanager
def plain_errors(place: Place, right: str) -> Iterator[None]:
    """Errors of the service become a CommandError. ``right`` is read or write."""
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError
    from requests import RequestException

    try:
        yield
    except (exceptions.GoogleAPICallError, exceptions.RetryError) as error:
        raise explained(error, place, right) from None
    except (GoogleAuthError, RequestException) as error:
        raise CommandError(f"{place}: {type(error).__name__}: {error}") from None


def explained(error: Exception, place: Place, right: str) -> CommandError:
    """``error`` of the service as a line with what to do."""
    from google.api_core import exceptions

    if isinstance(error, (exceptions.Forbidden, exceptions.Unauthorized)):
        role = "roles/storage.objectUser" if right == "write" else "roles/storage.objectViewer"
        key = f"{'writes' if right == 'write' else 'reads'}: [{place.key or '…'}]"
        return CommandError(
            f"{place}: you may not {right} here; that takes {role} on the bucket.",
            f"accounts with `{key}` in the stack file have it; ask for it, or act as one of them.",
        )
    if isinstance(error, exceptions.NotFound):
        hint = "`vt up` makes it." if place.key else ""
        return CommandError(f"there is no bucket {place.bucket}.", hint)
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return CommandError(f"{place}: {text}", "run it again: what arrived is not sent again.")
