"""Cloud Storage for ``vt data``: parsing of BUCKET/PREFIX, objects, and readable errors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from requests import RequestException

from vertex_training.customjob.google.intent_store import all_blobs, storage_client
from vertex_training.errors import CommandError, did_you_mean
from vertex_training.naming import CONTROL
from vertex_training.settings.model import Settings
from vertex_training.snapshots import request
from vertex_training_cli.engine.stacks import STORAGE_EMULATOR, StackRef

TIMEOUT: Final = 60
_WORKERS: Final = 8
_FIELDS: Final = "items(name,size,crc32c,generation,updated),nextPageToken"
_URL: Final = re.compile(r"gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?", re.DOTALL)
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


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
    key: str = ""
    """Key of the bucket in the stack file; empty if the user passed a ``gs://`` address."""

    def __str__(self) -> str:
        """Return ``gs://BUCKET/PREFIX``."""
        return f"gs://{self.bucket}/{self.prefix}"


def find(text: str, settings: Settings) -> Place:
    """Return the place of ``gs://…``, or of ``NAME/PREFIX`` with a bucket of the stack file.

    Raises:
        CommandError: the stack has no such bucket, or the prefix is invalid.
    """
    if text.startswith("gs://"):
        match = _URL.fullmatch(text)
        if match is None:
            what = f"{text!r} is not a valid address of a bucket."
            raise CommandError(what, "write gs://BUCKET/PREFIX.")
        bucket, prefix, key = match[1], match[2] or "", ""
    else:
        key, _, prefix = text.partition("/")
        if key not in settings.buckets:
            hint = did_you_mean(key, settings.buckets) or "declare the bucket under `buckets`."
            raise CommandError(f"stack {settings.stack!r} has no bucket {key!r}.", hint)
        bucket = settings.names.bucket(key)
    prefix = prefix.strip("/")
    if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
        raise CommandError(f"{text!r}: the parts of a prefix must not be empty, '.' or '..'.")
    return Place(bucket, f"{prefix}/" if prefix else "", key)


def ensure_takes(place: Place, names: Iterable[str], settings: Settings) -> None:
    """Refuse to upload files to the locations of submission records and snapshots.

    Raises:
        CommandError: the place, or one of ``names`` below it, belongs to either.
    """
    if place.bucket == settings.names.bucket(CONTROL):
        what = f"{place} is reserved for records of submissions."
        raise CommandError(what, "push to another bucket.")
    for name in names:
        if request.is_of_snapshot(f"{place.prefix}{name}"):
            what = f"{place}{name} is a file of a snapshot, which must not change."
            raise CommandError(what, "push to another folder, or raise the snapshot's `run`.")


def connect(ref: StackRef, log: Callable[[str], None]) -> storage.Client:
    """Return the client of the stack's project. Start the local cloud for a local stack.

    Raises:
        CommandError: the local cloud does not start.
        OperatorError: no credentials, or a local cloud for a project of Google Cloud.
    """
    if ref.is_local and not os.environ.get(STORAGE_EMULATOR):
        os.environ[STORAGE_EMULATOR] = ref.environment(log)[STORAGE_EMULATOR]
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
    """Delete these objects in order; skip objects that were deleted or rewritten meanwhile."""
    bucket = client.bucket(place.bucket)
    for item in listed:
        with plain_errors(place, "write"):
            try:
                bucket.blob(place.prefix + item.name).delete(
                    if_generation_match=item.generation, timeout=TIMEOUT
                )
            except (exceptions.NotFound, exceptions.PreconditionFailed):
                continue


def run_all(items: Sequence[T], work: Callable[[T], None], place: Place, right: str) -> None:
    """Run ``work`` for each item, in parallel.

    Raises:
        CommandError: some items failed. The text has the first name and the number. All items
            were tried.
    """
    workers = ThreadPoolExecutor(_WORKERS)
    try:
        begun = [(item, workers.submit(work, item)) for item in items]
        failed = [(item.name, error) for item, future in begun if (error := future.exception())]
    finally:  # Ctrl-C waits only for running work
        workers.shutdown(cancel_futures=True)
    if not failed:
        return
    name, error = failed[0]
    if isinstance(error, CommandError):
        first = error
    elif isinstance(error, OSError):
        first = CommandError(f"{name}: {error.strerror or error}")
    else:
        first = explained(error, place, right)
    count = f"{len(failed)} files failed; the first is {name!r}: " if len(failed) > 1 else ""
    raise CommandError(count + first.message, first.hint)


@contextmanager
def plain_errors(place: Place, right: str) -> Iterator[None]:
    """Convert errors of the service to CommandError. ``right`` is the access: read or write."""
    try:
        yield
    except (exceptions.GoogleAPICallError, exceptions.RetryError) as error:
        raise explained(error, place, right) from None
    except (GoogleAuthError, RequestException) as error:
        raise CommandError(f"{place}: {type(error).__name__}: {error}") from None


def explained(error: BaseException, place: Place, right: str) -> CommandError:
    """Return a CommandError for an error of the service: one line with a hint."""
    if isinstance(error, (exceptions.Forbidden, exceptions.Unauthorized)):
        role = "roles/storage.objectUser" if right == "write" else "roles/storage.objectViewer"
        key = f"{'writes' if right == 'write' else 'reads'}: [{place.key or '…'}]"
        return CommandError(
            f"{place}: no permission to {right}; it requires {role} on the bucket.",
            f"request the role, or act as an account with `{key}` in the stack file.",
        )
    if isinstance(error, exceptions.NotFound):
        hint = "`vt up` creates it." if place.key else ""
        return CommandError(f"bucket {place.bucket} does not exist.", hint)
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return CommandError(
        f"{place}: {text}", "run the command again; complete files are not sent again."
    )


def in_units(size: float) -> str:
    """Return a number of bytes with a unit.

    >>> in_units(999), in_units(12_345)
    ('999 B', '12.3 kB')
    """
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"
