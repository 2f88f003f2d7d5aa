"""Checks requests of Cloud Storage's API and rewrites them for the emulator (pure).

The emulator joins names of buckets and objects to a path in its folder. Every name is checked here,
and the request is written anew, so that the emulator finds no other name in it than the one that
was checked: a query has one encoding, a JSON body no key twice, an upload its name in the query.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

from localgcp.errors import RefusedRequestError

HEALTHCHECK: Final = "/_internal/healthcheck"

_BATCH: Final = re.compile(r"/batch(/storage/v1)?/?")
#: Paths of requests that create objects and may have the object's name in the body.
_INSERT: Final = re.compile(r"(/upload|/resumable/upload)?/storage/v1/b/[^/]+/o/?")
_CHUNK: Final = re.compile(r"/upload/resumable/[^/]+")
_API: Final = re.compile(r"(/(upload|resumable/upload|download))?/storage/v1(/|$)")
_OBJECT: Final = re.compile(r"(?:/download)?(/storage/v1/b/[^/]+/o/[^/]+)")
#: Precondition of the JSON API -> field of the object, and whether the field must have the value
#: (docs.cloud.google.com/storage/docs/request-preconditions).
_CONDITIONS: Final = {
    "ifGenerationMatch": ("generation", True),
    "ifGenerationNotMatch": ("generation", False),
    "ifMetagenerationMatch": ("metageneration", True),
    "ifMetagenerationNotMatch": ("metageneration", False),
}
_BUCKETS: Final = re.compile(r"(?:/storage/v1|/copyTo|/rewriteTo)/b/([^/]*)")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ABSOLUTE: Final = re.compile(r"/b/[^/]*/o[/\\]{2}|^/[^/\\]*[/\\]{2}|/o/\.$")
_BOUNDARY: Final = re.compile(r"""boundary=(?:"([^"]+)"|'([^']+)'|([^;\s]+))""", re.IGNORECASE)
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")
_UPLOADS: Final = frozenset({"x-goog-upload-protocol", "x-goog-upload-command"})
_WRITING: Final = frozenset({"POST", "PUT", "PATCH"})
#: Number of times that a text is decoded to find a path: several clients in use encode twice.
_ROUNDS: Final = 5
#: Maximum bytes of metadata; the service itself accepts 8 MiB.
_MAX_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class StorageRequest:
    """A request; ``headers`` have lower-case names. ``body`` is None for an object's content."""

    verb: str
    target: str
    headers: Mapping[str, str]
    body: bytes | None = None


def is_content(request: StorageRequest) -> bool:
    """Return whether the body is only an object's content, without names."""
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
        if _BATCH.fullmatch(path):
            text = (
                "the local cloud does not serve batches of storage requests: send each request by "
                "itself."
            )
            raise RefusedRequestError(400, text)
        if _INSERT.fullmatch(path):
            return _insertion(request, path, pairs)
        if _CHUNK.fullmatch(path):
            return request
        if _upload(request, pairs):
            raise RefusedRequestError(400, "send uploads to /upload/storage/v1/b/BUCKET/o.")
        if _API.match(path):
            request = _with_plain_json(request)
        elif request.verb != "PUT" or path.count("/") < 2:
            raise RefusedRequestError(
                400,
                "the XML API of the local cloud supports no other write than PUT /BUCKET/OBJECT.",
            )
    return replace(request, target=_joined(path, pairs))


def condition_source(request: StorageRequest) -> str | None:
    """Return the path of the object whose preconditions must be checked first, else None.

    The emulator ignores them.
    """
    path, pairs = _split(request.target)
    match = _OBJECT.fullmatch(path)
    if match is None or _CONDITIONS.keys().isdisjoint(dict(pairs)):
        return None
    return _joined(match[1], [pair for pair in pairs if pair[0] == "generation"])


