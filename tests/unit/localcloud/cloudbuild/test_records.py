"""Builds as files, and their logs as entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.logging_v2 import types

from localgcp.cloudbuild.records import Build, BuildTable, Status, entries_of

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def table(tmp_path: Path) -> BuildTable:
    return BuildTable(tmp_path / "builds")


def build(id_: str = "a1", status: Status = Status.QUEUED, **given: Any) -> Build:
    return Build(id=id_, project_id="local-a", status=status, create_time=BEGAN, **given)


def test_a_build_is_kept_as_it_is(table: BuildTable) -> None:
    made = build(tags=["t"], images=["i"])
    table.add(made)
    assert table.get("a1") == made
    assert table.get("b2") is None
    assert table.log("a1") == table.folder / "a1" / "log.txt"
    assert table.work("a1") == table.folder / "a1" / "work"
    assert [path.name for path in (table.folder / "a1").iterdir()] == ["build.json"]
    with pytest.raises(FileExistsError):
        table.add(made)


def read(table: BuildTable, project: str = "local-a", id_: str = "a1") -> list[types.LogEntry]:
    return list(entries_of(table)(project, {"resource.labels.build_id": id_}))


def entry(number: int, text: str) -> types.LogEntry:
    return types.LogEntry(
        log_name="projects/local-a/logs/cloudbuild",
        resource={"type": "build", "labels": {"build_id": "a1", "project_id": "local-a"}},
        text_payload=text,
        timestamp=BEGAN + timedelta(milliseconds=number),
        insert_id=f"a1-{number:09}",
        severity="INFO",
    )


@pytest.mark.parametrize(
    ("status", "text", "lines"),
    [
        (Status.SUCCESS, "one\n\ntwo", ["one", "", "two"]),
        (Status.SUCCESS, "one\n", ["one"]),
        (Status.WORKING, "one\ntw", ["one"]),
        (Status.WORKING, "one\n", ["one"]),
        (Status.SUCCESS, "", []),
        (Status.SUCCESS, "\udcff a\n", ["\ufffd a"]),
    ],
)
def test_the_lines_of_a_builds_log_are_entries(
    table: BuildTable, status: Status, text: str, lines: list[str]
) -> None:
    table.add(build(status=status))
    assert read(table) == []
    table.log("a1").write_bytes(text.encode(errors="surrogateescape"))
    assert read(table) == [entry(number, line) for number, line in enumerate(lines)]
    assert read(table, "local-b") == read(table, id_="b2") == []
    assert list(entries_of(table)("local-a", {})) == []
