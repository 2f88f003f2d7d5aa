"""Stores of files: ``gs://BUCKET/PATH``, ``/gcs/BUCKET/PATH`` or a local folder.

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from vertex_job.errors import AlreadyExistsError, StoreError

_API = "https://storage.googleapis.com"
_TOKEN_URL = (
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
)
_ATTEMPTS, _TIMEOUT_SECONDS = 6, 120.0
#: What is held in memory of a large file.
_PIECE = 1 << 20
_BYTES = "application/octet-stream"
_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


class StoredFile(NamedTuple):
    """Metadata of a listed file; folders and mounted buckets have only the size."""

    size: int
    generation: str = ""
    crc32c: str = ""


class Output(Protocol):
    """The target of a function that writes a file."""

    def write(self, piece: bytes, /) -> int:
        """Write a piece, and return its size in bytes."""
        ...

    def flush(self) -> None:
        """Flush written data to the operating system."""
        ...


#: What a file is written from: its bytes, a file of this machine, or a function that writes it.
Content: TypeAlias = bytes | Path | Callable[[Output], None]


class Store(Protocol):
    """Interface of a store: files by relative name, which may contain slashes."""

    def sizes(self) -> dict[str, int]:
        """Return the sizes in bytes of all files by name."""
        ...

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises StoreError."""
        ...

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield a file's content in pieces of 1 MB. Raises StoreError."""
        ...

    def write(self, name: str, data: Content) -> None:
        """Write or replace a file; a path is sent in pieces. Raises StoreError."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it exists. Raises StoreError."""
        ...


