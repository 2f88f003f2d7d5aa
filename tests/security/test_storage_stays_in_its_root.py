"""Tests that no request of Cloud Storage's API reads or writes a file outside of the home's
storage.
"""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage

from localgcp.gcp.cloud import Emulator
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.proxy import StorageFront

SECRET = "the secret of a file outside"


@dataclass(frozen=True)
class Attack:
    """A request that leaves the root if names are only joined to a path."""

    verb: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def media(name: str) -> Attack:
    """Return an upload with the object name in the query."""
    return Attack("POST", f"/upload/storage/v1/b/box/o?uploadType=media&name={name}", b"evil")


def multipart(metadata: str | bytes, query: str = "", boundary: str = "x", **more: str) -> Attack:
    """Return an upload with the object name in the metadata of its body."""
    text = metadata if isinstance(metadata, bytes) else metadata.encode()
    mark = b"--" + boundary.strip("'\"").encode()
    body = b"%s\r\nContent-Type: application/json\r\n\r\n%s\r\n" % (mark, text)
    body += b"%s\r\nContent-Type: text/plain\r\n\r\nevil\r\n%s--\r\n" % (mark, mark)
    headers = {"Content-Type": f"multipart/related; boundary={boundary}", **more}
    if more.get("Content-Encoding") == "gzip":
        body = gzip.compress(body)
    return Attack("POST", f"/upload/storage/v1/b/box/o?uploadType=multipart{query}", body, headers)


def bare_lines(attack: Attack) -> Attack:
    """Return the same upload with LF in place of CR LF, like gcloud's."""
    return replace(attack, body=attack.body.replace(b"\r\n", b"\n"))


def mixed_lines() -> Attack:
    """Return an upload with a second name after the metadata, for parsers that require CR LF."""
    attack = bare_lines(multipart(named(UP)))
    return replace(attack, body=attack.body + b'\r\n\r\n{"name": "a"}\r\n--x--\r\n')


def named(name: str) -> str:
    return json.dumps({"name": name})


def batch(line: str, body: str = "") -> Attack:
    """Return a request inside of a batch."""
    part = f"{line} HTTP/1.1\r\nContent-Type: application/json\r\n"
    part += f"Content-Length: {len(body)}\r\n\r\n{body}"
    text = f"--x\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\n{part}\r\n--x--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=x"}
    return Attack("POST", "/batch/storage/v1", text.encode(), headers)


def form(key: str) -> Attack:
    """Return the request of a web form."""
    text = f'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\n{key}\r\n'
    text += (
        '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nevil\r\n--x--\r\n'
    )
    return Attack(
        "POST", "/box", text.encode(), {"Content-Type": "multipart/form-data; boundary=x"}
    )


