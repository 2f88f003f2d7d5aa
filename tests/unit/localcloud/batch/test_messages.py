"""Messages of states as files: which are written, and that a change has one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from localgcp.alerting import spool
from localgcp.batch import messages
from localgcp.batch.records import State as Word
from tests.unit.localcloud.batch.conftest import Jobs, State, job

TOPIC = "projects/local-training/topics/jobs"
PASSES = {"script": {"text": "true"}}


def told(jobs: Jobs) -> list[str]:
    """Titles of what was written, sorted: files have no order of their own within a second."""
    return sorted(each.title for each in spool.read(jobs.cloud.home.notifications))


def asked(*wanted: dict[str, str], topic: str = TOPIC) -> dict[str, Any]:
    return {"notifications": [{"pubsub_topic": topic, "message": each} for each in wanted]}


def test_every_change_of_the_job_is_told_where_no_state_is_named(jobs: Jobs) -> None:
    jobs.run(job(PASSES) | asked({"type_": "JOB_STATE_CHANGED"}), "titanic")
    words = ("QUEUED", "RUNNING", "SCHEDULED", "SUCCEEDED")
    assert told(jobs) == [f"titanic is {word}" for word in words]
    [file, *_] = jobs.cloud.home.notifications.glob("*.eml")
    text = file.read_text()
    assert f"X-Channel: pubsub {TOPIC}" in text
    assert "stand-in of the local cloud: nothing was sent" in text


def test_states_that_are_named_are_told_alone_also_those_of_tasks(jobs: Jobs) -> None:
    failing = job({"script": {"text": "exit 3"}}, group={"task_count": 2}) | asked(
        {"type_": "JOB_STATE_CHANGED", "new_job_state": "FAILED"},
        {"type_": "JOB_STATE_CHANGED", "new_job_state": "SUCCEEDED"},
        {"type_": "TASK_STATE_CHANGED", "new_task_state": "FAILED"},
    )
    assert jobs.run(failing, "doomed").status.state is State.FAILED
    tasks = [title for title in told(jobs) if "/tasks/" in title]
    assert set(told(jobs)) - set(tasks) == {"doomed is FAILED"}
    assert tasks
    assert set(tasks) <= {f"doomed/taskGroups/group0/tasks/{n} is FAILED" for n in (0, 1)}


@pytest.mark.parametrize("message", [{}, {"new_job_state": "FAILED"}])
def test_a_message_without_a_type_and_a_job_without_any_tell_nothing(
    jobs: Jobs, message: dict[str, str]
) -> None:
    jobs.run(job({"script": {"text": "exit 3"}}) | asked(message))
    jobs.run(job(PASSES))
    assert told(jobs) == []


def test_tasks_that_never_began_are_told_as_well(jobs: Jobs) -> None:
    wanted = {"type_": "TASK_STATE_CHANGED", "new_task_state": "UNEXECUTED"}
    group = {"task_count": 2, "parallelism": 1}
    what = job({"script": {"text": "sleep 60"}}, group=group) | asked(wanted)
    made = jobs.create(what, "cut")
    jobs.reaches(made.name, State.RUNNING)
    jobs.client.cancel_job(name=made.name)
    jobs.ended(made.name)
    assert told(jobs) == ["cut/taskGroups/group0/tasks/1 is UNEXECUTED"]


def test_a_change_that_a_killed_server_had_told_is_told_once(
    make_jobs: Callable[..., Jobs],
) -> None:
    """The file is there, and the state is not: as after a kill between the two."""
    before = make_jobs(start=False)
    made = before.create(job(PASSES) | asked({"type_": "JOB_STATE_CHANGED"}), "titanic")
    table = before.batch.service.jobs
    found = table.get(made.name)
    assert found
    folder, wanted = before.cloud.home.notifications, found.body["notifications"]
    messages.write(folder, wanted, found.name, "SCHEDULED", 1, found.create_time)
    assert table.move(found.name, Word.SCHEDULED, (Word.QUEUED,))
    assert not table.move(found.name, Word.SCHEDULED, (Word.QUEUED,))
    assert told(before) == ["titanic is QUEUED", "titanic is SCHEDULED"]


@pytest.mark.parametrize(
    ("task", "kind", "field", "about", "what"),
    [
        (None, "JOB_STATE_CHANGED", "newJobState", "job", ""),
        (3, "TASK_STATE_CHANGED", "newTaskState", "task", "/taskGroups/group0/tasks/3"),
    ],
)
def test_a_message_says_as_json_what_it_is_about(
    tmp_path: Path, task: int | None, kind: str, field: str, about: str, what: str
) -> None:
    name = "projects/1/locations/us-central1/jobs/titanic"
    wanted = [
        {"pubsubTopic": TOPIC, "message": {"type": kind}},
        {"pubsubTopic": TOPIC, "message": {"type": kind, field: "FAILED"}},
        {"pubsubTopic": TOPIC, "message": {"type": kind, field: "RUNNING"}},
        {"message": {"type": kind, field: "FAILED"}},
    ]
    time = "2026-01-02T03:04:05+00:00"
    messages.write(tmp_path, wanted, name, "FAILED", 2, time, task)
    note = spool.Notification(
        time=datetime.fromisoformat(time),
        alert="Batch",
        title=f"titanic{what} is FAILED",
        channel=f"pubsub {TOPIC}",
        labels={"job_id": "titanic"},
    )
    topicless = replace(note, channel="pubsub")
    assert spool.read(tmp_path) == [topicless, note, note]
    files = list(tmp_path.iterdir())
    assert all(re.fullmatch(r"batch-[0-9a-f]{12}\.eml", file.name) for file in files)
    for file in files:
        message = message_from_bytes(file.read_bytes(), policy=default)
        assert message.get_content().partition("\n\n-- ")[0] == (
            f'{{\n  "type": "{kind}",\n  "{field}": "FAILED",\n  "{about}": "{name}{what}"\n}}'
        )
    messages.write(tmp_path, wanted, name, "FAILED", 2, time, task)
    assert len(spool.read(tmp_path)) == 3
    messages.write(tmp_path, wanted, name, "FAILED", 3, time, task)
    assert len(spool.read(tmp_path)) == 6


@pytest.mark.parametrize(
    ("topic", "is_one"),
    [
        ("projects/p/topics/abc", True),
        (f"projects/p/topics/a{'b' * 254}", True),
        ("projects/p/topics/A0._~+%-", True),
        ("projects/p/topics/ab", False),
        (f"projects/p/topics/a{'b' * 255}", False),
        ("projects/p/topics/1abc", False),
        ("projects/a/b/topics/abc", False),
    ],
)
def test_a_topic_has_a_name_of_pubsub(topic: str, is_one: bool) -> None:
    right = {"pubsubTopic": TOPIC}
    text = f"{topic!r} must be projects/PROJECT/topics/TOPIC."
    found = list(messages.problems([right, {"pubsubTopic": topic}, right]))
    assert found == ([] if is_one else [("job.notifications[1].pubsub_topic", text)])