def store_at(place: str) -> DiskStore | BucketStore:
    """Return the store of a ``gs://`` URI or path. Raises StoreError for other texts."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return DiskStore(Path(place))
    bucket, _, prefix = rest.partition("/")
    if scheme != "gs" or not bucket:
        raise StoreError(f"{place!r} is neither gs://BUCKET/PATH nor a path")
    return BucketStore(bucket, prefix)


def pieces_of(data: bytes | Path) -> Iterator[bytes]:
    """Yield bytes, or the content of a file, in pieces of 1 MB. Raises StoreError."""
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
    """Store in a folder, which may be a mounted bucket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sizes(self) -> dict[str, int]:
        """Return sizes by name, omitting files that vanish meanwhile."""
        return {name: file.size for name, file in self.files().items()}

    def files(self) -> dict[str, StoredFile]:
        """Return metadata of files by name, like ``sizes``."""
        files: dict[str, StoredFile] = {}
        for path in self.folder.rglob("*"):
            try:
                if path.is_file():
                    size = path.stat().st_size
                    files[path.relative_to(self.folder).as_posix()] = StoredFile(size)
            except FileNotFoundError:
                continue
        return files

    def read(self, name: str) -> bytes:
        """Return the whole file."""
        return b"".join(self.pieces(name))

    def pieces(self, name: str, generation: str = "") -> Iterator[bytes]:
        """Yield the whole file in pieces of 1 MB."""
        del generation  # a mount shows none
        return pieces_of(self.folder / name)

    def write(self, name: str, data: Content) -> None:
        """Write a file durably to the disk or bucket."""
        self._write(name, data, "wb")

    def create(self, name: str, data: bytes) -> None:
        """Write a new file. Raises AlreadyExistsError if it exists."""
        self._write(name, data, "xb")

    def _write(self, name: str, data: Content, mode: Literal["wb", "xb"]) -> None:
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open(mode) as file:
                if callable(data):
                    data(file)
                else:
                    file.writelines(pieces_of(data))
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError as error:
            raise AlreadyExistsError(f"cannot write {path}: {error.strerror}") from error
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror}") from error

    def delete(self, name: str) -> None:
        """Remove a file, but no folder: another process may be writing in it."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot delete {self.folder / name}: {error.strerror}") from error


class BucketStore:
    """Store in a bucket, below a prefix. Objects are always complete."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self.bucket = bucket
        self.prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._token, self._token_ends = "", 0.0

    def sizes(self) -> dict[str, int]:
        """Return all files, from all pages of the list."""
        return {name: file.size for name, file in self.files().items()}

    def files(self) -> dict[str, StoredFile]:
        """Return all files, from all pages of the list."""
        files: dict[str, StoredFile] = {}
        fields = "items(name,size,generation,crc32c),nextPageToken"
        page, seen = "", set[str]()
        while page not in seen:  # a token again would be a list without an end
            seen.add(page)
            query = {"prefix": self.prefix, "fields": fields}
            listed = self._json("GET", f"/storage/v1/b/{_quoted(self.bucket)}/o", query, page)
            for item in listed.get("items", []):
                files[item["name"][len(self.prefix) :]] = StoredFile(
                    int(item["size"]), str(item["generation"]), item["crc32c"]
                )
            page = listed.get("nextPageToken", "")
            if not page:
                return files
        raise StoreError(f"cannot list {self._uri('')}: too many pages")

    def read(self, name: str) -> bytes:
        """Return the whole object."""
        return self._call("GET", self._object(name), {"alt": "media"}, None, f"read {name}")

    def pieces(self, name: str, generation: str = "") -> Iterator[bytes]:
        """Yield an object of a generation in pieces, resuming after a broken connection."""
        query = {"alt": "media", **({"generation": generation} if generation else {})}
        return self._answer("GET", self._object(name), query, None, f"read {name}", piece=_PIECE)

    def create(self, name: str, data: bytes) -> None:
        """Write a new file. Raises AlreadyExistsError if it exists.

        The existing object may come from this call, if its answer was lost.
        """
        mark = os.urandom(16).hex()
        # In two parts, as Google's clients do: emulators ignore the condition otherwise.
        head = f"--{mark}\r\nContent-Type: application/json\r\n\r\n{{}}\r\n--{mark}\r\n\r\n"
        body = head.encode() + data + f"\r\n--{mark}--\r\n".encode()
        path = f"/upload/storage/v1/b/{_quoted(self.bucket)}/o"
        query = {
            "uploadType": "multipart",
            "name": self.prefix + name,
            "ifGenerationMatch": "0",
        }
        kind = f"multipart/related; boundary={mark}"
        self._call("POST", path, query, body, f"write {name}", kind=kind)

    def write(self, name: str, data: Content) -> None:
        """Write an object in one request, with retries, and verify the service's checksum.

        The output of a function goes to a temporary file first: the request needs its size.
        """
        if callable(data):
            with TemporaryDirectory() as folder:
                DiskStore(Path(folder)).write("content", data)
                self.write(name, Path(folder, "content"))
            return
        path = f"/upload/storage/v1/b/{_quoted(self.bucket)}/o"
        query = {"uploadType": "media", "name": self.prefix + name}
        md5 = hashlib.md5(usedforsecurity=False)
        for piece in pieces_of(data):
            md5.update(piece)
        digest = _base64(md5.digest())
        answer = json.loads(self._call("POST", path, query, data, f"write {name}"))
        if answer.get("md5Hash", digest) != digest:
            raise StoreError(f"{self._uri(name)} has another MD5 than the sent content")

    def delete(self, name: str) -> None:
        """Remove an object, if it exists."""
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
        kind: str = _BYTES,
    ) -> bytes:
        answer = self._answer(method, path, query, body, what, missing_ok=missing_ok, kind=kind)
        return b"".join(answer)

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
        kind: str = _BYTES,
    ) -> Iterator[bytes]:
        """Send a request with retries, and yield the answer. All requests are idempotent.

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
            headers = {"Content-Type": kind, **self._headers(body, taken, local=bool(base))}
            content = None if body is None else pieces_of(body)
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    seen = answer.headers.get("x-goog-generation", "")
                    if taken and (answer.status, seen) != (206, version):
                        raise StoreError(
                            f"cannot {what} at {self._uri('')}: the object changed during the "
                            "download"
                        )
                    version = seen
                    while part := answer.read(piece):
                        attempt, taken = 1, taken + len(part)
                        yield part
                    if not answer.length:
                        return
                    reason = "the answer was incomplete"
            except urllib.error.HTTPError as error:
                if error.code == 404 and missing_ok:
                    return
                reason = f"HTTP {error.code} {error.reason}"
                if error.code == 412:
                    raise AlreadyExistsError(
                        f"cannot {what} at {self._uri('')}: {reason}"
                    ) from None
                if error.code not in _TRANSIENT:
                    break
            except (OSError, http.client.HTTPException) as error:
                reason = str(error)
        raise StoreError(f"cannot {what} at {self._uri('')}: {reason}")

    def _headers(self, body: bytes | Path | None, taken: int, *, local: bool) -> dict[str, str]:
        headers: dict[str, str] = {}
        if body is not None:
            size = body.stat().st_size if isinstance(body, Path) else len(body)
            headers["Content-Length"] = str(size)
        if taken:
            headers["Range"] = f"bytes={taken}-"
        if not local:
            headers["Authorization"] = f"Bearer {self._bearer()}"
        return headers

    def _bearer(self) -> str:
        """Return a token of the job's service account from the metadata server."""
        if time.monotonic() >= self._token_ends:
            request = urllib.request.Request(_TOKEN_URL, headers={"Metadata-Flavor": "Google"})
            try:
                with urllib.request.urlopen(request, timeout=10.0) as answer:
                    token = json.load(answer)
            except OSError as error:
                raise StoreError(
                    f"no access token: cannot reach the metadata server: {error}"
                ) from None
            self._token = str(token["access_token"])
            self._token_ends = time.monotonic() + float(token["expires_in"]) - 60.0
        return self._token

    def _object(self, name: str) -> str:
        return f"/storage/v1/b/{_quoted(self.bucket)}/o/{_quoted(self.prefix + name)}"

    def _uri(self, name: str) -> str:
        return f"gs://{self.bucket}/{self.prefix}{name}"


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
