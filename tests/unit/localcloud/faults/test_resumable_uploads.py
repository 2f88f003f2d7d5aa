"""Resumable uploads of the local cloud end as Cloud Storage's do."""

from __future__ import annotations

import os
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.proxy import StorageFront
from localgcp.storage.uploads import UNIT

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


def test_a_client_may_ask_again_for_the_end_of_an_upload(bucket: storage.Bucket) -> None:
    url = begin(bucket)
    done = send(url, 0, TOTAL).json()
    assert ask(url).json() == done == send(url, 0, TOTAL).json()
    assert len(list(bucket.list_blobs(versions=True))) == 1


def test_preconditions_of_the_first_request_hold_at_the_end(bucket: storage.Bucket) -> None:
    url = begin(bucket, if_generation_match=0)
    bucket.blob("big").upload_from_string(b"somebody else's")
    assert send(url, 0, TOTAL).status_code == 412
    assert bucket.blob("big").download_as_bytes() == b"somebody else's"
    assert ask(url).status_code == 404


def test_an_upload_to_a_bucket_that_is_not_there_does_not_begin(bucket: storage.Bucket) -> None:
    with pytest.raises(exceptions.NotFound):
        begin(bucket.client.bucket("nowhere"))


def test_a_condition_that_the_emulator_would_not_hold_is_refused(
    front: StorageFront, bucket: storage.Bucket
) -> None:
    """It holds those of multipart uploads, which Google's clients send."""
    url = f"{front.url}/upload/storage/v1/b/data/o?uploadType=media&name=x"
    answer = requests.post(f"{url}&ifGenerationMatch=0", b"x", timeout=60)
    assert (answer.status_code, "send a multipart upload" in answer.text) == (501, True)
    assert requests.post(url, b"x", timeout=60).status_code == 200
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("x").upload_from_string(b"y", if_generation_match=0)
