"""Long-running operations are kept until they are done, and after."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import wrappers_pb2

from localgcp.errors import ApiError
from localgcp.vertex.operations import Operation, OperationTable, packed

PLACE = "projects/1/locations/us-central1"
TARGET = f"{PLACE}/models/m"


@pytest.fixture
def table(tmp_path: Path) -> OperationTable:
    return OperationTable(tmp_path / "cloud.sqlite")


def text(value: str) -> wrappers_pb2.StringValue:
    return wrappers_pb2.StringValue(value=value)


def begin(table: OperationTable, target: str = TARGET, method: str = "Upload") -> str:
    return table.begin(target, method, {"x": 1}, text("meta")).name


def test_a_new_operation_is_not_done_and_keeps_what_it_takes(table: OperationTable) -> None:
    name = begin(table)
    assert re.fullmatch(re.escape(TARGET) + r"/operations/\d{19}", name)
    assert table.get(name) == Operation(name=name, metadata=packed(text("meta")))
    assert table.unfinished() == table.unfinished(TARGET) == [(name, "Upload", {"x": 1})]
    assert table.unfinished(PLACE) == []


def test_an_operation_ends_once(table: OperationTable) -> None:
    name, other = begin(table), begin(table, f"{TARGET}2")
    table.end(name, text("done"))
    table.end(name, ApiError(grpc.StatusCode.INTERNAL, "late"))
    meta = packed(text("meta"))
    assert table.get(name) == Operation(
        name=name, metadata=meta, done=True, response=packed(text("done"))
    )
    table.end(other, ApiError(grpc.StatusCode.NOT_FOUND, "none"))
    failed = table.get(other)
    assert failed is not None
    assert (failed.done, failed.error.code, failed.error.message) == (True, 5, "none")
    assert table.unfinished() == []
    table.end(f"{TARGET}/operations/1", text("x"))
    assert table.get(f"{TARGET}/operations/1") is None


def test_a_wait_ends_with_the_operation_or_with_the_time(table: OperationTable) -> None:
    name = begin(table)
    found = table.wait(name, 0.05)
    assert found is not None
    assert not found.done
    assert table.wait(f"{TARGET}/operations/1", 20) is None
    threading.Timer(0.05, table.end, (name, text("done"))).start()
    began = time.monotonic()
    found = table.wait(name, 20)
    assert found is not None
    assert found.done
    assert time.monotonic() - began < 10
