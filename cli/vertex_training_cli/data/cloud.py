"""Objects of Cloud Storage for ``vt data`` and ``vt jobs artifacts``, and clear error messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from requests import RequestException
from rich.filesize import decimal

from vertex_training.customjob.google.intent_store import all_blobs, storage_client
from vertex_training.errors import CommandError
from vertex_training_cli.engine.stacks import STORAGE_EMULATOR, StackRef

TIMEOUT: Final = 60
_WORKERS: Final = 8
_FIELDS: Final = "items(name,size,crc32c,generation,updated),nextPageToken"
_URI: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object in a bucket. ``name`` is relative to the prefix."""

    name: str
    size: int
    crc32c: str
    generation: int
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A bucket and a prefix, which is empty or ends with a slash."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"gs://{self.bucket}/{self.prefix}"


def place_of(uri: str) -> Place:
    """Return the place of a ``gs://`` URI, which may come from a job and be invalid."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise CommandError(f"{uri!r} is not a valid gs:// URI.")
    prefix = (match[2] or "").strip("/")
    return Place(match[1], f"{prefix}/" if prefix else "")


def connect(ref: StackRef, log: Callable[[str], None]) -> storage.Client:
    """Return the client of the stack's project. Starts the local cloud for a local stack."""
    ref.connect_clients(log, address=STORAGE_EMULATOR)
    return storage_client(ref.project)


def objects(client: storage.Client, place: Place) -> Iterator[RemoteObject]:
    """Yield the objects below the prefix, sorted by name, without placeholders of folders."""
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


def delete(client: storage.Client, place: Place, listed: Iterable[RemoteObject]) -> None:
    """Delete these objects in order. Skip objects that were deleted or changed in the meantime."""
    bucket = client.bucket(place.bucket)
    for item in listed:
        with plain_errors(place, "write"):
            try:
                bucket.blob(place.prefix + item.name).delete(
                    if_generation_match=item.generation, timeout=TIMEOUT
                )
            except (exceptions.NotFound, exceptions.PreconditionFailed):
                continue


def run_all(
    items: Sequence[RemoteObject], work: Callable[[RemoteObject], None], place: Place
) -> None:
    """Run ``work`` for each object in parallel; then raise CommandError if some calls failed."""
    workers = ThreadPoolExecutor(_WORKERS)
    try:
        begun = [(item, workers.submit(work, item)) for item in items]
        failed = [(item.name, error) for item, future in begun if (error := future.exception())]
    finally:  # After Ctrl-C, wait only for running calls.
        workers.shutdown(cancel_futures=True)
    if not failed:
        return
    name, error = failed[0]
    if isinstance(error, CommandError):
        first = error
    elif isinstance(error, OSError):
        first = CommandError(f"{name}: {error.strerror or error}")
    else:
        first = explained(error, place, "read")
    count = f"{len(failed)} files failed; the first is {name!r}: " if len(failed) > 1 else ""
    raise CommandError(count + first.message, first.hint)


@contextmanager
def plain_errors(place: Place, right: str) -> Iterator[None]:
    """Convert errors of the service to CommandError. ``right`` is ``read`` or ``write``."""
    try:
        yield
    except (exceptions.GoogleAPICallError, exceptions.RetryError) as error:
        raise explained(error, place, right) from None
    except (GoogleAuthError, RequestException) as error:
        raise CommandError(f"{place}: {type(error).__name__}: {error}") from None


def explained(error: BaseException, place: Place, right: str) -> CommandError:
    """Return a CommandError with a hint for an error of the service."""
    if isinstance(error, (exceptions.Forbidden, exceptions.Unauthorized)):
        role = "roles/storage.objectUser" if right == "write" else "roles/storage.objectViewer"
        return CommandError(
            f"{place}: no permission to {right} objects. The bucket requires {role}.",
            f"request the role, or use an account with `{right}s: […]` in the stack file.",
        )
    if isinstance(error, exceptions.NotFound):
        return CommandError(f"bucket {place.bucket} does not exist.")
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    hint = "run the command again. Complete files are not transferred again."
    return CommandError(f"{place}: {text}", hint)


def in_units(size: int) -> str:
    """Return a number of bytes with a unit.

    >>> in_units(999), in_units(12_345)
    ('999 B', '12.3 kB')
    """
    return f"{size} B" if size < 1000 else decimal(size)