def unmet_condition(request: StorageRequest, metadata: Mapping[str, Any]) -> int | None:
    """Return the HTTP status of the precondition that the object does not meet; else None.

    Raises RefusedRequestError.
    """
    for key, value in _split(request.target)[1]:
        if key not in _CONDITIONS:
            continue
        if not re.fullmatch(r"[0-9]{1,19}", value):
            raise RefusedRequestError(400, f"{key} is not a number.")
        field, wanted = _CONDITIONS[key]
        # The emulator counts no changes of metadata: each object has the first number.
        if (int(metadata.get(field) or 1) == int(value)) is not wanted:
            return 412 if wanted or request.verb not in ("GET", "HEAD") else 304
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
        if _ABSOLUTE.search(text):
            raise RefusedRequestError(400, "an object's name must not begin with a slash.")
    # What an API's path begins with could be a bucket's name, too.
    for bucket in (path.split("/")[1], *_BUCKETS.findall(path)):
        _check_bucket(bucket)


def _check_object(name: str) -> None:
    for text in _decodings(name):
        _check_segments(text)
        if text.startswith(("/", "\\")):
            raise RefusedRequestError(400, "an object's name must not begin with a slash.")


def _check_bucket(name: str) -> None:
    if not _BUCKET.fullmatch(name):
        raise RefusedRequestError(400, f"{name[:80]!r} is not a valid bucket name.")


def _check_segments(text: str) -> None:
    if "\0" in text:
        raise RefusedRequestError(400, "a name must not contain a NUL character.")
    if ".." in re.split(r"[/\\]", text) or text == ".":
        raise RefusedRequestError(400, "a name must not have a segment `..`.")


def _decodings(text: str) -> list[str]:
    decodings = [text]
    while (
        len(decodings) <= _ROUNDS
        and (decoded := unquote(decodings[-1], errors="replace")) != decodings[-1]
    ):
        decodings.append(decoded)
    return decodings


def _upload(request: StorageRequest, pairs: list[tuple[str, str]]) -> str:
    """Return the upload type that the emulator detects; empty if the request is not an upload."""
    query = dict(reversed(pairs))  # the first of a name counts
    if kind := query.get("uploadType", ""):
        return kind
    signed = "X-Goog-Algorithm" in query and request.verb == "POST"
    return "resumable" if signed or not _UPLOADS.isdisjoint(request.headers) else ""


def _insertion(request: StorageRequest, path: str, pairs: list[tuple[str, str]]) -> StorageRequest:
    kind = _upload(request, pairs)
    if kind == "media" and any("generationmatch" in key.lower() for key, _value in pairs):
        raise RefusedRequestError(
            501, "conditions are not supported for media uploads: send a multipart upload."
        )
    named = any(key == "name" and value for key, value in pairs)
    if is_content(request) or named:
        return replace(request, target=_joined(path, pairs))
    request = _decompressed(request)
    body = request.body or b""
    metadata = _first_part(request) if kind == "multipart" else body
    name = _name_of(_parsed(metadata))
    _check_object(name)
    kept = [pair for pair in pairs if pair[0] != "name"]
    return replace(request, target=_joined(path, [*kept, ("name", name)]))


def _name_of(metadata: Any) -> str:
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise RefusedRequestError(400, "the upload has no object name.")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise RefusedRequestError(400, "an object's name is not valid UTF-8.")
    return name


def _first_part(request: StorageRequest) -> bytes:
    """Return the first part of a multipart upload.

    Lines end with CR LF, as RFC 2046 says, or with LF alone, as gcloud writes them. The emulator
    takes both, too; a name that it would read otherwise does not count beside that of the query.
    """
    mark = b"--" + _boundary(request)
    body = request.body or b""
    first = body.partition(mark)[2]
    match = _BLANK_LINE.search(first)
    if match is None or mark in first[: match.end()]:
        raise RefusedRequestError(400, "the multipart body has no metadata.")
    end = re.search(rb"\r?\n" + re.escape(mark), first[match.end() :])
    return first[match.end() :][: end.start() if end else None]


def _boundary(request: StorageRequest) -> bytes:
    match = _BOUNDARY.search(request.headers.get("content-type", ""))
    if match is None:
        raise RefusedRequestError(400, "the multipart body has no boundary.")
    return next(filter(None, match.groups())).encode()


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
        body = reader.decompress(request.body, _MAX_BYTES)
    except zlib.error:
        raise RefusedRequestError(400, "the body is not valid gzip data.") from None
    if not reader.eof:
        raise RefusedRequestError(400, "the body is truncated, or larger than 64 MiB.")
    kept = {name: text for name, text in request.headers.items() if name != "content-encoding"}
    return replace(request, headers=kept, body=body)
