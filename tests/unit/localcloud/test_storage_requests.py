"""Which requests of Cloud Storage reach the emulator, and in which form."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from localgcp.errors import RefusedRequestError
from localgcp.storage_requests import (
    StorageRequest,
    accepted,
    condition_source,
    is_content,
    unmet_condition,
)

OBJECT = "/storage/v1/b/b-1/o/x"
UPLOAD = "/upload/storage/v1/b/b-1/o"
SLASH = "an object's name begins with a slash."
DOTS = "a name has a part `..`."


def request(
    verb: str = "GET", target: str = OBJECT, body: Any = None, **headers: str
) -> StorageRequest:
    data = json.dumps(body).encode() if isinstance(body, dict | list) else body
    return StorageRequest(verb, target, {k.replace("_", "-"): v for k, v in headers.items()}, data)


def refused(given: StorageRequest) -> tuple[int, str]:
    with pytest.raises(RefusedRequestError) as told:
        accepted(given)
    return told.value.status, str(told.value)


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        ("/storage/v1/b", "/storage/v1/b"),
        ("/storage/v1/b?project=p&prefix=", "/storage/v1/b?project=p&prefix="),
        ("/storage/v1/b/b-1/o?prefix=a/b&x=%41", "/storage/v1/b/b-1/o?prefix=a%2Fb&x=A"),
        ("/storage/v1/b/b-1/o?", "/storage/v1/b/b-1/o"),
        ("/storage/v1/b/b-1/o/a%2Fb?alt=media", "/storage/v1/b/b-1/o/a%2Fb?alt=media"),
        ("/_internal/healthcheck?name=../x", "/_internal/healthcheck"),
    ],
)
def test_what_reads_goes_on_with_one_encoding_of_its_query(target: str, wanted: str) -> None:
    assert accepted(request(target=target)) == request(target=wanted)


def encoded(text: str, times: int) -> str:
    for _ in range(times):
        text = text.replace("%", "%25").replace(".", "%2e").replace("/", "%2f")
    return text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("storage/v1/b", "the target is no path."),
        ("http://other/storage/v1/b", "the target is no path."),
        ("/storage/v1/b/b-1/o/ä", "the target is no path."),
        ("/storage/v1/b/b-1/o/a\tb", "the target is no path."),
        ("/storage/v1/b/b-1/o/x#y", "the path has # or a backslash."),
        ("/storage/v1/b/b-1/o?x=#", "the path has # or a backslash."),
        ("/storage/v1/b/b-1/o/a\\b", "the path has # or a backslash."),
        ("/storage/v1/b/b-1/o/a%00", "a name has a NUL."),
        ("/storage/v1/b/b-1/o/../x", DOTS),
        ("/storage/v1/b/b-1/o/a%5C..%5Cb", DOTS),
        *((f"/storage/v1/b/b-1/o/{encoded('a/../b', times)}", DOTS) for times in range(1, 6)),
        ("/b-1/../x", DOTS),
        ("/storage/v1/b/b-1/o//etc", SLASH),
        ("/storage/v1/b/b-1/o/%2Fetc", SLASH),
        ("/storage/v1/b/b-1/o/%5Cetc", SLASH),
        ("/storage/v1/b/b-1/o/.", SLASH),
        ("/b-1//etc", SLASH),
        ("/storage/v1/b/_x", "'_x' is no name of a bucket."),
        ("/storage/v1/b/a%2Fb/o", "'a%2Fb' is no name of a bucket."),
        (f"/storage/v1/b/-{'x' * 90}", f"'-{'x' * 79}' is no name of a bucket."),
        ("/storage/v1/b/b-1/o/a/rewriteTo/b/_y/o/c", "'_y' is no name of a bucket."),
        ("/storage/v1/b/b-1/o/a/copyTo/b/_y/o/c", "'_y' is no name of a bucket."),
        ("/_x/object", "'_x' is no name of a bucket."),
        (f"{UPLOAD}?name=/etc", SLASH),
        (f"{UPLOAD}?NAME=a/../b", DOTS),
        (f"{UPLOAD}?name=a&name=%5Cb", SLASH),
        (f"{UPLOAD}?name=.", DOTS),
        (f"{UPLOAD}?name=%2500", "a name has a NUL."),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(target: str, said: str) -> None:
    assert refused(request(target=target)) == (400, said)


@pytest.mark.parametrize(
    ("verb", "target", "headers", "wanted"),
    [
        ("GET", OBJECT, {}, True),
        ("DELETE", OBJECT, {}, True),
        ("PATCH", OBJECT, {}, False),
        ("POST", "/storage/v1/b", {}, False),
        ("POST", UPLOAD, {}, True),
        ("POST", f"{UPLOAD}?uploadType=media", {}, True),
    ],
)
def test_content_of_an_object_names_nothing(
    verb: str, target: str, headers: dict[str, str], wanted: bool
) -> None:
    assert is_content(StorageRequest(verb, target, headers)) is wanted


@pytest.mark.parametrize(
    ("verb", "target"),
    [
        ("PUT", "/upload/resumable/id?x=a/b"),  # as it is
        ("POST", f"{UPLOAD}?uploadType=media&name=a%2Fb"),
        ("PUT", f"{UPLOAD}?uploadType=resumable&upload_id=1"),
        ("POST", f"{UPLOAD}?uploadType=multipart&name=a"),
        ("PUT", "/b-1/folder/x"),
    ],
)
def test_an_upload_that_is_named_in_its_query_goes_on(verb: str, target: str) -> None:
    assert accepted(request(verb, target)) == request(verb, target)


def part(metadata: str, end: str = "\r\n") -> bytes:
    """A multipart body of metadata and content."""
    lines = ["--B", "Content-Type: application/json", "", metadata, "--B", "", "data", "--B--"]
    return end.join(lines).encode()


def upload(body: Any, kind: str = "resumable", **headers: str) -> StorageRequest:
    return request("POST", f"{UPLOAD}?uploadType={kind}", body, **headers)


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        (upload({"name": "../x"}), 400, DOTS),
        (upload({"name": "/x"}), 400, SLASH),
        (upload({"name": ""}), 400, "the upload names no object."),
        (upload({"name": 5}), 400, "the upload names no object."),
        *((upload({"name": f"a{half}b"}), 400, "a name is no text of UTF-8.")
          for half in ("\ud800", "\udbff", "\udc00", "\udfff")),
        (upload([]), 400, "the upload names no object."),
        (upload(None), 400, "the metadata is no JSON."),
        (upload(b"{"), 400, "the metadata is no JSON."),
        (upload(b"[" * 100_000), 400, "the metadata is no JSON."),
        (upload(part("{}"), "multipart"), 400, "the multipart body has no boundary."),
        (upload(part('{"name": "../x"}'), "multipart", content_type="x; boundary=B"), 400, DOTS),
        (upload(b"--B", "multipart", content_type="x; boundary=B"), 400,
         "the multipart body has no metadata."),
        (upload(b"--B\r\n--B\r\n\r\n{}", "multipart", content_type="x; boundary=B"), 400,
         "the multipart body has no metadata."),
        (request("POST", f"{UPLOAD}?uploadType=media&name=a&ifGenerationMatch=0"), 501,
         "a condition of a media upload: send it as multipart."),
        (request("POST", f"{UPLOAD}?uploadType=media&name=a&ifmetagenerationmatch=0"), 501,
         "a condition of a media upload: send it as multipart."),
        (request("PUT", "/b-1/x?uploadType=media"), 400,
         "uploads go to /upload/storage/v1/b/BUCKET/o."),
        (request("PUT", OBJECT, x_goog_upload_command="start"), 400,
         "uploads go to /upload/storage/v1/b/BUCKET/o."),
        (request("POST", "/b-1/x?X-Goog-Algorithm=a"), 400,
         "uploads go to /upload/storage/v1/b/BUCKET/o."),
        (request("POST", "/b-1/x"), 400, "forms and other writes than PUT /BUCKET/OBJECT."),
        (request("PUT", "/b-1"), 400, "forms and other writes than PUT /BUCKET/OBJECT."),
    ],
)  # fmt: skip
def test_an_upload_that_names_something_else_is_refused(
    given: StorageRequest, status: int, said: str
) -> None:
    assert refused(given) == (status, said)


@pytest.mark.parametrize(
    ("verb", "target", "body", "wanted"),
    [
        ("PATCH", OBJECT, b'{"a": 1, "a": 2}', b'{"a": 2}'),
        ("PATCH", OBJECT, b"", b""),
        ("POST", "/storage/v1/b?project=p", b'{"name":"b-2"}', b'{"name": "b-2"}'),
        ("POST", "/storage/v1/b/b-1/o/x/compose", b'{"sourceObjects":[{"name":"a/b"}]}',
         b'{"sourceObjects": [{"name": "a/b"}]}'),
        ("PATCH", "/storage/v1/b/b-1", b'{"name":"a/b"}', b'{"name": "a/b"}'),
    ],
)  # fmt: skip
def test_json_is_written_anew(verb: str, target: str, body: bytes, wanted: bytes) -> None:
    assert accepted(request(verb, target, body)) == request(verb, target, wanted)


@pytest.mark.parametrize(
    ("verb", "target", "body", "said"),
    [
        ("PATCH", OBJECT, b'{"name": "a/../b"}', DOTS),
        ("PATCH", OBJECT, b'{"a": {"Name": "/b"}}', SLASH),
        ("POST", f"{OBJECT}/compose", b'{"a": [{"name": "x"}, {"name": "/b"}]}', SLASH),
        ("POST", "/storage/v1/b", b'{"name": "a/b"}', "'a/b' is no name of a bucket."),
        ("POST", "/storage/v1/b/", b'{"name": "a"}', "'' is no name of a bucket."),
        ("PATCH", OBJECT, b"name=x", "the metadata is no JSON."),
    ],
)
def test_a_name_in_json_that_leads_elsewhere_is_refused(
    verb: str, target: str, body: bytes, said: str
) -> None:
    assert refused(request(verb, target, body)) == (400, said)


def test_metadata_is_read_or_refused_however_deep_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: Any = "x"
    for _ in range(5000):  # deeper than this interpreter's own parser would go
        deep = [deep]
    monkeypatch.setattr(json, "loads", lambda _text: deep)
    assert refused(request("PATCH", OBJECT, b"{}")) == (400, "the metadata is nested too deeply.")


def test_a_compressed_body_is_read_and_goes_on_in_the_clear() -> None:
    packed = gzip.compress(b'{"a":1}')
    given = request("PATCH", OBJECT, packed, content_encoding="GZIP", x="y")
    assert accepted(given) == request("PATCH", OBJECT, b'{"a": 1}', x="y")
    for body, said in (
        (b"{}", "the body is no gzip."),
        (packed[:-9], "the body is cut short, or larger than 64 MiB."),
    ):
        given = request("PATCH", OBJECT, body, content_encoding="gzip")
        assert refused(given) == (400, said)


def batch(*requests: str) -> StorageRequest:
    lines = [
        f"--B\r\nContent-Type: application/http\r\nContent-ID: <b+{number}>\r\n\r\n{each}\r\n"
        for number, each in enumerate(requests)
    ]
    kind = "multipart/mixed; boundary=B"
    return request("POST", "/batch", "".join([*lines, "--B--"]).encode(), content_type=kind)


def test_each_request_of_a_batch_is_written_anew() -> None:
    given = batch(
        "DELETE /storage/v1/b/b-1/o/x?generation=1 HTTP/1.1\r\nHost: h\r\n\r\n",
        'PATCH http://h/storage/v1/b/b-1/o/y HTTP/1.1\r\nX: y\r\n\r\n{"a":1,"a":2}',
    )
    found = accepted(given)
    assert (found.verb, found.target) == ("POST", "/batch/storage/v1")
    assert found.headers == {"content-type": "multipart/mixed; boundary=batch-of-the-local-cloud"}
    assert found.body == (
        b"--batch-of-the-local-cloud\r\nContent-Type: application/http\r\nContent-ID: <b+0>\r\n\r\n"
        b"DELETE /storage/v1/b/b-1/o/x?generation=1 HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 0\r\n\r\n\r\n"
        b"--batch-of-the-local-cloud\r\nContent-Type: application/http\r\nContent-ID: <b+1>\r\n\r\n"
        b"PATCH /storage/v1/b/b-1/o/y HTTP/1.1\r\nHost: localhost\r\n"
        b'Content-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 2}\r\n'
        b"--batch-of-the-local-cloud--\r\n"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (request("POST", "/batch", b"x", content_type="text/plain"),
         "the batch is no multipart body."),
        (batch("GET /b-1/x HTTP/1.1\r\n\r\n"), "a batch has requests of /storage/v1/ only."),
        (batch("GET /storage/v1/b/b-1\r\n\r\n"), "a batch has requests of /storage/v1/ only."),
        (batch("GET /storage/v1/b/b-1/o/%2e%2e HTTP/1.1\r\n\r\n"), DOTS),
        (batch("GET http://[x/storage/v1/b/b-1 HTTP/1.1\r\n\r\n"),
         "the target of a request in a batch is no path."),
    ],
)  # fmt: skip
def test_a_batch_has_requests_that_would_be_taken_alone(given: StorageRequest, said: str) -> None:
    assert refused(given) == (400, said)


def test_a_condition_in_a_batch_is_refused() -> None:
    given = batch("DELETE /storage/v1/b/b-1/o/x?ifGenerationMatch=1 HTTP/1.1\r\n\r\n")
    assert refused(given) == (501, "a condition in a batch: send the request by itself.")


@pytest.mark.parametrize(
    ("verb", "query", "status"),
    [
        ("DELETE", "ifGenerationMatch=5&ifMetagenerationMatch=1", None),
        ("DELETE", "ifGenerationMatch=5&ifMetagenerationMatch=2", 412),
        ("GET", "ifGenerationNotMatch=4", None),
        ("GET", "ifGenerationNotMatch=5", 304),
        ("PATCH", "ifGenerationNotMatch=5", 412),
    ],
)
def test_conditions_are_on_the_generation_and_the_metadata(
    verb: str, query: str, status: int | None
) -> None:
    given = request(verb, f"/download{OBJECT}?generation=5&{query}")
    assert condition_source(given) == f"{OBJECT}?generation=5"
    assert unmet_condition(given, {"generation": "5"}) == status


def test_a_condition_that_is_no_number_is_refused() -> None:
    with pytest.raises(RefusedRequestError, match="ifGenerationMatch is no number"):
        unmet_condition(request(target=f"{OBJECT}?ifGenerationMatch=x"), {})
