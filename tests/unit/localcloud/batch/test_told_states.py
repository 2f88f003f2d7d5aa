"""Messages about states of Batch's jobs and tasks as whole values, and each change once."""

from __future__ import annotations

import json
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest

from localgcp.alerting import spool
from localgcp.batch import messages
from localgcp.batch.records import BatchTable, Clock, State, TaskState
from localgcp.home import Home
from tests.unit.localcloud.batch.rows import NOW, PLACE, TIME, batch_row

JOBS, TASKS = "projects/p/topics/jobs", "projects/p/topics/tasks"
OF_JOBS = {"pubsubTopic": JOBS, "message": {"type": "JOB_STATE_CHANGED"}}
OF_TASKS = {"pubsubTopic": TASKS, "message": {"type": "TASK_STATE_CHANGED"}}
TASK = f"{PLACE}/j/taskGroups/group0/tasks/"


@pytest.fixture
def table(home: Home, monkeypatch: pytest.MonkeyPatch) -> BatchTable:
    monkeypatch.setattr(Clock, "now", lambda _clock: NOW)
    return BatchTable(home)


def told(home: Home) -> list[tuple[str, str, dict[str, str]]]:
    """Title, channel and text of each message."""
    for each in spool.read(home.notifications):
        assert (each.alert, each.labels, each.time) == ("Batch", {"job_id": "j"}, NOW)
    found: list[tuple[str, str, dict[str, str]]] = []
    for file in home.notifications.glob("*.eml"):
        message = message_from_bytes(file.read_bytes(), policy=default)
        text = message.get_content().partition("\n-- ")[0]
        title = message["Subject"].removeprefix("[ALERT] ")
        found.append((title, message["X-Channel"], json.loads(text)))
    return sorted(found)


def of_job(state: str) -> tuple[str, str, dict[str, str]]:
    attributes = {"type": "JOB_STATE_CHANGED", "newJobState": state, "job": f"{PLACE}/j"}
    return f"j is {state}", f"pubsub {JOBS}", attributes


def of_task(number: int, state: str) -> tuple[str, str, dict[str, str]]:
    title = f"j/taskGroups/group0/tasks/{number} is {state}"
    attributes = {"type": "TASK_STATE_CHANGED", "newTaskState": state, "task": f"{TASK}{number}"}
    return title, f"pubsub {TASKS}", attributes


def test_every_change_is_told_once_also_after_a_kill(home: Home, table: BatchTable) -> None:
    wanted = [OF_JOBS, OF_TASKS]
    job = batch_row(group={"taskCount": "3"}, body={"notifications": wanted})
    assert table.insert(job)
    assert not table.insert(job)
    table.move(job.name, State.SCHEDULED, (State.QUEUED,))
    table.move_task(job.uid, 0, TaskState.RUNNING)
    table.move_task(job.uid, 0, TaskState.FAILED, code=1)
    table.move_task(job.uid, 1, TaskState.PENDING)
    table.skip_tasks(job.uid)
    expected = sorted(
        [
            of_job("QUEUED"), of_job("SCHEDULED"), of_task(0, "RUNNING"), of_task(0, "FAILED"),
            of_task(1, "PENDING"), of_task(1, "UNEXECUTED"), of_task(2, "UNEXECUTED"),
        ]
    )  # fmt: skip
    assert told(home) == expected
    # The state was not written when the server was killed: the next one tells the same.
    again: list[tuple[str, int, int | None]] = [
        ("QUEUED", 0, None), ("SCHEDULED", 1, None), ("RUNNING", 1, 0), ("FAILED", 2, 0),
        ("PENDING", 1, 1), ("UNEXECUTED", 2, 1), ("UNEXECUTED", 1, 2),
    ]  # fmt: skip
    for state, change, task in again:
        messages.write(home.notifications, wanted, job.name, state, change, TIME, task)
    assert told(home) == expected
    messages.write(home.notifications, wanted, job.name, "QUEUED", 7, TIME)
    assert told(home) == sorted([*expected, of_job("QUEUED")])


@pytest.mark.parametrize(
    ("message", "jobs", "tasks"),
    [
        ({"type": "JOB_STATE_CHANGED"}, ["FAILED", "RUNNING"], []),
        ({"type": "JOB_STATE_CHANGED", "newJobState": "FAILED"}, ["FAILED"], []),
        ({"type": "JOB_STATE_CHANGED", "newTaskState": "FAILED"}, ["FAILED", "RUNNING"], []),
        ({"type": "TASK_STATE_CHANGED"}, [], ["FAILED", "RUNNING"]),
        ({"type": "TASK_STATE_CHANGED", "newTaskState": "RUNNING"}, [], ["RUNNING"]),
        ({"type": "TYPE_UNSPECIFIED"}, [], []),
        ({}, [], []),
    ],
)
def test_a_topic_is_told_what_it_asks_for(
    home: Home, message: dict[str, str], jobs: list[str], tasks: list[str]
) -> None:
    wanted: list[dict[str, Any]] = [{"pubsubTopic": "t", "message": message}]
    for change, state in enumerate(("RUNNING", "FAILED")):
        for task in (None, 4):
            messages.write(home.notifications, wanted, f"{PLACE}/j", state, change, TIME, task)
    titles = [each[0] for each in told(home)]
    expected = [f"j is {state}" for state in jobs]
    expected += [f"j/taskGroups/group0/tasks/4 is {state}" for state in tasks]
    assert titles == sorted(expected)


def test_a_topic_that_is_named_twice_is_told_twice(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    messages.write(home.notifications, [OF_JOBS, OF_JOBS], f"{PLACE}/j", "FAILED", 3, TIME)
    assert told(home) == [of_job("FAILED")] * 2
    line = f"message (stand-in, nothing is published): 'j is FAILED' to pubsub {JOBS}\n"
    assert capsys.readouterr().out == line * 2


@pytest.mark.parametrize(
    ("topic", "is_right"),
    [
        ("projects/p/topics/abc", True),
        ("projects/p-1/topics/A._~+%-9", True),
        ("projects/p/topics/a" + "b" * 254, True),
        ("projects/p/topics/a" + "b" * 255, False),
        ("projects/p/topics/ab", False),
        ("projects/p/topics/1bc", False),
        ("projects/p/topics/a c", False),
        ("projects/p/q/topics/abc", False),
        ("projects//topics/abc", False),
        ("topics/abc", False),
        ("", False),
    ],
)
def test_topics_have_a_form(topic: str, is_right: bool) -> None:
    given = [OF_JOBS, {"pubsubTopic": topic} if topic else {}]
    text = f"{topic!r} must be projects/PROJECT/topics/TOPIC."
    wrong = [("job.notifications[1].pubsub_topic", text)]
    assert [*messages.problems(given)] == ([] if is_right else wrong)
