"""Operations go on in threads, end once, and are taken up by the next server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2

from localgcp.errors import ApiError
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
