"""Sessions of resumable uploads (docs.cloud.google.com/storage/docs/performing-resumable-uploads).

The emulator ends an upload at the first status request and ignores preconditions. So files store
the sessions, and the emulator receives each complete object as one insertion.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import parse_qsl, quote, urlencode

import google_crc32c

from localgcp.errors import RefusedRequestError
from localgcp.home import open_private
from localgcp.storage.requests import Answer, StorageRequest
from localgcp.system.root_directory import make_folder

#: The size of each chunk except the last is a multiple of this number of bytes.
UNIT: Final = 256 << 10
_INSERT: Final = re.compile(r"/(?:resumable/)?upload/storage/v1/b/([^/]+)/o/?")
_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Insertion:
    """A complete object for the emulator."""

    session: str
    target: str
    headers: Mapping[str, str]
    head: bytes
    content: Path
    tail: bytes

    @property
    def size(self) -> int:
        """Return the number of bytes of the body."""
        return len(self.head) + self.content.stat().st_size + len(self.tail)

    def body(self) -> Iterator[bytes]:
        """Yield the body in blocks."""
        yield self.head
        with self.content.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
        yield self.tail


@dataclass
class UploadSessions:
    """Sessions in ``folder``: ``ID.json`` has the first request, ``ID.part`` the received bytes."""

    folder: Path
    _locks: tuple[threading.Lock, ...] = field(
        default_factory=lambda: tuple(threading.Lock() for _ in range(64))
    )

    def remove_expired(self) -> None:
        """Delete sessions that are at least a week old."""
        oldest = time.time() - 7 * 24 * 3600
        for path in self.folder.glob("upload-*"):
            if path.stat().st_mtime < oldest:
                path.unlink()

    def lock(self, request: StorageRequest) -> AbstractContextManager[Any]:
        """Return a lock that serializes the requests of one session."""
        identity = _pairs(request).get("upload_id")
        return self._locks[hash(identity) % len(self._locks)] if identity else nullcontext()

    def begins(self, request: StorageRequest) -> str | None:
        """Return the bucket of an upload that the request begins, or None for other requests."""
        pairs = _pairs(request)
        match = _INSERT.fullmatch(request.target.partition("?")[0])
        begins = pairs.get("uploadType") == "resumable" and "upload_id" not in pairs
        return match[1] if match and begins and request.verb == "POST" else None

    def begin(self, request: StorageRequest, address: str) -> Answer:
        """Begin a session; ``address`` is the client's address of this server."""
        pairs = _pairs(request)
        try:
            metadata = json.loads(request.body or b"{}")
        except (ValueError, RecursionError):
            metadata = None
        if not isinstance(metadata, dict):
            raise RefusedRequestError(400, "the metadata is not a JSON object.")
        default = request.headers.get("x-upload-content-type", "")
        if kind := str(metadata.get("contentType") or default):
            metadata["contentType"] = kind
        if not kind.isprintable():
            raise RefusedRequestError(400, "the content type contains non-printable characters.")
        identity = f"upload-{secrets.token_hex(16)}"
        record = {"target": request.target, "metadata": metadata, "answer": None}
        make_folder(self.folder, 0o700)
        with open_private(self._part(identity), "wb"):
            pass
        self._write(identity, record)
        path = request.target.partition("?")[0]
        name = quote(pairs.get("name", ""), safe="")
        query = f"uploadType=resumable&name={name}&upload_id={identity}"
        location = ("Location", f"{address}{path}?{query}")
        return Answer(200, [location, ("X-GUploader-UploadID", identity)])

    def answer(self, request: StorageRequest, content: IO[bytes]) -> Answer | Insertion | None:
        """Return the answer to a session's request, or None. Raises RefusedRequestError."""
        identity, path = _pairs(request).get("upload_id", ""), request.target.partition("?")[0]
        if not re.fullmatch("upload-[0-9a-f]{32}", identity) or not _INSERT.fullmatch(path):
            return None
        record = self._read(identity)
        if request.verb == "DELETE":
            self._remove(identity)
            return Answer(499, [])
        if request.verb not in ("PUT", "POST"):
            raise RefusedRequestError(405, "an upload session accepts only PUT and DELETE.")
        if record["answer"] is not None:
            headers = [("Content-Type", "application/json; charset=UTF-8")]
            return Answer(200, headers, record["answer"].encode())
        part = self._part(identity)
        if not self._append(identity, request, content):
            size = part.stat().st_size
            return Answer(308, [("Range", f"bytes=0-{size - 1}")] if size else [])
        hashes = {*re.findall(r"crc32c=([A-Za-z0-9+/=]+)", request.headers.get("x-goog-hash", ""))}
        if checksum := record["metadata"].get("crc32c"):
            hashes.add(str(checksum))
        if hashes:
            _check_hashes(part, hashes)
        return self._insertion(identity, record)

    def finish(self, insertion: Insertion, status: int, body: bytes) -> None:
        """Store the emulator's answer to ``insertion``, for repeated requests of the client."""
        if status == 200:
            record = self._read(insertion.session)
            self._write(insertion.session, {**record, "answer": body.decode()})
            insertion.content.unlink()
        elif status < 500:
            self._remove(insertion.session)

    def _append(self, identity: str, request: StorageRequest, content: IO[bytes]) -> bool:
        size = content.seek(0, 2)
        stored = self._part(identity).stat().st_size
        content_range = request.headers.get("content-range")
        form = r"bytes (?:(\d{1,15})-(\d{1,15})|\*)/(?:(\d{1,15})|\*)"
        whole = f"bytes 0-{size - 1}/{size}"
        match = re.fullmatch(form, whole if content_range is None else content_range)
        if content_range is None and not size:
            return stored == 0
        if match is None:
            raise RefusedRequestError(400, "Content-Range must have the form bytes A-B/SIZE.")
        total = None if match[3] is None else int(match[3])
        if match[1] is None:
            return total == stored
        first, last = int(match[1]), int(match[2])
        if last - first + 1 != size or (total is not None and last >= total):
            text = "Content-Range does not match the length of the body."
            raise RefusedRequestError(400, text)
        if first > stored:
            text = f"the chunk begins at byte {first}, but only {stored} bytes were received."
            raise RefusedRequestError(400, text)
        if total != last + 1 and size % UNIT:
            text = f"the size of each chunk except the last must be a multiple of {UNIT} bytes."
            raise RefusedRequestError(400, text)
        content.seek(stored - first)
        with self._part(identity).open("ab") as file:
            while block := content.read(_BLOCK):
                file.write(block)
        return total == last + 1

    def _insertion(self, identity: str, record: dict[str, Any]) -> Insertion:
        path, _, query = record["target"].partition("?")
        pairs = [p for p in parse_qsl(query, keep_blank_values=True) if p[0] != "uploadType"]
        metadata = record["metadata"]
        kind = metadata.get("contentType") or "application/octet-stream"
        mark = secrets.token_hex(16)
        head = (
            f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
            f"{json.dumps(metadata)}\r\n--{mark}\r\nContent-Type: {kind}\r\n\r\n"
        )
        return Insertion(
            identity,
            f"{path}?{urlencode([*pairs, ('uploadType', 'multipart')])}",
            {"content-type": f'multipart/related; boundary="{mark}"'},
            head.encode(),
            self._part(identity),
            f"\r\n--{mark}--\r\n".encode(),
        )

    def _part(self, identity: str) -> Path:
        return self.folder / f"{identity}.part"

    def _read(self, identity: str) -> dict[str, Any]:
        try:
            return json.loads((self.folder / f"{identity}.json").read_bytes())
        except FileNotFoundError:
            text = "the upload session does not exist or has expired."
            raise RefusedRequestError(404, text) from None

    def _write(self, identity: str, record: Mapping[str, Any]) -> None:
        path, new = self.folder / f"{identity}.json", self.folder / f"{identity}.new"
        with open_private(new, "wb") as file:
            file.write(json.dumps(record).encode())
        new.replace(path)

    def _remove(self, identity: str) -> None:
        for path in (self._part(identity), self.folder / f"{identity}.json"):
            path.unlink(missing_ok=True)


def _pairs(request: StorageRequest) -> dict[str, str]:
    return dict(parse_qsl(request.target.partition("?")[2], keep_blank_values=True))


def _check_hashes(content: Path, expected: set[str]) -> None:
    checksum = google_crc32c.Checksum()
    with content.open("rb") as file:
        for _ in checksum.consume(file, _BLOCK):
            pass
    digest = base64.b64encode(checksum.digest()).decode()
    if expected != {digest}:
        content.unlink()
        content.with_suffix(".json").unlink()
        text = f"the CRC32C of the received bytes is {digest}, which differs from the client's."
        raise RefusedRequestError(400, text)
