"""Files below ``gs://BUCKET/PATH``, ``/gcs/BUCKET/PATH`` or a folder of this machine.

No store renames anything: Cloud Storage FUSE copies where a file system renames, and a kill in
between leaves both names. A file is written under its final name; who needs to know that a set of
files is whole writes a list of them last (``vertex_job.checkpoints``).

``gs://`` is reached by the JSON API of Cloud Storage, with the token of the job's service account,
or at STORAGE_EMULATOR_HOST without one.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from vertex_job.errors import StoreError

_API = "https://storage.googleapis.com"
_TOKEN_URL = (
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
)
_ATTEMPTS, _TIMEOUT_SECONDS = 6, 120.0
#: What is held in memory of a large file.
_PIECE = 1 << 20
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


class Store(Protocol):
    """Files by their names below one place, which may have slashes."""

    def sizes(self) -> dict[str, int]:
        """Names of all files with their sizes in bytes."""
        ...

    def read(self, name: str) -> bytes:
        """A file's content. Raises StoreError."""
        ...

    def pieces(self, name: str) -> Iterator[bytes]:
        """A file's content, a megabyte at a time. Raises StoreError."""
        ...

    def write(self, name: str, data: bytes | Path) -> None:
        """Write a file, or write it anew; a path is sent by pieces. Raises StoreError."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it is there. Raises StoreError."""
        ...


