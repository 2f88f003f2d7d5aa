"""Pub/Sub messages about state changes, written as files beside alert notifications.

A file is written before the state is, and named after the job and what it is about: a server that
is killed in between writes the same file again, and no change is without one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from localgcp import alerting

#: Alert name of a notification that no alert policy requested.
SOURCE: Final = "Batch"
_TOPIC: Final = re.compile(r"projects/[^/]+/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}")
_TYPES: Final = {"JOB": "JOB_STATE_CHANGED", "TASK": "TASK_STATE_CHANGED"}


def problems(notifications: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield field and text of each error in ``notifications``."""
    for index, notification in enumerate(notifications):
        if not _TOPIC.fullmatch(topic := notification.get("pubsubTopic", "")):
            field = f"job.notifications[{index}].pubsub_topic"
            yield field, f"{topic!r} must be projects/PROJECT/topics/TOPIC."


def write(
    folder: Path,
    notifications: Sequence[Mapping[str, Any]],
    job: str,
    state: str,
    change: int,
    time: str,
    task: int | None = None,
) -> None:
    """Write the message of each topic for the ``change``-th state change of the job or task.

    ``job`` is the job's name. A topic that two notifications name gets one message of each.
    """
    level = "JOB" if task is None else "TASK"
    field = "newJobState" if task is None else "newTaskState"
    name = job if task is None else f"{job}/taskGroups/group0/tasks/{task}"
    for number, notification in enumerate(notifications):
        wanted = notification.get("message", {})
        if wanted.get("type") != _TYPES[level] or wanted.get(field, state) != state:
            continue
        attributes = {"type": _TYPES[level], field: state, "job" if task is None else "task": name}
        note = alerting.Notification(
            time=datetime.fromisoformat(time),
            alert=SOURCE,
            title=f"{name.partition('/jobs/')[2]} is {state}",
            channel=f"pubsub {notification.get('pubsubTopic', '')}",
            labels={"job_id": job.rpartition("/")[2]},
            text=json.dumps(attributes, indent=2),
        )
        identity = hashlib.sha256(f"{name} {change} {number}".encode()).hexdigest()[:12]
        alerting.write_notification(folder, note, f"batch-{identity}")
        print(f"message (stand-in, no message is published): {note.title!r} to {note.channel}")
