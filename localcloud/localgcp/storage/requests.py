"""Check requests to the Cloud Storage API, and rewrite them for the emulator.

The emulator joins names to paths, so every name is checked, and the rewritten request contains only
checked names: one encoding of the query, no duplicate JSON keys, an upload's name in the query.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

from localgcp.errors import RefusedRequestError

HEALTHCHECK: Final = "/_internal/healthcheck"

#: Paths of requests that create objects, with the object's name in the query or the body.
_INSERT: Final = re.compile(r"(/upload|/resumable/upload)?/storage/v1/b/[^/]+/o/?")
_CHUNK: Final = re.compile(r"/upload/resumable/[^/]+")
_API: Final = re.compile(r"(/(upload|resumable/upload|download))?/storage/v1(/|$)")
#: Precondition of the JSON API -> field of the object, and whether the field must equal the value
#: (docs.cloud.google.com/storage/docs/request-preconditions).
_CONDITIONS: Final = {
    "ifGenerationMatch": ("generation", True),
    "ifGenerationNotMatch": ("generation", False),
    "ifMetagenerationMatch": ("metageneration", True),
    "ifMetagenerationNotMatch": ("metageneration", False),
}
#: Names and values of headers.
Headers = list[tuple[str, str]]
_WRITING: Final = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True)
class StorageRequest:
    """A request of Cloud Storage's API."""

    verb: str
    target: str
    headers: Mapping[str, str]
    """Headers with lower-case names."""
    body: bytes | None = None
    """The body, or None for an object's content."""


class Answer(NamedTuple):
    """Status, headers and body of an answer; the body of a large answer is a file."""

    status: int
    headers: Headers
    body: bytes | IO[bytes] = b""


def is_content(request: StorageRequest) -> bool:
    """Return whether the body is an object's content without names."""
    path, pairs = _split(request.target)
    if request.verb not in _WRITING or _CHUNK.fullmatch(path):
        return True
    if _INSERT.fullmatch(path):
        return _upload(request, pairs) in ("", "media") or "upload_id" in dict(pairs)
    return not _API.match(path)


def accepted(request: StorageRequest) -> StorageRequest:
    """Return the request for the emulator. Raises RefusedRequestError."""
    path, pairs = _split(request.target)
    if path == HEALTHCHECK and request.verb == "GET":
        return replace(request, target=path)
    _check_path(path)
    for key, value in pairs:
        if key.lower() == "name":
            _check_object(value)
    if request.verb in _WRITING:
        if re.fullmatch(r"/batch(/storage/v1)?/?", path):
            text = "the local cloud does not serve batches of storage requests: send each request"
            raise RefusedRequestError(400, f"{text} by itself.")
        if _INSERT.fullmatch(path):
            return _insertion(request, path, pairs)
        if _CHUNK.fullmatch(path):
            return request
        if _upload(request, pairs):
            raise RefusedRequestError(400, "send uploads to /upload/storage/v1/b/BUCKET/o.")
        if _API.match(path):
            request = _with_plain_json(request)
        elif request.verb != "PUT" or path.count("/") < 2:
            text = "the XML API of the local cloud supports no other write than PUT /BUCKET/OBJECT."
            raise RefusedRequestError(400, text)
    return replace(request, target=_joined(path, pairs))


def condition_source(request: StorageRequest) -> str | None:
    """Return the path of the object to which a request's preconditions refer, or None."""
    path, pairs = _split(request.target)
    match = re.fullmatch(r"(?:/download)?(/storage/v1/b/[^/]+/o/[^/]+)", path)
    if match is None or _CONDITIONS.keys().isdisjoint(dict(pairs)):
        return None
    return _joined(match[1], [pair for pair in pairs if pair[0] == "generation"])


def unmet_condition(request: StorageRequest, metadata: Mapping[str, Any]) -> int | None:
    """Return the HTTP status for an unmet precondition, or None. Raises RefusedRequestError."""
    for key, value in _split(request.target)[1]:
        if key not in _CONDITIONS:
            continue
        if not re.fullmatch(r"[0-9]{1,19}", value):
            raise RefusedRequestError(400, f"{key} is not a number.")
        field, must_equal = _CONDITIONS[key]
        # The emulator does not count changes of metadata, so each metageneration is 1.
        if (int(metadata.get(field) or 1) == int(value)) is not must_equal:
            return 412 if must_equal or request.verb not in ("GET", "HEAD") else 304
    return None


def _split(target: str) -> tuple[str, list[tuple[str, str]]]:
    if not target.startswith("/") or not target.isascii() or not target.isprintable():
        raise RefusedRequestError(400, "the request target is not a path.")
    path, _, query = target.partition("?")
    if "#" in target or "\\" in path:
        raise RefusedRequestError(400, "the path contains `#` or a backslash.")
    return path, parse_qsl(query, keep_blank_values=True, errors="surrogateescape")


