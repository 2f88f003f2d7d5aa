"""Jobs as rows: what is kept, how states move, and who holds machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row


@pytest.fixture
def table(tmp_path: Path) -> JobTable:
    return JobTable(tmp_path / "cloud.sqlite")


@pytest.mark.parametrize(
    ("given", "prefix"),
    [("gs://a/b/", "gs://a/b"), ("gs://a/b", "gs://a/b"), ("", None), ("/", None)],
)
def test_the_output_has_no_slash_at_its_end(given: str, prefix: str | None) -> None:
    spec = {"baseOutputDirectory": {"outputUriPrefix": given}}
    assert job_row("1", spec).output_prefix == prefix


def row(job_id: str, time: str = "1", **changes: object) -> JobRecord:
    made = job_row(job_id, {"a": [1]})
    return replace(made, create_time=time, **changes)  # pyright: ignore[reportArgumentType]


def test_machines_are_taken_all_or_none(table: JobTable) -> None:
    for job_id, time in (("1", "2"), ("2", "1")):
        table.insert(row(job_id, time, state=JobState.PENDING))
    limits = {"r": 3, "s": 1}
    assert table.claim("1", {"r": 2, "s": 1}, limits)
    assert (table.used("r"), table.used("s"), table.used("none")) == (2, 1, 0)
    assert not table.claim("2", {"r": 1, "s": 1}, limits)
    assert (table.used("r"), table.used("s")) == (2, 1)
    assert table.claim("2", {"r": 1}, limits)
    assert table.used("r") == 3
    assert [each.job_id for each in table.users("r")] == ["2", "1"]
    assert [each.job_id for each in table.users("s")] == ["1"]
