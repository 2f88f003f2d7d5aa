"""Batch logs in the form of Cloud Logging: ``batch_task_logs``, ``batch_agent_logs``.

They are there if ``logsPolicy.destination`` is CLOUD_LOGGING and the job's account may write logs
(doc:batch/analyze-job-using-logs). The files are there in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from google.api import monitored_resource_pb2
from google.cloud.logging_v2 import types

from localgcp.batch.records import ENDED, GROUP, BatchJob, BatchTable
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.vertex.agents import LOG_WRITERS, has_role
from localgcp.vertex.log_times import read_lines

RESOURCE: Final = "batch.googleapis.com/Job"


def entries_of(
    home: Home, store: Store, jobs: BatchTable
) -> Callable[[str, dict[str, str]], Iterator[types.LogEntry]]:
    """Return a reader of the log entries of a project's jobs, selected by the labels
    of a filter.
    """

    def read(project: str, equal: dict[str, str]) -> Iterator[types.LogEntry]:
        uid = equal.get("labels.job_uid") or equal.get("resource.labels.job_id")
        for job in jobs.list(project):
            place = f"projects/{project}"
            kept = job.body.get("logsPolicy", {}).get("destination") == "CLOUD_LOGGING"
            if uid in (None, job.uid) and kept and has_role(store, job.account, LOG_WRITERS, place):
                for file in sorted((home.batch / job.uid / "logs").glob("*.log")):
                    yield from _of_file(job, file)

    return read


def _of_file(job: BatchJob, file: Path) -> Iterator[types.LogEntry]:
    task = file.stem.removeprefix("task-") if file.stem != "agent" else None
    labels = {**job.body.get("labels", {}), "job_uid": job.uid, "task_group_name": GROUP}
    if task is not None:
        labels["task_id"] = f"task/{job.uid}-{GROUP}-{task}/0/0"
    place = {"location": job.region, "resource_container": f"projects/{job.project}"}
    resource = monitored_resource_pb2.MonitoredResource(
        type=RESOURCE, labels={**place, "job_id": job.uid}
    )
    kind = "agent" if task is None else "task"
    created, ended = datetime.fromisoformat(job.create_time), job.state in ENDED
    for number, text, time in read_lines(file, created, ended=ended):
        yield types.LogEntry(
            log_name=f"projects/{job.project}/logs/batch_{kind}_logs",
            resource=resource,
            labels=labels,
            text_payload=text,
            timestamp=time,
            insert_id=f"{job.uid}-{file.stem}-{number:09}",
            severity="INFO",
        )