def _joined(path: str, pairs: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


def _check_path(path: str) -> None:
    for text in _decodings(path):
        _check_segments(text)
        if re.search(r"/b/[^/]*/o[/\\]{2}|^/[^/\\]*[/\\]{2}|/o/\.$", text):
            raise RefusedRequestError(400, "an object's name must not begin with a slash.")
    # The first part of an API's path could be a bucket's name.
    buckets = re.findall(r"(?:/storage/v1|/copyTo|/rewriteTo)/b/([^/]*)", path)
    for bucket in (path.split("/")[1], *buckets):
        _check_bucket(bucket)


def _check_object(name: str) -> None:
    for text in _decodings(name):
        _check_segments(text)
        if text.startswith(("/", "\\")):
            raise RefusedRequestError(400, "an object's name must not begin with a slash.")


def _check_bucket(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise RefusedRequestError(400, f"{name[:80]!r} is not a valid bucket name.")


def _check_segments(text: str) -> None:
    if "\0" in text:
        raise RefusedRequestError(400, "a name must not contain a NUL character.")
    if ".." in re.split(r"[/\\]", text) or text == ".":
        raise RefusedRequestError(400, "a name must not have a segment `..`.")


def _decodings(text: str) -> list[str]:
    decodings = [text]
    for _ in range(5):  # some clients encode names twice
        decodings.append(unquote(decodings[-1], errors="replace"))
    return decodings


def _upload(request: StorageRequest, pairs: list[tuple[str, str]]) -> str:
    # Return the type that the emulator detects; "" for other requests.
    query = dict(reversed(pairs))  # the first value of each key is used
    if kind := query.get("uploadType", ""):
        return kind
    is_resumable = "X-Goog-Algorithm" in query and request.verb == "POST"
    headers = {"x-goog-upload-protocol", "x-goog-upload-command"}
    return "resumable" if is_resumable or headers & request.headers.keys() else ""


def _insertion(request: StorageRequest, path: str, pairs: list[tuple[str, str]]) -> StorageRequest:
    kind = _upload(request, pairs)
    if kind == "media" and any("generationmatch" in key.lower() for key, _value in pairs):
        text = "conditions are not supported for media uploads: send a multipart upload."
        raise RefusedRequestError(501, text)
    has_name = any(key == "name" and value for key, value in pairs)
    if is_content(request) or has_name:
        return replace(request, target=_joined(path, pairs))
    request = _decompressed(request)
    body = request.body or b""
    metadata = _first_part(request) if kind == "multipart" else body
    document = _parsed(metadata)
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str) or not name:
        raise RefusedRequestError(400, "the upload has no object name.")
    if re.search(r"[\ud800-\udfff]", name):
        raise RefusedRequestError(400, "an object's name is not valid UTF-8.")
    _check_object(name)
    kept = [pair for pair in pairs if pair[0] != "name"]
    return replace(request, target=_joined(path, [*kept, ("name", name)]))


def _first_part(request: StorageRequest) -> bytes:
    # Lines end with CR LF (RFC 2046), or with LF as in requests of gcloud.
    form = r"""(?i)boundary=(?:"([^"]+)"|'([^']+)'|([^;\s]+))"""
    boundary = re.search(form, request.headers.get("content-type", ""))
    if boundary is None:
        raise RefusedRequestError(400, "the multipart body has no boundary.")
    mark = b"--" + next(filter(None, boundary.groups())).encode()
    first = (request.body or b"").partition(mark)[2]
    match = re.search(rb"\r?\n\r?\n", first)
    if match is None or mark in first[: match.end()]:
        raise RefusedRequestError(400, "the multipart body has no metadata.")
    end = re.search(rb"\r?\n" + re.escape(mark), first[match.end() :])
    return first[match.end() :][: end.start() if end else None]


def _with_plain_json(request: StorageRequest) -> StorageRequest:
    request = _decompressed(request)
    if not request.body:
        return request
    data = _parsed(request.body)
    path = request.target.partition("?")[0]
    bucket = request.verb == "POST" and path.rstrip("/") == "/storage/v1/b"
    try:
        _check_names(data, bucket=bucket)
        return replace(request, body=json.dumps(data).encode())
    except RecursionError:
        raise RefusedRequestError(400, "the metadata is nested too deeply.") from None


def _check_names(data: Any, *, bucket: bool) -> None:
    if isinstance(data, list):
        for item in data:
            _check_names(item, bucket=bucket)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key.lower() == "name" and isinstance(value, str):
                (_check_bucket if bucket else _check_object)(value)
            else:
                _check_names(value, bucket=bucket)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedRequestError(400, "the metadata is not valid JSON.") from None


def _decompressed(request: StorageRequest) -> StorageRequest:
    if request.headers.get("content-encoding", "").lower() != "gzip" or not request.body:
        return request
    try:
        reader = zlib.decompressobj(wbits=31)
        body = reader.decompress(request.body, 64 << 20)
    except zlib.error:
        raise RefusedRequestError(400, "the body is not valid gzip data.") from None
    if not reader.eof:
        raise RefusedRequestError(400, "the body is truncated, or larger than 64 MiB.")
    kept = {name: text for name, text in request.headers.items() if name != "content-encoding"}
    return replace(request, headers=kept, body=body)
