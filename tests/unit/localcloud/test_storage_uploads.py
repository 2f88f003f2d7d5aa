"""Sessions of resumable uploads: each request's answer, and what the emulator gets at the end."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from localgcp.errors import RefusedRequestError
from localgcp.storage_requests import StorageRequest
from localgcp.storage_uploads import UNIT, Answer, Insertion, UploadSessions

PATH = "/upload/storage/v1/b/data/o"
FIRST = f"{PATH}?uploadType=resumable&name=a/b&ifGenerationMatch=0"
JSON = [("Content-Type", "application/json; charset=UTF-8")]


@pytest.fixture
def sessions(tmp_path: Path) -> UploadSessions:
    return UploadSessions(tmp_path / "uploads")


def request(verb: str, target: str, body: bytes | None = None, **headers: str) -> StorageRequest:
    return StorageRequest(verb, target, {k.replace("_", "-"): v for k, v in headers.items()}, body)


def begin(sessions: UploadSessions, body: bytes = b"", target: str = FIRST, **headers: str) -> str:
    """The id of a session."""
    answer = sessions.begin(request("POST", target, body, **headers), "http://here")
    assert answer.status == 200
    return dict(answer.headers)["X-GUploader-UploadID"]


def send(
    sessions: UploadSessions, identity: str, content: bytes = b"", verb: str = "PUT", **headers: str
) -> Any:
    """The answer to a request of a session; status and text of a refusal."""
    given = request(verb, f"{PATH}?uploadType=resumable&upload_id={identity}", **headers)
    try:
        return sessions.answer(given, io.BytesIO(content))
    except RefusedRequestError as error:
        return error.status, str(error)


@pytest.mark.parametrize(
    ("verb", "target", "bucket"),
    [
        ("POST", FIRST, "data"),
        ("POST", f"/resumable{FIRST}", "data"),
        ("POST", FIRST.replace("/o?", "/o/?"), "data"),
        ("PUT", FIRST, None),
        ("POST", FIRST.replace("resumable", "media"), None),
        ("POST", f"{FIRST}&upload_id=x", None),
        ("POST", FIRST.replace("/upload", ""), None),
        ("POST", FIRST.replace("/o?", "/o/x?"), None),
    ],
)
def test_a_session_begins_with_a_post_of_a_resumable_upload(
    sessions: UploadSessions, verb: str, target: str, bucket: str | None
) -> None:
    assert sessions.begins(request(verb, target)) == bucket


def test_a_client_is_told_where_to_send_the_content(sessions: UploadSessions) -> None:
    answer = sessions.begin(request("POST", FIRST, b""), "http://here")
    identity = answer.headers[1][1]
    assert re.fullmatch("upload-[0-9a-f]{32}", identity)
    url = f"http://here{PATH}?uploadType=resumable&name=a%2Fb&upload_id={identity}"
    assert answer == Answer(200, [("Location", url), ("X-GUploader-UploadID", identity)], b"")
    nameless = sessions.begin(request("POST", f"{PATH}?uploadType=resumable", b"{}"), "")
    assert nameless.headers[0][1].startswith(f"{PATH}?uploadType=resumable&name=&upload_id=upload-")
    modes = {each.stat().st_mode & 0o777 for each in sessions.folder.iterdir()}
    assert (modes, sessions.folder.stat().st_mode & 0o777) == ({0o600}, 0o700)
    assert sorted(each.suffix for each in sessions.folder.glob(f"{identity}*")) == [
        ".json", ".part",
    ]  # fmt: skip
    assert json.loads((sessions.folder / f"{identity}.json").read_text()) == {
        "target": FIRST, "metadata": {}, "answer": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"[]", "the metadata is no JSON object."),
        (b"{", "the metadata is no JSON object."),
        (b"[" * 100_000, "the metadata is no JSON object."),
        (b'{"contentType": "a\\nb"}',
         "the content type has characters that are not printable."),
    ],
)  # fmt: skip
def test_wrong_metadata_begins_no_session(sessions: UploadSessions, body: bytes, text: str) -> None:
    with pytest.raises(RefusedRequestError, match=re.escape(text)) as told:
        begin(sessions, body)
    assert told.value.status == 400
    assert not sessions.folder.exists()


@pytest.mark.parametrize(
    ("body", "header", "metadata", "kind"),
    [
        (b"", {}, {}, "application/octet-stream"),
        (b"", {"x_upload_content_type": "a/b"}, {"contentType": "a/b"}, "a/b"),
        (b'{"contentType": "c/d", "name": "n"}', {"x_upload_content_type": "a/b"},
         {"contentType": "c/d", "name": "n"}, "c/d"),
    ],
)  # fmt: skip
def test_an_upload_that_is_whole_is_one_insertion(
    sessions: UploadSessions, body: bytes, header: dict[str, str], metadata: Any, kind: str
) -> None:
    identity = begin(sessions, body, **header)
    found = send(sessions, identity, b"content")
    assert isinstance(found, Insertion)
    mark = re.findall(r'boundary="([0-9a-f]{32})"', found.headers["content-type"])[0]
    part = sessions.folder / f"{identity}.part"
    assert found == Insertion(
        identity,
        f"{PATH}?name=a%2Fb&ifGenerationMatch=0&uploadType=multipart",
        {"content-type": f'multipart/related; boundary="{mark}"'},
        f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(metadata)}"
        f"\r\n--{mark}\r\nContent-Type: {kind}\r\n\r\n".encode(),
        part,
        f"\r\n--{mark}--\r\n".encode(),
    )
    assert b"".join(found.body()) == found.head + b"content" + found.tail
    assert found.size == len(found.head) + 7 + len(found.tail)


def test_the_query_of_an_insertion_is_that_of_the_first_request(sessions: UploadSessions) -> None:
    found = send(sessions, begin(sessions, target=f"{FIRST}&userProject=a?b"))
    query = "name=a%2Fb&ifGenerationMatch=0&userProject=a%3Fb&uploadType=multipart"
    assert found.target == f"{PATH}?{query}"


BIG = os.urandom(2 * UNIT)


def test_chunks_arrive_in_turn_and_a_client_may_ask_how_far(sessions: UploadSessions) -> None:
    identity = begin(sessions)
    total = 2 * UNIT + 1
    at_one = Answer(308, [("Range", f"bytes=0-{UNIT - 1}")])
    assert send(sessions, identity, content_range=f"bytes */{total}") == Answer(308, [])
    first = f"bytes 0-{UNIT - 1}/{total}"
    assert send(sessions, identity, BIG[:UNIT], content_range=first) == at_one
    for question in (f"bytes */{total}", "bytes */*"):
        assert send(sessions, identity, content_range=question) == at_one
    # A chunk that is sent again, with more behind it, is kept once.
    again = f"bytes 0-{2 * UNIT - 1}/*"
    at_two = Answer(308, [("Range", f"bytes=0-{2 * UNIT - 1}")])
    assert send(sessions, identity, BIG, content_range=again) == at_two
    assert send(sessions, identity, BIG[:UNIT], content_range=f"bytes 0-{UNIT - 1}/*") == at_two
    last = f"bytes {2 * UNIT}-{2 * UNIT}/{total}"
    assert isinstance(send(sessions, identity, b"x", "POST", content_range=last), Insertion)
    assert (sessions.folder / f"{identity}.part").read_bytes() == BIG + b"x"
    assert isinstance(send(sessions, identity, content_range=f"bytes */{total}"), Insertion)


FIT = "Content-Range does not fit the length of the body."
FORM = "Content-Range is not of the form bytes A-B/SIZE."


@pytest.mark.parametrize(
    ("size", "given", "text"),
    [
        (7, "bytes 0-5/7", FIT),
        (7, "bytes 0-6/6", FIT),
        (7, "bytes 0-7/8", FIT),
        (7, "bytes 1-7/8", "0 bytes arrived; the chunk begins at 1."),
        (7, "bytes 0-6/8", f"a chunk that is not the last is a multiple of {UNIT} bytes."),
        (7, "bytes 0-6/*", f"a chunk that is not the last is a multiple of {UNIT} bytes."),
        (7, "bytes=0-6/7", FORM),
        (7, "", FORM),
    ],
)
def test_a_chunk_that_cannot_be_right_is_refused(
    sessions: UploadSessions, size: int, given: str, text: str
) -> None:
    identity = begin(sessions)
    assert send(sessions, identity, b"x" * size, content_range=given) == (400, text)
    assert send(sessions, identity, content_range="bytes */*") == Answer(308, [])


def test_content_without_a_range_is_all_of_it(sessions: UploadSessions) -> None:
    assert isinstance(send(sessions, begin(sessions)), Insertion)
    identity = begin(sessions)
    send(sessions, identity, BIG[:UNIT], content_range=f"bytes 0-{UNIT - 1}/*")
    assert send(sessions, identity).status == 308
    assert isinstance(send(sessions, identity, content_range=f"bytes */{UNIT}"), Insertion)


def test_an_upload_ends_with_the_emulators_answer(sessions: UploadSessions) -> None:
    identity = begin(sessions)
    found = send(sessions, identity, b"content")
    for status in (500, 503):
        sessions.finish(found, status, b"later")
        assert isinstance(send(sessions, identity, content_range="bytes */7"), Insertion)
    sessions.finish(found, 200, b'{"name": "a/b"}')
    assert not found.content.exists()
    for verb in ("PUT", "POST"):
        assert send(sessions, identity, verb=verb) == Answer(200, JSON, b'{"name": "a/b"}')
    refused = begin(sessions)
    sessions.finish(send(sessions, refused, b"x"), 499, b"no")
    gone = (404, "there is no such upload, or it expired.")
    assert send(sessions, refused) == gone
    assert [each.name for each in sessions.folder.glob(f"{refused}*")] == []


def test_an_upload_may_be_withdrawn_and_takes_no_other_verb(sessions: UploadSessions) -> None:
    identity = begin(sessions)
    assert send(sessions, identity, verb="GET") == (405, "a session takes PUT and DELETE.")
    assert send(sessions, identity, verb="DELETE") == Answer(499, [])
    assert [*sessions.folder.iterdir()] == []
    gone = (404, "there is no such upload, or it expired.")
    assert send(sessions, identity, verb="DELETE") == gone


@pytest.mark.parametrize(
    "target",
    [
        f"{PATH}?upload_id=../x",
        f"{PATH}?upload_id=upload-{'g' * 32}",
        PATH,
        f"/storage/v1/b/data/o?upload_id=upload-{'0' * 32}",
    ],
)
def test_other_requests_belong_to_no_session(sessions: UploadSessions, target: str) -> None:
    assert sessions.answer(request("PUT", target), io.BytesIO()) is None


def crc(content: bytes) -> str:
    return base64.b64encode(google_crc32c.Checksum(content).digest()).decode()


@pytest.mark.parametrize("by", ["header", "metadata"])
def test_what_arrived_damaged_is_no_object(sessions: UploadSessions, by: str) -> None:
    def sent(checksum: str) -> Any:
        body = json.dumps({"crc32c": checksum} if by == "metadata" else {}).encode()
        header = {"x_goog_hash": f"crc32c={checksum},md5=x"} if by == "header" else {}
        identity = begin(sessions, body)
        return identity, send(sessions, identity, b"content", **header)

    assert isinstance(sent(crc(b"content"))[1], Insertion)
    identity, answer = sent(crc(b"other"))
    assert answer == (400, f"the CRC32C of what arrived is {crc(b'content')}.")
    assert [each.name for each in sessions.folder.glob(f"{identity}*")] == []


def test_sessions_are_removed_after_a_week(sessions: UploadSessions) -> None:
    sessions.remove_expired()
    week = 7 * 24 * 3600
    old, new = begin(sessions), begin(sessions)
    for identity, age in ((old, week + 60), (new, week - 60)):
        for path in sessions.folder.glob(f"{identity}*"):
            os.utime(path, (time.time() - age,) * 2)
    sessions.remove_expired()
    assert {each.stem for each in sessions.folder.iterdir()} == {new}


def test_two_requests_of_one_session_take_turns(sessions: UploadSessions) -> None:
    one = request("PUT", f"{PATH}?upload_id=upload-1")
    assert sessions.lock(one) is sessions.lock(request("PUT", f"{PATH}?upload_id=upload-1&x=y"))
    assert isinstance(sessions.lock(request("POST", FIRST)), nullcontext)
