"""Uploads of large files, which go on after a kill where they were.

A session's address is kept in a file of the user's cache until the object is whole. Who has the
address can write that one object for a week, so the file is for its user alone.
Source: docs.cloud.google.com/storage/docs/performing-resumable-uploads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from localgcp.home import open_private
from vertex_training.errors import CommandError
from vertex_training_cli.data.comparison import Pair
from vertex_training_cli.data.files import LocalFile, checksum
from vertex_training_cli.data.progress import Advance
from vertex_training_cli.engine.stacks import STORAGE_EMULATOR

if TYPE_CHECKING:
    import requests
    from google.cloud import storage

#: Bytes of a request; a multiple of 256 KiB.
CHUNK: Final = 32 << 20
_TIMEOUT: Final = 300
_RANGE: Final = re.compile(r"bytes=0-(\d+)")


class _LostSessionError(Exception):
    """The service does not know the session any more."""


def upload(bucket: storage.Bucket, prefix: str, pair: Pair, advance: Advance) -> None:
    """Send the file of ``pair``; an upload that a kill interrupted goes on.

    Raises:
        CommandError: the file changed meanwhile, or the object did.
        google.api_core.exceptions.GoogleAPICallError: the service refused.
    """
    import requests

    file = pair.file
    assert file is not None
    blob = bucket.blob(prefix + pair.name)
    note = _note(str(bucket.name), str(blob.name), file)
    generation = pair.object.generation if pair.object else 0
    crc32c = checksum(file.open())
    with requests.Session() as session:
        for _ in range(2):
            url = _remembered(note)
            if url is None:
                url = blob.create_resumable_upload_session(
                    size=file.size, if_generation_match=generation, timeout=_TIMEOUT
                )
                assert url is not None  # the client raises where the answer has none
                _remember(note, url)
            try:
                _send(session, url, file, crc32c, advance)
            except _LostSessionError:
                note.unlink(missing_ok=True)
                continue
            note.unlink(missing_ok=True)
            return
    raise CommandError(f"{pair.name}: the upload was ended twice by the service.")


def _send(
    session: requests.Session, url: str, file: LocalFile, crc32c: str, advance: Advance
) -> None:
    from google.api_core import exceptions, retry

    told = 0

    def tell(size: int) -> None:
        nonlocal told
        advance(max(0, size - told))
        told = max(told, size)

    def attempt() -> None:
        """Send from where the service is; the whole rest, chunk by chunk."""
        offset = _arrived(session, url, file.size)
        tell(file.size if offset is None else offset)
        if offset is None:
            return
        _check_unchanged(file)
        with file.open() as content:
            content.seek(offset)
            while block := content.read(CHUNK):
                end = offset + len(block)
                headers = {"Content-Range": f"bytes {offset}-{end - 1}/{file.size}"}
                if end == file.size:
                    headers["X-Goog-Hash"] = f"crc32c={crc32c}"
                _put(session, url, block, headers)
                tell(end)
                offset = end

    transient = retry.if_exception_type(
        exceptions.ServerError, exceptions.TooManyRequests, ConnectionError, TimeoutError
    )
    retry.Retry(predicate=transient, initial=1, maximum=30, timeout=600)(attempt)()
    _check_unchanged(file)


def _arrived(session: requests.Session, url: str, size: int) -> int | None:
    """Bytes that the service has; None if the object is whole."""
    answer = _put(session, url, b"", {"Content-Range": f"bytes */{size}"})
    if answer.status_code != 308:
        return None
    found = _RANGE.fullmatch(str(answer.headers.get("Range")))
    return int(found[1]) + 1 if found else 0


def _put(
    session: requests.Session, url: str, body: bytes, headers: dict[str, str]
) -> requests.Response:
    import requests
    from google.api_core import exceptions

    try:
        answer = session.put(url, body, headers=headers, allow_redirects=False, timeout=_TIMEOUT)
    except requests.ConnectionError:
        raise ConnectionError("the connection to Cloud Storage was lost") from None
    except requests.Timeout:
        raise TimeoutError("Cloud Storage did not answer") from None
    if answer.status_code in (404, 410):
        raise _LostSessionError
    if answer.status_code not in (200, 201, 308):
        raise exceptions.from_http_response(answer)
    return answer


def _check_unchanged(file: LocalFile) -> None:
    status = file.path.stat()
    if (status.st_size, status.st_mtime_ns) != (file.size, file.mtime_ns):
        raise CommandError(f"{file.path} changed while it was sent.", "run it again.")


def folder() -> Path:
    """Where addresses of sessions are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "vertex-training" / "uploads"


def _note(bucket: str, name: str, file: LocalFile) -> Path:
    endpoint = os.environ.get(STORAGE_EMULATOR, "")
    identity = (endpoint, bucket, name, str(file.path.resolve()), file.size, file.mtime_ns)
    return folder() / f"{hashlib.sha256(repr(identity).encode()).hexdigest()[:32]}.json"


def _remembered(note: Path) -> str | None:
    try:
        found: Any = json.loads(note.read_bytes())["url"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, str) and _is_of_service(found) else None


def _is_of_service(url: str) -> bool:
    """Whether ``url`` leads to Cloud Storage, or to the local cloud's where that is in use."""
    emulator = os.environ.get(STORAGE_EMULATOR)
    parts = urlsplit(url)
    if emulator:
        return parts.netloc == urlsplit(emulator).netloc
    return parts.scheme == "https" and parts.netloc == "storage.googleapis.com"


def _remember(note: Path, url: str) -> None:
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_private(note, "wb") as file:
        file.write(json.dumps({"url": url}).encode())
