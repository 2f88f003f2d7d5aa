"""Entries of a job's log, from the files of its replicas."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.logging_v2 import types

from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.vertex.job_logs import read_lines, times_file
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB = 'resource.labels.job_id="42"'


class Logged:
    """A job 42 with logs, and what reads them."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root, root)
        self.store, self.jobs = Store(root / "cloud.sqlite"), JobTable(root / "cloud.sqlite")
        self.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
        self.service = LogService(self.home, self.store, self.jobs)

    def job(self, job_id: str = "42", state: JobState = JobState.SUCCEEDED) -> JobRecord:
        made = replace(job_row(job_id, {}, state=state), create_time=BEGAN.isoformat())
        made = replace(made, end_time=(BEGAN + timedelta(hours=1)).isoformat())
        self.jobs.insert(made)
        return made

    def log(self, replica: str, text: str, job_id: str = "42", times: str = "") -> None:
        file = self.home.jobs / job_id / "logs" / f"{replica}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if times:
            times_file(file).write_text(times)

    def ask(self, text: str = JOB, project: str = PROJECT, **more: Any) -> Any:
        request = types.ListLogEntriesRequest(
            resource_names=[f"projects/{project}"], filter=text, **more
        )
        return self.service.list_log_entries(request)

    def texts(self, text: str = JOB, **more: Any) -> list[str]:
        return [each.text_payload for each in self.ask(text, **more).entries]

    def refusal(self, *args: Any, **more: Any) -> tuple[str, str]:
        with pytest.raises(ApiError) as refused:
            self.ask(*args, **more)
        return refused.value.code.name, refused.value.message


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


def entry(replica: str, number: int, text: str, time: datetime, **more: Any) -> types.LogEntry:
    labels = {"job_id": "42", "project_id": PROJECT, "task_name": replica}
    return types.LogEntry(
        log_name=f"projects/{PROJECT}/logs/{replica}",
        resource={"type": "ml_job", "labels": labels},
        text_payload=text,
        timestamp=time,
        insert_id=f"42-{replica}-{number:09}",
        severity="INFO",
        **more,
    )


@pytest.mark.parametrize("size", [-1, 1001])
def test_a_page_is_of_a_thousand_entries_at_most(logged: Logged, size: int) -> None:
    assert logged.refusal(page_size=size) == (
        "INVALID_ARGUMENT", f"page_size must be 0 to 1000, got {size}.",
    )  # fmt: skip


def test_pages_of_a_listing_repeat_no_entry_of_a_log_that_grows(logged: Logged) -> None:
    logged.job(state=JobState.RUNNING)
    logged.log("workerpool0-0", "a\nb\nc\n")
    newest = {"order_by": "timestamp desc", "page_size": 2}
    first = logged.ask(**newest)
    logged.log("workerpool0-0", "a\nb\nc\nd\n")
    second = logged.ask(page_token=first.next_page_token, **newest)
    pages = [[entry.text_payload for entry in page.entries] for page in (first, second)]
    assert pages == [["c", "b"], ["a"]]
    assert logged.texts(**newest) == ["d", "c"]


@pytest.mark.parametrize("token", ["x", "-5", "5\n", "\u0665", "9" * 10, "x" * 90])
def test_a_page_begins_where_another_ended(logged: Logged, token: str) -> None:
    assert logged.refusal(page_token=token) == (
        "INVALID_ARGUMENT", f"Invalid page token: {token[:80]!r}.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (' resource.type="ml_job"', ["a", "b", "c"]),
        (' resource.type="global"', []),
        (' resource.labels.task_name="workerpool1-0"', ["c"]),
        (' textPayload="b"', ["b"]),
        (' severity="INFO"', ["a", "b", "c"]),
        (f' logName="projects/{PROJECT}/logs/workerpool1-0"', ["c"]),
        (' insertId="42-workerpool0-0-000000001"', ["b"]),
        (' timestamp>"2026-01-02T03:04:05Z"', ["b"]),
        (' labels.task_id="x"', []),
    ],
)
def test_a_filter_reads_what_an_entry_has(logged: Logged, more: str, found: list[str]) -> None:
    logged.job()
    logged.log("workerpool0-0", "a\nb\n")
    logged.log("workerpool1-0", "c\n")
    assert sorted(logged.texts(JOB + more)) == found


def test_what_cannot_be_answered_is_refused(logged: Logged) -> None:
    assert logged.refusal(order_by="severity") == (
        "INVALID_ARGUMENT", "order_by: 'severity' is not supported.",
    )  # fmt: skip
    assert logged.refusal('severity="INFO"') == (
        "INVALID_ARGUMENT",
        "Unparseable filter: the local cloud reads only the log of one job, "
        'resource.labels.job_id="ID".',
    )
    assert logged.refusal(project="local-b") == (
        "PERMISSION_DENIED",
        "Cloud Logging API has not been used in project local-b before or it is disabled.",
    )
    assert logged.refusal('unknown="x"')[0] == "INVALID_ARGUMENT"
    request = types.ListLogEntriesRequest(resource_names=["projects/a", "projects/b"], filter=JOB)
    with pytest.raises(ApiError, match="resource_names must be one project, got "):
        logged.service.list_log_entries(request)


class Trials:
    """A tuning job 9 whose trial 1 is the job 42."""

    def __init__(self, tuning: JobRecord) -> None:
        self.tuning = tuning

    def trials(self, tuning_id: str) -> list[tuple[str, str]]:
        return [("1", "42")] if tuning_id == "9" else []

    def job(self, tuning_id: str) -> JobRecord | None:
        return self.tuning if tuning_id == "9" else None


def test_entries_of_a_trial_are_the_tuning_jobs_with_a_label(logged: Logged) -> None:
    logged.job()
    logged.log("workerpool0-0", "one\n")
    end = BEGAN + timedelta(hours=2)
    tuning = replace(job_row("9", {}, state=JobState.FAILED), end_time=end.isoformat())
    logged.service.tuning = Trials(tuning)
    first, last = logged.ask('resource.labels.job_id="9"').entries
    expected = entry("workerpool0-0", 0, "one", BEGAN, labels={"ml.googleapis.com/trial_id": "1"})
    expected.resource.labels["job_id"] = "9"
    assert first == expected
    assert (last.text_payload, last.resource.labels["job_id"]) == ("Job failed.", "9")


def test_times_are_those_of_the_note_that_covers_a_line(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"abc\nd\nef\nghij\nhalf")
    assert [time for *_, time in read_lines(log, BEGAN, ended=False)][3] == (
        BEGAN + timedelta(milliseconds=3)
    )
    later = BEGAN + timedelta(seconds=1)
    (tmp_path / "a.times").write_text(f"4 {BEGAN.isoformat()}\n9 {later.isoformat()}\n")
    found = [time for *_, time in read_lines(log, BEGAN, ended=True)]
    assert found == [BEGAN, later, later, later, later]
