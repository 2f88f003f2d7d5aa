"""Resumable uploads of the local cloud end as Cloud Storage's do."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import google_crc32c
import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from localgcp.faults.proxy import StorageFront
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage_uploads import UNIT

DATA = os.urandom(3 * UNIT + 7)
TOTAL = len(DATA)


@pytest.fixture
def bucket(front: StorageFront) -> storage.Bucket:
    return storage_client(front.url).create_bucket("data")


def begin(bucket: storage.Bucket, name: str = "big", **given: Any) -> str:
    url = bucket.blob(name).create_resumable_upload_session(size=TOTAL, **given)
    assert url is not None
    return url


def send(url: str, first: int, end: int, total: int | str = TOTAL, **given: Any) -> Any:
    headers = {"Content-Range": f"bytes {first}-{end - 1}/{total}", **given}
    return requests.put(url, DATA[first:end], headers=headers, allow_redirects=False, timeout=60)


def ask(url: str, total: int | str = TOTAL) -> Any:
    headers = {"Content-Range": f"bytes */{total}", "Content-Length": "0"}
    return requests.put(url, headers=headers, allow_redirects=False, timeout=60)


def test_a_question_for_the_state_of_an_upload_does_not_end_it(bucket: storage.Bucket) -> None:
    url = begin(bucket)
    assert (ask(url).status_code, ask(url).headers.get("Range")) == (308, None)
    assert send(url, 0, UNIT).headers["Range"] == f"bytes=0-{UNIT - 1}"
    for total in (TOTAL, "*"):
        answer = ask(url, total)
        assert (answer.status_code, answer.headers["Range"]) == (308, f"bytes=0-{UNIT - 1}")
    assert bucket.get_blob("big") is None
    assert send(url, UNIT, TOTAL).status_code == 200
    assert bucket.blob("big").download_as_bytes() == DATA


def test_a_client_may_ask_again_for_the_end_of_an_upload(bucket: storage.Bucket) -> None:
    url = begin(bucket)
    done = send(url, 0, TOTAL).json()
    assert ask(url).json() == done == send(url, 0, TOTAL).json()
    assert len(list(bucket.list_blobs(versions=True))) == 1


def test_an_upload_goes_on_after_a_restart_of_the_server(
    front: StorageFront, bucket: storage.Bucket
) -> None:
    url = begin(bucket)
    send(url, 0, UNIT)
    front.stop()
    front.start(front.port)
    assert ask(url).headers["Range"] == f"bytes=0-{UNIT - 1}"
    assert send(url, UNIT, TOTAL).status_code == 200
    assert bucket.blob("big").download_as_bytes() == DATA


def test_bytes_that_are_sent_twice_are_kept_once(bucket: storage.Bucket) -> None:
    url = begin(bucket)
    send(url, 0, 2 * UNIT)
    assert send(url, 0, UNIT).headers["Range"] == f"bytes=0-{2 * UNIT - 1}"
    assert send(url, UNIT, TOTAL).status_code == 200
    assert bucket.blob("big").download_as_bytes() == DATA


@pytest.mark.parametrize(
    ("first", "end", "text"),
    [
        (UNIT, 2 * UNIT, "0 bytes arrived"),
        (0, UNIT + 1, "a multiple of"),
        (0, UNIT, "not of the form"),
        (0, UNIT, "does not fit"),
    ],
)
def test_a_chunk_that_cannot_be_right_is_refused(
    bucket: storage.Bucket, first: int, end: int, text: str
) -> None:
    ranges = {
        "not of the form": {"Content-Range": "bytes 0-x/y"},
        "does not fit": {"Content-Range": f"bytes 0-{UNIT}/{TOTAL}"},
    }
    url = begin(bucket)
    answer = send(url, first, end, **ranges.get(text, {}))
    assert answer.status_code == 400
    assert text in answer.json()["error"]["message"]
    assert ask(url).headers.get("Range") is None
    assert send(url, 0, TOTAL).status_code == 200


def test_preconditions_of_the_first_request_hold_at_the_end(bucket: storage.Bucket) -> None:
    url = begin(bucket, if_generation_match=0)
    bucket.blob("big").upload_from_string(b"somebody else's")
    assert send(url, 0, TOTAL).status_code == 412
    assert bucket.blob("big").download_as_bytes() == b"somebody else's"
    assert ask(url).status_code == 404


def test_the_object_has_the_type_and_metadata_of_the_first_request(bucket: storage.Bucket) -> None:
    blob = bucket.blob("big", chunk_size=UNIT)
    blob.metadata, blob.cache_control = {"origin": "Zürich"}, "no-store"
    blob.upload_from_string(DATA, content_type="application/x-npz")
    found = bucket.get_blob("big")
    assert found is not None
    assert (found.content_type, found.metadata, found.size) == (
        "application/x-npz", {"origin": "Zürich"}, TOTAL,
    )  # fmt: skip
    assert found.cache_control == "no-store"


def test_what_arrived_damaged_is_no_object(bucket: storage.Bucket) -> None:
    wrong = base64.b64encode(google_crc32c.Checksum(b"other").digest()).decode()
    url = begin(bucket)
    answer = send(url, 0, TOTAL, **{"X-Goog-Hash": f"crc32c={wrong}"})
    assert (answer.status_code, "CRC32C" in answer.text) == (400, True)
    assert bucket.get_blob("big") is None


def test_an_upload_to_a_bucket_that_is_not_there_does_not_begin(bucket: storage.Bucket) -> None:
    with pytest.raises(exceptions.NotFound):
        begin(bucket.client.bucket("nowhere"))


def test_a_withdrawn_upload_is_gone(bucket: storage.Bucket, home: Home) -> None:
    url = begin(bucket)
    send(url, 0, UNIT)
    assert requests.delete(url, timeout=60).status_code == 499
    assert ask(url).status_code == 404
    assert list((home.root / "uploads").iterdir()) == []


def test_an_empty_object_can_be_uploaded(bucket: storage.Bucket) -> None:
    url = begin(bucket, "empty")
    assert requests.put(url, b"", timeout=60).status_code == 200
    assert bucket.blob("empty").download_as_bytes() == b""


def test_the_id_of_an_upload_names_no_other_file(bucket: storage.Bucket, home: Home) -> None:
    url = urlsplit(begin(bucket))
    for identity in ("upload-../../x", "upload-" + "0" * 32, "..%2f..%2fcloud"):
        query = f"uploadType=resumable&name=big&upload_id={identity}"
        answer = requests.put(url._replace(query=query).geturl(), b"x", timeout=60)
        assert answer.status_code in (400, 404), identity
    assert bucket.get_blob("big") is None


def test_uploads_that_nobody_ended_are_removed_after_a_week(
    front: StorageFront, bucket: storage.Bucket, home: Home
) -> None:
    old, new = begin(bucket, "old"), begin(bucket, "new")
    identity = old.rpartition("upload_id=")[2]
    for path in (home.root / "uploads").glob(f"{identity}.*"):
        os.utime(path, (0, time.time() - 8 * 24 * 3600))
    front.stop()
    front.start(front.port)
    assert (ask(old).status_code, ask(new).status_code) == (404, 308)


def test_sessions_are_files_of_this_user_alone(bucket: storage.Bucket, home: Home) -> None:
    begin(bucket)
    folder = home.root / "uploads"
    modes = {_mode(path) for path in folder.iterdir()}
    assert (modes, _mode(folder)) == ({0o600}, 0o700)
    record = next(folder.glob("*.json"))
    assert "big" in json.loads(record.read_bytes())["target"]


def test_a_condition_that_the_emulator_would_not_hold_is_refused(
    front: StorageFront, bucket: storage.Bucket
) -> None:
    """It holds those of multipart uploads, which Google's clients send."""
    url = f"{front.url}/upload/storage/v1/b/data/o?uploadType=media&name=x"
    answer = requests.post(f"{url}&ifGenerationMatch=0", b"x", timeout=60)
    assert (answer.status_code, "send it as multipart" in answer.text) == (501, True)
    assert requests.post(url, b"x", timeout=60).status_code == 200
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("x").upload_from_string(b"y", if_generation_match=0)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
