"""Each fault of Cloud Storage, as the official client meets it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.proxy import StorageFront
from tests.unit.localcloud.conftest import wait_until


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
