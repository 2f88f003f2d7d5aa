"""Lines of a job's log, from entries of Cloud Logging: what is asked for, and what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.logging_v2.types import LogEntry
from google.protobuf.json_format import ParseDict

from vertex_training.customjob.google.logs import JobLogs, LogLine
from vertex_training.errors import OperatorError


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}+00:00"


def entry(second: int, text: str, replica: str = "workerpool0-0", **more: Any) -> LogEntry:
    found = LogEntry()
    given: dict[str, Any] = {
        "insertId": f"{second}-{text}",
        "timestamp": f"2026-01-01T00:00:{second:02}Z",
        "severity": "INFO",
        "textPayload": text,
        "resource": {"type": "ml_job", "labels": {"task_name": replica} if replica else {}},
        **more,
    }
    ParseDict(given, LogEntry.pb(found))
    return found


class Client:
    """Cloud Logging, which answers each request with the next of these."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), list[dict[str, Any]]()

    def list_log_entries(self, *, request: dict[str, Any], retry: Any, timeout: float) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return iter(answer)


def logs(*answers: Any) -> tuple[JobLogs, Client]:
    client: Any = Client(*answers)
    return JobLogs(client, "acme-ml-dev"), client


VERTEX = 'resource.type="ml_job" AND resource.labels.job_id="7"'
BATCH = 'resource.type="batch.googleapis.com/Job" AND labels.job_uid="x-1"'


@pytest.mark.parametrize(
    ("job", "replica", "filter_"),
    [
        ("7", None, VERTEX),
        ("7", "workerpool1-3", f'{VERTEX} AND resource.labels.task_name="workerpool1-3"'),
        ("x-1", None, BATCH),
        ("x-1", "task-3", f'{BATCH} AND labels.task_id="task/x-1-group0-3/0/0"'),
        ("x-1", "3", f'{BATCH} AND labels.task_id="task/x-1-group0-3/0/0"'),
    ],
)
def test_entries_of_a_job_are_requested_oldest_first(
    job: str, replica: str | None, filter_: str
) -> None:
    found, client = logs([entry(1, "a"), entry(2, "b")])
    lines = [LogLine(at(s), "workerpool0-0", "INFO", t) for s, t in ((1, "a"), (2, "b"))]
    assert list(found.lines(job, replica)) == lines
    assert client.requests == [
        {
            "resource_names": ["projects/acme-ml-dev"],
            "filter": filter_,
            "order_by": "timestamp asc",
            "page_size": 1000,
        }
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (entry(1, "a\nb\n"), [("workerpool0-0", "INFO", "a"), ("workerpool0-0", "INFO", "b")]),
        (entry(1, "1%\r50%\r100%"), [("workerpool0-0", "INFO", "100%")]),
        (entry(1, "a\n\nb"), [("workerpool0-0", "INFO", text) for text in ("a", "", "b")]),
        (entry(1, "x", "", severity="ERROR"), [("", "ERROR", "x")]),
        (entry(1, "x", "", severity=250), [("", "250", "x")]),
        (
            entry(1, "x", "", labels={"task_id": "task/uid-1-group0-12/0/0"}),
            [("task-12", "INFO", "x")],
        ),
    ],
)
def test_an_entry_has_its_lines_as_a_terminal_shows_them(given: LogEntry, shown: Any) -> None:
    found, _ = logs([given])
    assert list(found.lines("7")) == [LogLine(at(1), *line) for line in shown]


def test_a_structured_entry_has_its_message() -> None:
    given = LogEntry()
    ParseDict(
        {"timestamp": "2026-01-01T00:00:01Z", "jsonPayload": {"message": "m", "more": 1}},
        LogEntry.pb(given),
    )
    other = LogEntry()
    ParseDict({"timestamp": "2026-01-01T00:00:02Z", "jsonPayload": {"more": 1}}, LogEntry.pb(other))
    found, _ = logs([given, other])
    assert list(found.lines("7")) == [
        LogLine(at(1), "", "DEFAULT", "m"),
        LogLine(at(2), "", "DEFAULT", ""),
    ]


@pytest.mark.parametrize(
    ("count", "texts", "page"),
    [
        (1, ["e"], 1),
        (2, ["d", "e"], 2),
        (3, ["c", "d", "e"], 3),
        (5, ["a", "b", "c", "d", "e"], 5),
        (2000, ["a", "b", "c", "d", "e"], 1000),
    ],
)
def test_the_end_of_a_log_is_read_from_its_end(count: int, texts: list[str], page: int) -> None:
    found, client = logs([entry(3, "d\ne"), entry(2, "c"), entry(1, "a\nb")])
    assert [line.text for line in found.tail("7", count)] == texts
    [request] = client.requests
    assert (request["order_by"], request["page_size"]) == ("timestamp desc", page)
    assert request["filter"] == VERTEX


def test_what_arrives_is_followed_until_nothing_new_came_twice_after_the_end() -> None:
    polls = [
        [entry(1, "a")],
        [entry(1, "a"), entry(20, "b")],
        [entry(20, "b"), entry(15, "late")],
        [entry(20, "b")],
        [entry(20, "b")],
        [entry(20, "b"), entry(30, "never")],
    ]
    found, client = logs(*polls)
    ends, pauses = [False, False, True, True, True, True], list[int]()
    followed = found.follow(
        "7", "workerpool0-0", ended=lambda: ends.pop(0), pause=lambda: pauses.append(1)
    )
    assert [line.text for line in followed] == ["a", "b", "late"]
    assert len(pauses) == 4
    task = f'{VERTEX} AND resource.labels.task_name="workerpool0-0"'
    assert [each["filter"] for each in client.requests] == [
        task,
        f'{task} AND timestamp>="2025-12-31T23:59:51+00:00"',
        *[f'{task} AND timestamp>="{at(10)}"'] * 3,
    ]


def test_a_log_that_stays_empty_is_looked_at_twice_after_the_end() -> None:
    found, client = logs([], [], [])
    assert list(found.follow("7", None, ended=lambda: True, pause=lambda: None)) == []
    assert len(client.requests) == 2


def test_a_refused_log_is_reported_with_its_service() -> None:
    with pytest.raises(OperatorError) as refused:
        list(logs(exceptions.NotFound("no such project"))[0].lines("7"))
    assert str(refused.value) == "Cloud Logging: no such project"
    with pytest.raises(OperatorError, match=r"Cloud Logging did not answer list_log_entries: .*no"):
        list(logs(exceptions.Forbidden("no"))[0].lines("7"))

    class Broken:
        def __iter__(self) -> Iterator[LogEntry]:
            yield entry(1, "a")
            raise exceptions.ServiceUnavailable("gone")

    found = logs(Broken())[0].lines("7")
    assert next(found).text == "a"
    with pytest.raises(OperatorError, match=r"Cloud Logging ended in the middle of a log: .*gone"):
        next(found)