O = "/storage/v1/b/box/o"  # noqa: E741
UP = "../../escaped"
JSON = {"Content-Type": "application/json"}
COMPOSE = {"sourceObjects": [{"name": "../../outside.txt"}], "destination": {}}
ATTACKS = {
    "read, slashes encoded": Attack("GET", f"{O}/..%2F..%2Foutside.txt?alt=media"),
    "read, all encoded": Attack("GET", f"{O}/%2e%2e%2F%2e%2e%2Foutside.txt?alt=media"),
    "read, encoded twice": Attack("GET", f"{O}/%252e%252e%252F%252e%252e%252Foutside.txt"),
    "read, encoded four times": Attack("GET", f"{O}/%25252e%25252e%25252Foutside.txt"),
    "read, plain segments": Attack("GET", f"{O}/../../outside.txt?alt=media"),
    "read, backslashes": Attack("GET", f"{O}/..\\..\\outside.txt"),
    "read, backslashes encoded": Attack("GET", f"{O}/..%5C..%5Coutside.txt?alt=media"),
    "read, from within a folder": Attack("GET", f"{O}/a%2F..%2F..%2F..%2Foutside.txt?alt=media"),
    "read, NUL": Attack("GET", f"{O}/outside.txt%00.png?alt=media"),
    "read, absolute": Attack("GET", f"{O}/%2Fetc%2Fpasswd?alt=media"),
    "read, absolute and plain": Attack("GET", f"{O}//etc/passwd?alt=media"),
    "read, download address": Attack("GET", f"/download{O}/..%2F..%2Foutside.txt?alt=media"),
    "read, XML address": Attack("GET", "/box/..%2F..%2Foutside.txt"),
    "read, bucket above": Attack("GET", "/storage/v1/b/..%2F../o/outside.txt?alt=media"),
    "read, bucket of dots": Attack("GET", "/storage/v1/b/../o/outside.txt?alt=media"),
    "list, bucket above": Attack("GET", "/storage/v1/b/%2E%2E/o"),
    "delete": Attack("DELETE", f"{O}/..%2F..%2Foutside.txt"),
    "delete, bucket above": Attack("DELETE", "/storage/v1/b/..%2Fstorage"),
    "patch": Attack("PATCH", f"{O}/..%2F..%2Foutside.txt", b"{}", JSON),
    "write, media": media("..%2F..%2Fescaped"),
    "write, media and plain": media(UP),
    "write, media, encoded twice": media("..%252F..%252Fescaped"),
    "write, media, absolute": media("/tmp/escaped"),
    "write, media, NUL": media("a%00b"),
    "write, media, two names": media("a&name=" + UP),
    "write, multipart": multipart(named(UP)),
    "write, multipart, key in capitals": multipart(json.dumps({"Name": UP})),
    "write, multipart, key with an escape": multipart('{"na\\u006de": "..\\u002f../escaped"}'),
    "write, multipart, key twice": multipart('{"name": "a", "name": "../../escaped"}'),
    "write, multipart, empty name in the query": multipart(named(UP), "&name="),
    "write, multipart, boundary of gsutil": multipart(named(UP), boundary="'=x='"),
    "write, multipart, lines of gcloud": bare_lines(multipart(named(UP))),
    "write, multipart, lines of both kinds": mixed_lines(),
    "write, multipart, gzip": multipart(named(UP), **{"Content-Encoding": "gzip"}),
    "write, multipart, long metadata": multipart(json.dumps({"pad": "x" * 9000, "name": UP})),
    "write, resumable": Attack(
        "POST", f"/upload{O}?uploadType=resumable", named(UP).encode(), JSON
    ),
    "write, resumable of newer clients": Attack(
        "POST", f"/upload{O}", named(UP).encode(), {**JSON, "X-Goog-Upload-Protocol": "resumable"}
    ),
    "write, signed address": Attack("PUT", "/box/..%2F..%2Fescaped?X-Goog-Algorithm=x", b"evil"),
    "write, upload to a signed address": Attack(
        "POST", "/box/a?uploadType=resumable", named(UP).encode(), JSON
    ),
    "write, form": form(UP),
    "write, bucket above": Attack("POST", "/storage/v1/b", named("../escaped").encode(), JSON),
    "copy from outside": Attack("POST", f"{O}/..%2F..%2Foutside.txt/rewriteTo/b/box/o/copied"),
    "copy to outside": Attack("POST", f"{O}/inside/rewriteTo/b/box/o/..%2F..%2Fescaped"),
    "compose from outside": Attack(
        "POST", f"{O}/copied/compose", json.dumps(COMPOSE).encode(), JSON
    ),
    "read in a batch": batch(f"GET {O}/..%2F..%2Foutside.txt?alt=media"),
    "delete in a batch": batch(f"DELETE http://127.0.0.1{O}/..%2F..%2Foutside.txt"),
    "settings of the emulator": Attack("PUT", "/_internal/config", b'{"publicHost": "x"}', JSON),
    "another machine's address": Attack("GET", f"http://evil.example{O}/a"),
}


