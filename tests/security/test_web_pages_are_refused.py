"""Tests that a web page in the user's browser cannot access the local cloud's Cloud Storage.

The requests are those of a browser, header for header.
"""

from __future__ import annotations

import http.client

import pytest
from google.cloud import storage

from localgcp.storage.proxy import StorageFront

READ = "/storage/v1/b/box/o/inside?alt=media"
WRITE = "/upload/storage/v1/b/box/o?uploadType=media&name=evil"
PAGE = "https://evil.example"
#: What Chromium adds to requests of one site to another.
CROSS_SITE = {"Sec-Fetch-Site": "cross-site", "Referer": f"{PAGE}/"}
FORM = b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nevil\r\n--x--\r\n'
REQUESTS = {
    "fetch reads": ("GET", READ, {"Origin": PAGE, **CROSS_SITE}, b""),
    "fetch of a file reads": ("GET", READ, {"Origin": "null", **CROSS_SITE}, b""),
    "fetch of another port reads": (
        "GET", READ, {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, b"",
    ),
    "fetch without CORS reads": ("GET", READ, {**CROSS_SITE, "Sec-Fetch-Mode": "no-cors"}, b""),
    "an image reads": ("GET", READ, {**CROSS_SITE, "Sec-Fetch-Dest": "image"}, b""),
    "a page of this very origin reads": ("GET", READ, {"Sec-Fetch-Site": "same-origin"}, b""),
    "a link downloads": ("GET", READ, {**CROSS_SITE, "Sec-Fetch-Mode": "navigate"}, b""),
    "fetch asks before it writes": (
        "OPTIONS", WRITE, {"Origin": PAGE, "Access-Control-Request-Method": "PUT"}, b"",
    ),
    "fetch writes without asking": (
        "POST", WRITE, {"Origin": PAGE, "Content-Type": "text/plain", **CROSS_SITE}, b"evil",
    ),
    "an old browser's fetch writes": ("POST", WRITE, {"Origin": PAGE}, b"evil"),
    "a form writes": (
        "POST", "/box",
        {"Origin": PAGE, "Content-Type": "multipart/form-data; boundary=x", **CROSS_SITE}, FORM,
    ),
    "a form of a page without origin writes": (
        "POST", WRITE, {"Origin": "null", "Content-Type": "text/plain"}, b"evil",
    ),
    "a name that points here reads": ("GET", READ, {"Host": "evil.example:{port}"}, b""),
    "a name that points here writes": ("POST", WRITE, {"Host": "evil.example:{port}"}, b"evil"),
    "a name below localhost": ("GET", READ, {"Host": "evil.localhost:{port}"}, b""),
    "a name that begins like ours": ("GET", READ, {"Host": "127.0.0.1.evil.example:{port}"}, b""),
    "another port": ("GET", READ, {"Host": "127.0.0.1:1"}, b""),
    "no port": ("GET", READ, {"Host": "127.0.0.1"}, b""),
    "the machine's other address": ("GET", READ, {"Host": "0.0.0.0:{port}"}, b""),
    "no host": ("GET", READ, {"Host": ""}, b""),
}  # fmt: skip


def send(
    front: StorageFront, verb: str, target: str, headers: dict[str, str], body: bytes
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    connection.putrequest(verb, target, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": f"127.0.0.1:{front.port}"} | headers).items():
        connection.putheader(name, value.format(port=front.port))
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    return connection.getresponse()


@pytest.mark.parametrize(("verb", "target", "headers", "body"), REQUESTS.values(), ids=REQUESTS)
def test_web_page_is_refused(
    front: StorageFront, box: storage.Bucket,
    verb: str, target: str, headers: dict[str, str], body: bytes,
) -> None:  # fmt: skip
    answer = send(front, verb, target, headers, body)
    assert answer.status == 403
    assert b"secret" not in answer.read()
    assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-")]
    assert [blob.name for blob in box.list_blobs()] == ["inside"]


def test_request_with_two_host_headers_is_refused(front: StorageFront) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    connection.putrequest("GET", READ)
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_local_programs_may_use_each_name_of_this_machine(
    front: StorageFront, box: storage.Bucket, host: str
) -> None:
    answer = send(front, "GET", READ, {"Host": f"{host}:{{port}}"}, b"")
    assert (answer.status, answer.read()) == (200, b"secret")
    assert not [name for name, _ in answer.getheaders() if name.lower().startswith("access-")]
