"""Operations go on in threads, end once, and are taken up by the next server."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2, wrappers_pb2

from localgcp.errors import ApiError, ServerStoppingError
from localgcp.serving.carrying_out import OperationRunner
from localgcp.vertex.operations import OperationTable

TARGET = "projects/1/locations/us-central1/models/m"


@pytest.fixture
def table(tmp_path: Path) -> OperationTable:
    return OperationTable(tmp_path / "cloud.sqlite")


def metadata() -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update({"a": 1})
    return made


def test_an_operation_ends_with_the_response_and_what_is_around_it_is_called(
    table: OperationTable,
) -> None:
    called: list[tuple[str, ...] | str] = []
    given: list[threading.Event] = []

    def make_around(stopping: threading.Event) -> Any:
        given.append(stopping)
        return lambda when, method, request: called.append((when, method, request["x"]))

    def work(name: str, request: Mapping[str, Any]) -> wrappers_pb2.StringValue:
        called.append(name)
        return wrappers_pb2.StringValue(value=request["x"])

    runner = OperationRunner(table, make_around)
    runner.register("Upload", work)
    begun = runner.begin(TARGET, "Upload", {"x": "y"}, metadata())
    assert begun.name.startswith(f"{TARGET}/operations/")
    assert not begun.done
    done = table.wait(begun.name, 20)
    assert done is not None
    assert done.done
    assert done.metadata.Is(struct_pb2.Struct.DESCRIPTOR)
    response = wrappers_pb2.StringValue()
    assert done.response.Unpack(response)
    assert response.value == "y"
    assert called == [("before", "Upload", "y"), begun.name, ("after", "Upload", "y")]
    assert given == [runner.stopping]
    assert table.unfinished() == []


def end_of(table: OperationTable, error: Exception) -> tuple[int, str]:
    """Code and text of an operation whose work raises this."""

    def work(name: str, request: Mapping[str, Any]) -> None:
        raise error

    runner = OperationRunner(table)
    runner.register("Upload", work)
    done = table.wait(runner.begin(TARGET, "Upload", {}, metadata()).name, 20)
    assert done is not None
    assert done.done
    return done.error.code, done.error.message


def test_an_operation_that_is_refused_or_breaks_ends_with_an_error(
    table: OperationTable, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = ApiError(grpc.StatusCode.FAILED_PRECONDITION, "no")
    assert end_of(table, refused) == (9, "no")
    assert end_of(table, ValueError("a secret")) == (
        13,
        "Internal error encountered: ValueError.",
    )
    assert "ValueError: a secret" in capsys.readouterr().err


def test_what_a_stopping_server_leaves_is_taken_up_by_the_next(table: OperationTable) -> None:
    begun, entered = list[tuple[str, Mapping[str, Any]]](), threading.Event()
    first, told = OperationRunner(table), list[bool]()

    def left(name: str, request: Mapping[str, Any]) -> None:
        entered.set()
        stopping = first.stopping.wait(5)
        time.sleep(0.05)
        told.append(stopping)
        raise ServerStoppingError

    first.register("Upload", left)
    name = first.begin(TARGET, "Upload", {"x": "y"}, metadata()).name
    assert entered.wait(20)
    first.stop()
    assert told == [True]
    assert table.unfinished() == [(name, "Upload", {"x": "y"})]

    def work(name: str, request: Mapping[str, Any]) -> wrappers_pb2.StringValue:
        begun.append((name, request))
        return wrappers_pb2.StringValue(value="done")

    second = OperationRunner(table)
    second.register("Upload", work)
    second.recover()
    done = table.wait(name, 20)
    assert done is not None
    assert done.done
    second.stop()
    assert begun == [(name, {"x": "y"})]
    second.recover()
    assert begun == [(name, {"x": "y"})]


def test_the_end_waits_for_all_that_is_under_way(table: OperationTable) -> None:
    runner, ended, second = OperationRunner(table), list[str](), threading.Event()

    def work(name: str, request: Mapping[str, Any]) -> None:
        runner.stopping.wait(20)
        if request["x"] == "1":
            second.wait(20)
        ended.append(request["x"])
        second.set()
        raise ServerStoppingError

    runner.register("Upload", work)
    for number in "12":
        runner.begin(TARGET, "Upload", {"x": number}, metadata())
    runner.stop()
    assert ended == ["2", "1"]
