"""Messages of states as files: which are written, and that a change has one."""

from __future__ import annotations

import json
from collections.abc import Callable
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument

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


@pytest.mark.parametrize(
    "topic", ["", "jobs", "projects/p/subscriptions/jobs", "projects/p/topics/j k"]
)
def test_a_topic_of_another_form_is_refused(jobs: Jobs, topic: str) -> None:
    with pytest.raises(InvalidArgument, match="notifications"):
        jobs.create(job(PASSES) | asked({"type_": "JOB_STATE_CHANGED"}, topic=topic))
    assert told(jobs) == []


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


def test_what_a_message_says_is_json_about_the_job(jobs: Jobs) -> None:
    made = jobs.run(
        job(PASSES) | asked({"type_": "JOB_STATE_CHANGED", "new_job_state": "SUCCEEDED"})
    )
    [file] = jobs.cloud.home.notifications.glob("*.eml")
    message = message_from_bytes(file.read_bytes(), policy=default)
    text = message.get_content().partition("\n-- ")[0]
    assert json.loads(text) == {
        "type": "JOB_STATE_CHANGED", "newJobState": "SUCCEEDED", "job": made.name,
    }  # fmt: skip
