"""A client of the object storage emulator, which starts faster than the official client library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener
from uuid import uuid4

from localgcp.errors import RefusedError, UnlistableBucketError
from localgcp.gcp.cloud import Cloud

VARIABLE: Final = "STORAGE_EMULATOR_HOST"
TIMEOUT_SECONDS: Final = 60.0
# The emulator runs on this machine, so ignore the proxies of the environment.
_OPENER: Final = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class Emulator:
    """The emulator's buckets and objects."""

    base: str

    @staticmethod
    def of(cloud: Cloud) -> Emulator:
        """Return the emulator at the address ``STORAGE_EMULATOR_HOST``. Raises RefusedError."""
        host = cloud.environment.get(VARIABLE, "").rstrip("/")
        if not host:
            raise RefusedError(
                f"the environment variable {VARIABLE} is not set, so the plugin cannot find the "
                "local object storage. Hint: run pulumi with `vt local up` or in `vt local shell`"
            )
        return Emulator(host if "://" in host else f"http://{host}")

    def create_bucket(self, project: str, name: str, location: str) -> None:
        """Create a bucket unless a bucket of this name exists."""
        body = {"name": name, "location": location}
        url = f"/storage/v1/b?{urlencode({'project': project})}"
        self._call("POST", url, json.dumps(body).encode(), absent=409)

    def has_bucket(self, name: str) -> bool:
        """Return whether the bucket exists."""
        return self._call("GET", f"/storage/v1/b/{quote(name, safe='')}") is not None

    def delete_bucket(self, name: str) -> None:
        """Delete an empty bucket, if it exists."""
        self._call("DELETE", f"/storage/v1/b/{quote(name, safe='')}")

    def objects(self, bucket: str) -> Iterator[str]:
        """Yield the names of the objects in a bucket. Raises UnlistableBucketError."""
        token = ""
        while True:
            query = urlencode({"maxResults": 1000, **({"pageToken": token} if token else {})})
            page = self._call("GET", f"/storage/v1/b/{quote(bucket, safe='')}/o?{query}")
            if page is None:
                if self.has_bucket(bucket):
                    raise UnlistableBucketError(bucket)
                return
            yield from (item["name"] for item in page.get("items", ()))
            token = page.get("nextPageToken", "")
            if not token:
                return

    def upload(
        self, bucket: str, metadata: dict[str, Any], content: bytes
    ) -> dict[str, Any] | None:
        """Write an object; return its metadata, or None if the bucket does not exist."""
        boundary = uuid4().hex
        head = (
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n"
            f"{json.dumps(metadata)}\r\n--{boundary}\r\n"
            f"Content-Type: {metadata['contentType']}\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        url = f"/upload/storage/v1/b/{quote(bucket, safe='')}/o?uploadType=multipart"
        return self._call("POST", url, body, f"multipart/related; boundary={boundary}")

    def object(self, bucket: str, name: str) -> dict[str, Any] | None:
        """Return the metadata of an object, or None for a missing object."""
        return self._call("GET", _object_url(bucket, name))

    def delete_object(self, bucket: str, name: str) -> None:
        """Delete an object, if it exists."""
        self._call("DELETE", _object_url(bucket, name))

    def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        absent: int = 404,
    ) -> dict[str, Any] | None:
        request = Request(self.base + path, body, {"Content-Type": content_type}, method=method)
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as response:
                answer = response.read()
        except HTTPError as error:
            if error.code == absent:
                return None
            raise RefusedError(
                f"the local object storage refused {method} {path}: HTTP {error.code} "
                f"{' '.join(error.read().decode(errors='replace').split())[:300]}"
            ) from error
        except (URLError, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise RefusedError(
                f"the local object storage at {self.base} does not answer ({reason}). "
                "Hint: start the local cloud with `vt local up`"
            ) from error
        return json.loads(answer) if answer.strip() else {}


def _object_url(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
