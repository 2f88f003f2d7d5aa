"""Jobs as rows: what is kept, how states move, and who holds machines."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from localgcp.inventory.store import project_number
from localgcp.vertex import records
from localgcp.vertex.records import LIVE_STATES, JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@pytest.fixture
def table(tmp_path: Path) -> JobTable:
    return JobTable(tmp_path / "cloud.sqlite")


@pytest.mark.parametrize(
    ("state", "word", "terminal"),
    [
        ("JOB_STATE_QUEUED", "QUEUED", False),
        ("JOB_STATE_PENDING", "PENDING", False),
        ("JOB_STATE_RUNNING", "RUNNING", False),
        ("JOB_STATE_CANCELLING", "CANCELLING", False),
        ("JOB_STATE_SUCCEEDED", "SUCCEEDED", True),
        ("JOB_STATE_FAILED", "FAILED", True),
        ("JOB_STATE_CANCELLED", "CANCELLED", True),
    ],
)
def test_states_are_the_apis_and_some_are_the_end(state: str, word: str, terminal: bool) -> None:
    found = JobState(state)
    assert (found.word, found.terminal) == (word, terminal)
    assert (found in LIVE_STATES) is not terminal


def test_a_new_job_begins_now_with_an_id_of_its_own() -> None:
    request = {"displayName": "d", "labels": {"a": "b"}, "jobSpec": {"x": 1}}
    made = JobRecord.new(PROJECT, "us-east1", request, JobState.PENDING)
    assert re.fullmatch(r"[1-9]\d{18}", made.job_id)
    assert re.fullmatch(TIME, made.create_time)
    assert made == JobRecord(
        job_id=made.job_id,
        project=PROJECT,
        number=project_number(PROJECT),
        region="us-east1",
        display_name="d",
        labels={"a": "b"},
        request=request,
        state=JobState.PENDING,
        create_time=made.create_time,
        start_time=None,
        end_time=None,
        update_time=made.create_time,
        error_code=None,
        error_message=None,
    )
    assert made.name == f"projects/{made.number}/locations/us-east1/customJobs/{made.job_id}"
    assert made.spec == {"x": 1}
    least = JobRecord.new(PROJECT, "us-east1", {"displayName": "d"}, JobState.QUEUED)
    assert (least.labels, least.spec, least.output_prefix) == ({}, {}, None)
    assert least.job_id != made.job_id


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


def test_a_job_is_kept_as_it_is(table: JobTable) -> None:
    one = row("1", labels={"k": "v"}, error_code=3, error_message="text")
    table.insert(one)
    assert table.get("1") == one
    assert table.get("2") is None
    assert table.delete("1") is True
    assert table.delete("1") is False
    assert table.list() == []


def test_jobs_are_listed_newest_first_by_place_and_label(table: JobTable) -> None:
    rows = [
        row("1", "2", labels={"k": "v"}),
        row("2", "1", labels={"k": "w"}),
        row("3", "2", region="europe-west4"),
        row("4", "3", number="5", labels={"k": "v", "a.b": "c"}),
    ]
    for each in rows:
        table.insert(each)
    number = project_number(PROJECT)

    def ids(*args: object, **more: object) -> list[str]:
        return [each.job_id for each in table.list(*args, **more)]  # pyright: ignore[reportArgumentType]

    assert ids() == ["4", "3", "1", "2"]
    assert ids(number) == ["3", "1", "2"]
    assert ids(number, "us-central1") == ["1", "2"]
    assert ids(None, "europe-west4") == ["3"]
    assert ids(label=("k", "v")) == ["4", "1"]
    assert ids(number, label=("k", "w")) == ["2"]
    assert ids(label=("a.b", "c")) == ["4"]
    assert ids(label=("none", "v")) == []


def test_a_state_moves_with_its_times(table: JobTable, monkeypatch: pytest.MonkeyPatch) -> None:
    first = job_row("1", {})
    table.insert(first)

    def move(to: JobState, time: str, **more: object) -> JobRecord | None:
        monkeypatch.setattr(records, "now", lambda: time)
        moved = table.move("1", to, **more)  # pyright: ignore[reportArgumentType]
        return table.get("1") if moved else None

    pending = replace(first, state=JobState.PENDING, update_time="1")
    assert move(JobState.PENDING, "1") == pending
    running = replace(pending, state=JobState.RUNNING, update_time="2", start_time="2")
    assert move(JobState.RUNNING, "2", only_from=(JobState.PENDING,)) == running
    assert move(JobState.QUEUED, "3", only_from=[JobState.PENDING]) is None
    again = replace(running, state=JobState.PENDING, update_time="4")
    assert move(JobState.PENDING, "4") == again
    failed = replace(again, state=JobState.FAILED, update_time="5", end_time="5", error_code=9,
                     error_message="why")  # fmt: skip
    assert move(JobState.FAILED, "5", error=(9, "why")) == failed
    for state in JobState:
        assert move(state, "6") is None
    assert table.get("1") == failed
    assert table.move("2", JobState.FAILED) is False


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


@pytest.mark.parametrize(
    ("state", "held"),
    [
        (JobState.PENDING, 1),
        (JobState.RUNNING, 1),
        (JobState.CANCELLING, 1),
        (JobState.QUEUED, 0),
        (JobState.SUCCEEDED, 0),
        (JobState.FAILED, 0),
        (JobState.CANCELLED, 0),
    ],
)
def test_machines_are_given_back_with_the_change_that_ends_the_job(
    table: JobTable, state: JobState, held: int
) -> None:
    table.insert(row("1", state=JobState.PENDING))
    assert table.claim("1", {"r": 1}, {"r": 1})
    assert table.move("1", state)
    assert table.used("r") == held


def test_a_job_that_goes_gives_its_machines_back(table: JobTable) -> None:
    table.insert(row("1", state=JobState.RUNNING))
    table.insert(row("2", state=JobState.RUNNING))
    assert table.claim("1", {"r": 1}, {"r": 2})
    assert table.claim("2", {"r": 1}, {"r": 2})
    assert table.delete("1")
    assert table.used("r") == 1
