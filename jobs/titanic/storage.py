"""Reads and writes of whole objects by ``gs://`` URI or local path.

Objects are fetched with the official client rather than expected on disk: Vertex AI copies nothing
from Cloud Storage to the machine beforehand. A path below ``/gcs/`` is a local path here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from titanic.errors import JobError

if TYPE_CHECKING:
    from google.cloud.storage import Blob, Client

SCHEME = "gs://"


def is_gcs(uri: str) -> bool:
    """Return True if `uri` is a ``gs://`` URI, not a local path."""
    return uri.startswith(SCHEME)


def split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and object name of a ``gs://`` URI.

    Raises:
        JobError: the bucket or the object name is missing.
    """
    bucket, _, name = uri[len(SCHEME) :].partition("/")
    if not is_gcs(uri) or not bucket or not name:
        raise JobError(f"not the URI of an object: {uri!r}. Hint: write gs://BUCKET/PATH")
    return bucket, name


def join(directory: str, name: str) -> str:
    """Return the URI or path of `name` in `directory`, with or without a trailing slash."""
    return f"{directory.rstrip('/')}/{name}" if is_gcs(directory) else str(Path(directory, name))


def read_bytes(uri: str) -> bytes:
    """Return the content of an object or a file.

    Raises:
        JobError: it does not exist, may not be read, or the storage cannot be reached.
    """
    if not is_gcs(uri):
        try:
            return Path(uri).read_bytes()
        except OSError as error:
            raise JobError(f"cannot read {uri}: {error.strerror}") from error
    with _plain_errors("read", uri, role="roles/storage.objectViewer"):
        return _blob(uri).download_as_bytes()


def write_bytes(uri: str, data: bytes, content_type: str) -> None:
    """Write an object or a file atomically.

    Raises:
        JobError: the bucket or folder is missing, may not be written, or cannot be reached.
    """
    if not is_gcs(uri):
        _write_file(Path(uri), data)
        return
    from google.cloud.storage.retry import DEFAULT_RETRY

    with _plain_errors("write", uri, role="roles/storage.objectUser"):
        # Asked for by name: some versions retry only under a precondition. Writing the same bytes
        # to the same name twice is harmless.
        _blob(uri).upload_from_string(data, content_type=content_type, retry=DEFAULT_RETRY)


def _write_file(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror}") from error


@lru_cache(maxsize=1)
def _client() -> Client:
    """Return the storage client, for the emulator if its variable is set.

    The code runs in a project of Google's, so the client must not guess the project from its
    surroundings. STORAGE_EMULATOR_HOST is honoured by the client itself; an emulator knows no
    accounts, and without anonymous credentials the client would look for some.
    """
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    project = os.environ.get("CLOUD_ML_PROJECT_ID")
    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return storage.Client(project=project or "local", credentials=AnonymousCredentials())
    return storage.Client(project=project)


def _blob(uri: str) -> Blob:
    bucket, name = split_uri(uri)
    return _client().bucket(bucket).blob(name)


@contextmanager
def _plain_errors(verb: str, uri: str, role: str) -> Iterator[None]:
    """Convert errors of the client to one line with a hint."""
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except exceptions.NotFound as error:
        what = "object" if verb == "read" else "bucket"
        raise JobError(f"cannot {verb} {uri}: no such {what}") from error
    except (exceptions.Forbidden, exceptions.Unauthorized) as error:
        hint = f"grant the job's service account {role} on the bucket"
        raise JobError(f"cannot {verb} {uri}: permission denied. Hint: {hint}") from error
    # OSError: connection errors of the HTTP library, and a project that cannot be determined.
    except (exceptions.GoogleAPIError, GoogleAuthError, OSError) as error:
        reason = " ".join(str(error).split())
        raise JobError(f"cannot {verb} {uri}: {reason}") from error