def store_at(place: str) -> Store:
    """The store of a ``gs://`` URI or a path. Raises StoreError if it is neither."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return DiskStore(Path(place))
    bucket, _, prefix = rest.partition("/")
    if scheme != "gs" or not bucket:
        raise StoreError(f"{place!r} is neither gs://BUCKET/PATH nor a path")
    return BucketStore(bucket, prefix)


def pieces_of(data: bytes | Path) -> Iterator[bytes]:
    """The bytes, or what a file has, a megabyte at a time. Raises StoreError."""
    if not isinstance(data, Path):
        yield data
        return
    try:
        with data.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except OSError as error:
        raise StoreError(f"cannot read {data}: {error.strerror}") from error


class DiskStore:
    """Files of a folder, which may be a mounted bucket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sizes(self) -> dict[str, int]:
        """Files that vanish meanwhile are left out."""
        found: dict[str, int] = {}
        for path in self.folder.rglob("*"):
            try:
                if path.is_file():
                    found[path.relative_to(self.folder).as_posix()] = path.stat().st_size
            except FileNotFoundError:
                continue
        return found

    def read(self, name: str) -> bytes:
        """The whole file."""
        return b"".join(self.pieces(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """The whole file, a megabyte at a time."""
        return pieces_of(self.folder / name)

    def write(self, name: str, data: bytes | Path) -> None:
        """The file is on the disk, or in the bucket, when this returns."""
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for piece in pieces_of(data):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def delete(self, name: str) -> None:
        """Folders stay: a mounted bucket has none, and another process may be writing there."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot delete {self.folder / name}: {error.strerror}") from error


class BucketStore:
    """Objects below a prefix of a bucket. An object is there as a whole, or not at all."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._token, self._token_ends = "", 0.0

    def sizes(self) -> dict[str, int]:
        """Of all pages of the list."""
        found: dict[str, int] = {}
        page, asked = "", set[str]()
        while page not in asked:  # a token again would be a list without an end
            asked.add(page)
            query = {"prefix": self.prefix, "fields": "items(name,size),nextPageToken"}
            listed = self._json("GET", f"/storage/v1/b/{_quoted(self.bucket)}/o", query, page)
            for item in listed.get("items", []):
                found[item["name"][len(self.prefix) :]] = int(item["size"])
            page = listed.get("nextPageToken", "")
            if not page:
                return found
        raise StoreError(f"cannot list {self._uri('')}: the list has no end")

    def read(self, name: str) -> bytes:
        """The whole object."""
        return self._call("GET", self._object(name), {"alt": "media"}, None, f"read {name}")

    def pieces(self, name: str) -> Iterator[bytes]:
        """The whole object; after a break it goes on where it stopped."""
        path = self._object(name)
        return self._answer("GET", path, {"alt": "media"}, None, f"read {name}", piece=_PIECE)

    def write(self, name: str, data: bytes | Path) -> None:
        """In one request, anew after a break; the service's checksum is compared."""
        path = f"/upload/storage/v1/b/{_quoted(self.bucket)}/o"
        query = {"uploadType": "media", "name": self.prefix + name}
        md5 = hashlib.md5(usedforsecurity=False)
        for piece in pieces_of(data):
            md5.update(piece)
        digest = _base64(md5.digest())
        answer = json.loads(self._call("POST", path, query, data, f"write {name}"))
        if answer.get("md5Hash", digest) != digest:
            raise StoreError(f"{self._uri(name)} arrived with another content than was sent")

    def delete(self, name: str) -> None:
        """Nothing happens if it is not there."""
        self._call("DELETE", self._object(name), {}, None, f"delete {name}", missing_ok=True)

    def _json(self, method: str, path: str, query: dict[str, str], page: str) -> dict[str, Any]:
        if page:
            query = {**query, "pageToken": page}
        return json.loads(self._call(method, path, query, None, "list"))

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | Path | None,
        what: str,
        *,
        missing_ok: bool = False,
    ) -> bytes:
        return b"".join(self._answer(method, path, query, body, what, missing_ok=missing_ok))

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | Path | None,
        what: str,
        *,
        missing_ok: bool = False,
        piece: int | None = None,
    ) -> Iterator[bytes]:
        """Send a request until it is answered for good. Every one may be repeated without harm.

        The answer comes whole, or in pieces of ``piece`` bytes; after a break, the rest.
        """
        base = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
        if base and "://" not in base:
            base = f"http://{base}"
        url = f"{base or _API}{path}?{urllib.parse.urlencode(query)}"
        attempt, taken, version, reason = 0, 0, "", ""
        while attempt < _ATTEMPTS:
            if attempt:
                time.sleep(min(2.0**attempt, 30.0) * (0.5 + random.random() / 2))
            attempt += 1
            headers = self._headers(body, taken, local=bool(base))
            content = None if body is None else pieces_of(body)
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    seen = answer.headers.get("x-goog-generation", "")
                    if taken and (answer.status, seen) != (206, version):
                        raise StoreError(f"cannot {what} at {self._uri('')}: it changed meanwhile")
                    version = seen
                    while part := answer.read(piece):
                        attempt, taken = 1, taken + len(part)
                        yield part
                    if not answer.length:
                        return
                    reason = "the answer ended early"
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing_ok:
                    return
                reason = f"HTTP {error.code} {error.reason}"
                if error.code not in _TRANSIENT:
                    break
            except (OSError, http.client.HTTPException) as error:
                reason = str(error)
        raise StoreError(f"cannot {what} at {self._uri('')}: {reason}")

    def _headers(self, body: bytes | Path | None, taken: int, *, local: bool) -> dict[str, str]:
        headers = {"Content-Type": "application/octet-stream"}
        if body is not None:
            size = body.stat().st_size if isinstance(body, Path) else len(body)
            headers["Content-Length"] = str(size)
        if taken:
            headers["Range"] = f"bytes={taken}-"
        if not local:
            headers["Authorization"] = f"Bearer {self._bearer()}"
        return headers

    def _bearer(self) -> str:
        """The token of the job's service account, from the machine's metadata server."""
        if time.monotonic() >= self._token_ends:
            request = urllib.request.Request(_TOKEN_URL, headers={"Metadata-Flavor": "Google"})
            try:
                with urllib.request.urlopen(request, timeout=10.0) as answer:
                    given = json.load(answer)
            except OSError as error:
                raise StoreError(
                    f"no token: the metadata server was not reached: {error}"
                ) from None
            self._token = str(given["access_token"])
            self._token_ends = time.monotonic() + float(given["expires_in"]) - 60.0
        return self._token

    def _object(self, name: str) -> str:
        return f"/storage/v1/b/{_quoted(self.bucket)}/o/{_quoted(self.prefix + name)}"

    def _uri(self, name: str) -> str:
        return f"gs://{self.bucket}/{self.prefix}{name}"


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
