"""Bounded listings of a bucket: the number of objects and the time of the last write."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.exceptions import GoogleAuthError

from vertex_training.customjob.google.intent_store import storage_client
from vertex_training.errors import CommandError, OperatorError

if TYPE_CHECKING:
    from google.cloud import storage

#: Maximum number of listed objects: one page of the API.
MOST: Final = 1000
#: Timeout of a request in seconds. Requests are not repeated.
TIMEOUT: Final = 4
#: Maximum size in bytes of an object's content, also after decompression.
MOST_BYTES: Final = 8 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
#: Folder for checkpoints below a job's output directory (``AIP_CHECKPOINT_DIR``):
#: https://docs.cloud.google.com/vertex-ai/docs/training/code-requirements
CHECKPOINTS: Final = "checkpoints/"
_ONE_PAGE: Final[dict[str, Any]] = {
    "page_size": MOST,
    "fields": "items(name,updated),nextPageToken",
    "timeout": TIMEOUT,
    "retry": None,
}
_URI: Final = re.compile(r"(?s)gs://([^/]+)/?(.*)\Z")


@dataclass(frozen=True, slots=True)
class ObjectListing:
    """The first objects below a prefix."""

    count: int
    more: bool
    """True if the prefix has more objects than were listed."""
    newest: datetime | None
    """Time at which the newest listed object was written."""


class Objects:
    """Lists objects of a project's buckets. Methods raise OperatorError if a request fails."""

    def __init__(self, project: str) -> None:
        self._client: storage.Client = storage_client(project)

    def listing(self, uri: str, *, versions: bool = False) -> ObjectListing:
        """Return the objects below a ``gs://`` URI. ``versions`` also counts old versions."""
        bucket, prefix = _parts(uri)
        with _readable(bucket):
            listed = self._client.list_blobs(
                bucket, prefix=prefix or None, versions=versions, **_ONE_PAGE
            )
            page = next(listed.pages, ())
            times = [blob.updated for blob in page]
        written = [moment for moment in times if moment]
        return ObjectListing(len(times), bool(listed.next_page_token), max(written, default=None))

    def has_bucket(self, name: str, project: str) -> bool:
        """Return True if this project has the bucket; refuse a bucket of another project."""
        bounds: dict[str, Any] = {"timeout": TIMEOUT, "retry": None}
        with _readable(name):
            bucket = self._client.lookup_bucket(name, **bounds)
        # The storage emulator returns the project number 0.
        owner = str(bucket.project_number or project) if bucket else project
        if owner != project:
            text = f"bucket {name} belongs to project {owner}, not to this project ({project})."
            raise CommandError(text, "choose another name for the stack")
        return bucket is not None

    def nearest(self, uri: str, ending: str) -> bytes:
        """Return up to ``MOST_BYTES`` of the least nested object with this ending, or empty."""
        bucket, prefix = _parts(uri)
        with _readable(bucket):
            listed = self._client.list_blobs(bucket, prefix=f"{prefix.rstrip('/')}/", **_ONE_PAGE)
            names = [str(blob.name) for blob in next(listed.pages, ())]
            matches = sorted(
                (name for name in names if name.endswith(ending)), key=lambda n: (n.count("/"), n)
            )
            if not matches:
                return b""
            blob = self._client.bucket(bucket).blob(matches[0])
            # Without raw_download, the client would decompress the whole object.
            stored = blob.download_as_bytes(end=MOST_BYTES, raw_download=True, timeout=TIMEOUT)
        if not stored.startswith(_GZIP):
            return stored[:MOST_BYTES]
        try:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(stored, MOST_BYTES)
        except zlib.error:
            return b""


def _parts(uri: str) -> tuple[str, str]:
    match = _URI.match(uri)
    if match is None:
        raise OperatorError(f"{uri!r} is not a gs:// URI")
    return match[1], match[2]


@contextmanager
def _readable(bucket: str) -> Iterator[None]:
    from requests.exceptions import RequestException

    try:
        yield
    except (GoogleAPICallError, RetryError, GoogleAuthError, RequestException, ValueError) as error:
        text = getattr(error, "message", error)
        raise OperatorError(f"cannot list gs://{bucket}: {text}") from None


class CheckpointLook:
    """Finds the newest checkpoints of jobs. Stops after a failed request or a time limit."""

    def __init__(self, project: str, seconds: float) -> None:
        self._project, self._ends = project, time.monotonic() + seconds
        self._objects: Objects | None = None
        self._failed = False

    def newest(self, job: Any) -> ObjectListing | None:
        """Return the job's checkpoints; None without an output directory or on an error."""
        # Tuning jobs are skipped: each trial has a separate folder, and there may be hundreds.
        spec = getattr(job, "job_spec", None)
        output = str(spec.base_output_directory.output_uri_prefix) if spec else ""
        if self._failed or not output or time.monotonic() > self._ends:
            return None
        try:
            objects = self._objects = self._objects or Objects(self._project)
            return objects.listing(f"{output.rstrip('/')}/{CHECKPOINTS}")
        except OperatorError:
            self._failed = True
            return None