@pytest.fixture
def bucket(front: StorageFront, home: Home) -> storage.Bucket:
    (home.root / "outside.txt").write_text(SECRET)
    made = storage_client(front.url).create_bucket("box")
    made.blob("inside").upload_from_string(b"text")
    return made


def send(front: StorageFront, attack: Attack) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    connection.putrequest(attack.verb, attack.target, skip_host=True)
    headers = {"Host": f"127.0.0.1:{front.port}", "Content-Length": str(len(attack.body))}
    for name, value in {**headers, **attack.headers}.items():
        connection.putheader(name, value)
    connection.endheaders(attack.body)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(errors="replace")
    connection.close()
    return found


def files(home: Home) -> dict[Path, bytes]:
    """Return all files except the emulator's log, with their contents."""
    found = (path for path in home.root.parent.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found if path != home.storage_log}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_name_out_of_the_root_is_refused_before_the_emulator(
    front: StorageFront, home: Home, bucket: storage.Bucket, attack: Attack
) -> None:
    before = files(home)
    status, text = send(front, attack)
    assert status == 400, text
    assert "local cloud: " in text
    assert SECRET not in text
    assert files(home) == before
    assert not Path("/tmp/escaped").exists()


@pytest.mark.parametrize(
    "name",
    ["a..b", "..a", "a/..b/c..", "ü ö/%41", "100%", "a+b&c=d;e#f?g", "a:b", "a'(b)*", "x" * 200],
)
def test_names_similar_to_path_traversal_are_accepted(
    front: StorageFront, bucket: storage.Bucket, name: str
) -> None:
    for data, options in ((b"small", {}), (bytes(300_000), {"chunk_size": 1 << 18})):
        bucket.blob(name, **options).upload_from_string(data, retry=None)  # multipart, resumable
        assert bucket.blob(name).download_as_bytes() == data
        assert name in {blob.name for blob in bucket.list_blobs()}
        assert bucket.copy_blob(bucket.blob(name), bucket, f"{name} copy").name == f"{name} copy"
        bucket.blob(name).delete()
        assert not bucket.blob(name).exists()


def test_client_composes_and_changes_objects(front: StorageFront, bucket: storage.Bucket) -> None:
    bucket.blob("one").upload_from_string(b"1")
    both: Any = bucket.blob("both")
    both.compose([bucket.blob("one"), bucket.blob("inside")])
    assert both.download_as_bytes() == b"1text"
    both.metadata = {"team": "ml"}
    both.patch()
    assert bucket.get_blob("both").metadata == {"team": "ml"}


@pytest.mark.parametrize(
    "upload",
    [
        media("a"),
        multipart(named("a"), boundary="'=x='"),
        bare_lines(multipart(named("a"), boundary="'=x='")),
        multipart(named("a"), **{"Content-Encoding": "gzip"}),
        multipart("{}", "&name=a"),
    ],
    ids=["media", "gsutil", "gcloud", "gzip", "name in the query"],
)
def test_uploads_of_other_clients_are_stored(
    front: StorageFront, bucket: storage.Bucket, upload: Attack
) -> None:
    assert send(front, upload)[0] == 200
    assert bucket.blob("a").download_as_bytes() == b"evil"
    assert send(front, Attack("GET", "/box/a")) == (200, "evil")


def test_gcp_stand_in_stores_objects(front: StorageFront, bucket: storage.Bucket) -> None:
    emulator = Emulator(front.url)
    emulator.create_bucket("local-p1", "data-p1", "us-central1")
    metadata = {"name": "folder/a ü.txt", "contentType": "text/plain", "metadata": {"a": "b"}}
    uploaded = emulator.upload("data-p1", metadata, b"text")
    assert uploaded is not None
    assert uploaded["name"] == "folder/a ü.txt"
    assert list(emulator.objects("data-p1")) == ["folder/a ü.txt"]
    emulator.delete_object("data-p1", "folder/a ü.txt")
    emulator.delete_bucket("data-p1")
    assert not emulator.has_bucket("data-p1")
