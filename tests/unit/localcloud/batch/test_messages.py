"""Messages of states as files: which are written, and that a change has one."""

from __future__ import annotations

from typing import Any

from localgcp.alerting import spool
from tests.unit.localcloud.batch.conftest import Jobs, State, job

TOPIC = "projects/local-training/topics/jobs"


def told(jobs: Jobs) -> list[str]:
    """Titles of what was written, sorted: files have no order of their own within a second."""
    return sorted(each.title for each in spool.read(jobs.cloud.home.notifications))


def asked(*wanted: dict[str, str], topic: str = TOPIC) -> dict[str, Any]:
    return {"notifications": [{"pubsub_topic": topic, "message": each} for each in wanted]}


def test_tasks_that_never_began_are_told_as_well(jobs: Jobs) -> None:
    wanted = {"type_": "TASK_STATE_CHANGED", "new_task_state": "UNEXECUTED"}
    group = {"task_count": 2, "parallelism": 1}
    what = job({"script": {"text": "sleep 60"}}, group=group) | asked(wanted)
    made = jobs.create(what, "cut")
    jobs.reaches(made.name, State.RUNNING)
    jobs.client.cancel_job(name=made.name)
    jobs.ended(made.name)
    assert told(jobs) == ["cut/taskGroups/group0/tasks/1 is UNEXECUTED"]
