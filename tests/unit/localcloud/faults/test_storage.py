"""Each fault of Cloud Storage, as the official client meets it."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from localgcp.faults.model import Fault
from localgcp.faults.proxy import StorageFront, describe
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from tests.unit.localcloud.conftest import wait_until
from vertex_training.customjob.google.intent_store import BucketIntents
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState


@pytest.fixture
def bucket(front: StorageFront) -> storage.Bucket:
    return storage_client(front.url).create_bucket("control")


@pytest.fixture
def table(home: Home) -> FaultTable:
    return FaultTable(home.faults)


def add(front: StorageFront, table: FaultTable, kind: str, **given: Any) -> int:
    return table.add(Fault.parse(service="storage", kind=kind, **given))


def upload(bucket: storage.Bucket, name: str = "a", data: bytes = b"text", **given: Any) -> None:
    bucket.blob(name).upload_from_string(data, retry=None, **given)


def test_a_fault_is_in_force_until_it_is_cleared_and_nothing_is_lost(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket
) -> None:
    upload(bucket)
    fault = add(front, table, "error", code="503", method="objects.delete")
    big = bytes(range(256)) * 40_000  # resumable: three requests, two of them with links
    blob = bucket.blob("folder/big ü", chunk_size=1 << 22)
    blob.upload_from_string(big, retry=None)
    assert blob.download_as_bytes() == big
    assert {found.name for found in bucket.list_blobs()} == {"a", "folder/big ü"}
    with pytest.raises(exceptions.ServiceUnavailable):
        bucket.blob("a").delete(retry=None)
    table.clear(fault)
    assert bucket.blob("a").download_as_bytes() == b"text"


@pytest.mark.parametrize(
    "condition",
    [
        {"if_generation_match": 0},
        {"if_generation_match": 1},
        {"if_metageneration_match": 9},
        {"if_metageneration_not_match": 1},
    ],
)
def test_what_does_not_hold_keeps_an_object_as_it_is(
    bucket: storage.Bucket, condition: dict[str, int]
) -> None:
    upload(bucket)
    blob = bucket.blob("a")
    blob.metadata = {"k": "v"}
    for call in (blob.delete, blob.patch, blob.download_as_bytes):
        with pytest.raises((exceptions.PreconditionFailed, exceptions.NotModified)):
            call(retry=None, **condition)
    found = bucket.get_blob("a")
    assert found is not None
    assert (found.metadata, found.download_as_bytes()) == (None, b"text")


def test_what_holds_is_done_once(bucket: storage.Bucket) -> None:
    upload(bucket)
    blob = bucket.get_blob("a")
    assert blob is not None
    given = {"if_generation_match": blob.generation}
    assert blob.download_as_bytes(**given) == b"text"
    upload(bucket, data=b"other")
    blob = bucket.blob("a")
    text = "At least one of the pre-conditions you specified did not hold."
    with pytest.raises(exceptions.PreconditionFailed, match=text):
        blob.delete(**given)
    blob.reload()
    given = {"if_generation_match": blob.generation}
    blob.delete(**given)
    with pytest.raises(exceptions.NotFound):
        blob.delete(**given)


@pytest.mark.parametrize("code", [400, 403, 404, 408, 409, 412, 429, 500, 502, 503, 504])
@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
def test_each_status_before_and_after_the_object_is_written(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket,
    code: int, when: str, written: bool,
) -> None:  # fmt: skip
    add(front, table, "error", code=str(code), when=when, method="objects.insert", match="ol/a")
    upload(bucket, "b")
    with pytest.raises(exceptions.GoogleAPICallError) as caught:
        upload(bucket)
    assert caught.value.code == code
    assert bucket.blob("a").exists() is written


@pytest.mark.parametrize("kind", ["drop", "reset"])
@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
def test_an_answer_that_never_comes(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket,
    kind: str, when: str, written: bool,
) -> None:  # fmt: skip
    add(front, table, kind, when=when, method="objects.insert")
    with pytest.raises(requests.exceptions.RequestException):
        upload(bucket, timeout=0.5)
    wait_until(lambda: bucket.blob("a").exists() is written)


def test_a_truncated_answer_is_an_error_of_the_connection(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket
) -> None:
    add(front, table, "truncate", method="objects.insert")
    with pytest.raises(requests.exceptions.RequestException):
        upload(bucket)
    assert bucket.blob("a").exists()


def test_a_delay_takes_its_time(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket
) -> None:
    add(front, table, "delay", seconds=0.3)
    began = time.monotonic()
    upload(bucket)
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
def test_a_write_is_held_until_it_is_released(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket, when: str, written: bool
) -> None:
    held = add(front, table, "hold", when=when, method="objects.insert", match="control/a")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(upload, bucket)
        assert table.wait_held(held, 60) == "objects.insert control/a"
        assert (bucket.blob("a").exists(), answer.done()) == (written, False)
        table.release(held)
        answer.result(60)
    assert bucket.blob("a").exists()


@pytest.mark.parametrize("kind", ["reset", "truncate"])
def test_a_record_whose_answer_was_lost_is_written_once(
    front: StorageFront, table: FaultTable, bucket: storage.Bucket, kind: str
) -> None:
    """The client repeats a write under a precondition, and the repetition conflicts with it."""
    from vertex_training.errors import PreconditionFailedError

    intents = BucketIntents(storage_client(front.url), "control")
    add(
        front,
        table,
        kind,
        method="objects.insert",
        **({"when": "after"} if kind == "reset" else {}),
    )
    record = IntentRecord("abc", IntentState.INTENT, "me")
    with pytest.raises(PreconditionFailedError):
        intents.write(record, 0)
    stored = intents.read("abc")
    assert stored is not None
    assert stored.record == record


@pytest.mark.parametrize(
    ("verb", "path", "called"),
    [
        ("GET", "/storage/v1/b?project=p", ("buckets", "")),
        ("GET", "/storage/v1/b/x", ("buckets", "x")),
        ("POST", "/storage/v1/b", ("buckets", "")),
        ("GET", "/storage/v1/b/x/o?prefix=a", ("objects.list", "x")),
        ("GET", "/storage/v1/b/x/o/a%2Fb", ("objects.get", "x/a/b")),
        ("GET", "/storage/v1/b/x/o/a?alt=media", ("objects.download", "x/a")),
        ("GET", "/download/storage/v1/b/x/o/a?alt=media", ("objects.download", "x/a")),
        ("DELETE", "/storage/v1/b/x/o/a", ("objects.delete", "x/a")),
        ("PATCH", "/storage/v1/b/x/o/a", ("objects.other", "x/a")),
        ("POST", "/upload/storage/v1/b/x/o?uploadType=media&name=a", ("objects.insert", "x/a")),
        ("POST", "/resumable/upload/storage/v1/b/x/o?name=a%2Fb", ("objects.insert", "x/a/b")),
        ("GET", "/x/a", ("objects.download", "x/a")),
    ],
)
def test_requests_are_named_as_the_api_names_them(
    verb: str, path: str, called: tuple[str, str]
) -> None:
    assert describe(verb, path) == called


def test_the_name_of_an_upload_is_read_from_its_metadata() -> None:
    body = b'--x\r\ncontent-type: application/json\r\n\r\n{"name": "a\\u00fc"}\r\n--x\r\n'
    path = "/upload/storage/v1/b/x/o?uploadType=multipart"
    assert describe("POST", path, body) == ("objects.insert", "x/aü")


@pytest.mark.parametrize(
    "head",
    ["Content-Length: 1000", "Transfer-Encoding: chunked"],
)
def test_a_client_that_goes_away_while_it_sends_is_no_news(
    front: StorageFront, table: FaultTable, capfd: pytest.CaptureFixture[str], head: str
) -> None:
    add(front, table, "error", code="503", method="objects.delete")
    request = "POST /upload/storage/v1/b/control/o HTTP/1.1\r\n"
    request += f"Host: localhost:{front.port}\r\n{head}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", front.port)) as connection:
        connection.sendall(request.encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert "Traceback" not in capfd.readouterr().err
