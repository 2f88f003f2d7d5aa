"""Sessions of resumable uploads: each request's answer, and what the emulator gets at the end."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from localgcp.errors import RefusedRequestError
from localgcp.storage.requests import StorageRequest
from localgcp.storage.uploads import UNIT, Answer, Insertion, UploadSessions

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
    ("body", "text"),
    [
        (b"[]", "the metadata is not a JSON object."),
        (b"{", "the metadata is not a JSON object."),
        (b"[" * 100_000, "the metadata is not a JSON object."),
        (b'{"contentType": "a\\nb"}',
         "the content type contains non-printable characters."),
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


FIT = "Content-Range does not match the length of the body."
FORM = "Content-Range must have the form bytes A-B/SIZE."


@pytest.mark.parametrize(
    ("size", "given", "text"),
    [
        (7, "bytes 0-5/7", FIT),
        (7, "bytes 0-6/6", FIT),
        (7, "bytes 0-7/8", FIT),
        (7, "bytes 1-7/8", "the chunk begins at byte 1, but only 0 bytes were received."),
        (
            7,
            "bytes 0-6/8",
            f"the size of each chunk except the last must be a multiple of {UNIT} bytes.",
        ),
        (7, "bytes=0-6/7", FORM),
    ],
)
def test_a_chunk_that_cannot_be_right_is_refused(
    sessions: UploadSessions, size: int, given: str, text: str
) -> None:
    identity = begin(sessions)
    assert send(sessions, identity, b"x" * size, content_range=given) == (400, text)
    assert send(sessions, identity, content_range="bytes */*") == Answer(308, [])


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
    gone = (404, "the upload session does not exist or has expired.")
    assert send(sessions, refused) == gone
    assert [each.name for each in sessions.folder.glob(f"{refused}*")] == []


def test_an_upload_may_be_withdrawn_and_takes_no_other_verb(sessions: UploadSessions) -> None:
    identity = begin(sessions)
    assert send(sessions, identity, verb="GET") == (
        405,
        "an upload session accepts only PUT and DELETE.",
    )
    assert send(sessions, identity, verb="DELETE") == Answer(499, [])
    assert [*sessions.folder.iterdir()] == []
    gone = (404, "the upload session does not exist or has expired.")
    assert send(sessions, identity, verb="DELETE") == gone


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
    assert answer == (
        400,
        f"the CRC32C of the received bytes is {crc(b'content')}, which differs from the client's.",
    )
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
