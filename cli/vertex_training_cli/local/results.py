"""Records and outputs of jobs in the local cloud, for all kinds of jobs."""

from __future__ import annotations

import builtins
import itertools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.batch.records import BatchJob, BatchTable, State
from localgcp.home import Home
from localgcp.runner.hosts import PRIMARY
from localgcp.tuning.records import TuningRecord, TuningTable
from localgcp.vertex.job_logs import log_path
from localgcp.vertex.records import JobRecord, JobTable
from vertex_training.customjob.kinds import CUSTOM_JOB, kind_of_name
from vertex_training_cli.engine.plan import PROVIDER, STACK
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.jobs.metrics import METRICS, numbers, parsed
from vertex_training_cli.jobs.objects import Objects

#: A job of the local cloud, on Vertex AI (a CustomJob or a TuningRecord) or on Batch.
LocalJob = JobRecord | BatchJob

NOTHING_THERE: Final = (
    "no artifacts: the job wrote no files, or the files were deleted. To run the job again, "
    "increase its `run`"
)


def metrics(job: LocalJob) -> dict[str, float]:
    """Return the numbers in the job's least nested metrics.json; empty without such a file."""
    if job.output_prefix is None:
        return {}
    body = Objects(job.project).nearest(job.output_prefix, METRICS)
    return numbers(parsed(body))


def artifacts(home: Home, job: LocalJob) -> tuple[str, str] | None:
    """Return URI and local folder of the job's output, or URI and a message, or None."""
    if job.output_prefix is None:
        return None
    folder = home.storage / job.output_prefix.removeprefix("gs://")
    return f"{job.output_prefix}/", str(folder) if folder.is_dir() else NOTHING_THERE


class JobRecords:
    """Records of the jobs of all services. Job ids are unique across services."""

    def __init__(self, home: Home) -> None:
        self._vertex = JobTable(home.database), TuningTable(home.database)
        self._batch = BatchTable(home)

    def get(self, job_id: str) -> LocalJob | None:
        """Return the job, or None if its record was deleted."""
        jobs = (table.get(job_id) for table in self._vertex)
        on_batch = (job for job in self._batch.list() if job.job_id == job_id)
        return next(filter(None, (*jobs, *on_batch)), None)

    def list(self) -> builtins.list[LocalJob]:
        """Return all jobs with the trials of tuning jobs, newest first."""
        jobs = [*itertools.chain.from_iterable(table.list() for table in self._vertex)]
        return sorted([*jobs, *self._batch.list()], key=lambda job: job.create_time, reverse=True)

    def progress(self, job: LocalJob) -> str:
        """Return the share of ended trials or succeeded tasks, like ``3/4``; else an empty text."""
        if isinstance(job, BatchJob):
            return f"{self._batch.counts(job.uid).get('SUCCEEDED', 0)}/{job.task_count}"
        if isinstance(job, TuningRecord):
            trials = self._vertex[1].trials(job.job_id)
            return f"{sum(trial.state.over for trial in trials)}/{job.max_trials}"
        return ""


def noun(job: LocalJob) -> str:
    """Return the noun for the job's kind, such as ``tuning job``."""
    return (kind_of_name(job.name) or CUSTOM_JOB).noun


def why(job: LocalJob) -> str:
    """Return the reason why the job failed or waits; empty without a recorded reason."""
    if isinstance(job, BatchJob) and job.state is State.QUEUED:
        return job.last_event
    return job.error_message or ""


def log_file(home: Home, job: LocalJob) -> Path:
    """Return the log of the first replica; for Batch, of the first task."""
    if isinstance(job, BatchJob):
        return home.batch / job.uid / "logs" / "task-0.log"
    return log_path(home, job.job_id, PRIMARY)


@dataclass(frozen=True)
class StackJob:
    """Name and id of a job or tuning job of the stack."""

    name: str
    job_id: str


@dataclass(frozen=True)
class StackState:
    """Number of resources by type, without components, and the jobs."""

    counts: Counter[str]
    jobs: tuple[StackJob, ...]


def read_state(home: Home, project: str, stack: str) -> StackState:
    """Return the stack's state; empty if the stack does not exist."""
    file = home.pulumi / ".pulumi" / "stacks" / project / f"{stack}.json"
    try:
        checkpoint: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["checkpoint"]
    except (FileNotFoundError, ValueError, KeyError):
        return StackState(Counter(), ())
    latest = checkpoint.get("latest") or {}
    resources = latest.get("resources") or []
    names = _output_names(resources)
    counts: Counter[str] = Counter()
    jobs: list[StackJob] = []
    for resource in resources:
        if not resource.get("custom") or resource["type"].startswith((STACK, PROVIDER)):
            continue
        if resource.get("delete"):  # the replaced resource of an incomplete replacement
            continue
        counts[resource["type"]] += 1
        # Jobs of Cloud Scheduler and Cloud Run have the same form of name as jobs of Batch.
        id_ = "" if resource["type"].startswith("gcp:") else _job_id(resource.get("id"))
        if id_:
            jobs.append(StackJob(names.get(id_) or resource["urn"].rpartition("::")[2], id_))
    return StackState(counts, tuple(jobs))


def _output_names(resources: list[dict[str, Any]]) -> dict[str, str]:
    stack = next((resource for resource in resources if resource["type"] == STACK), {})
    outputs = as_mapping(stack.get("outputs"))
    jobs = {**as_mapping(outputs.get("jobs")), **as_mapping(outputs.get("tuning"))}
    ids = {name: _job_id(as_mapping(job).get("name")) for name, job in jobs.items()}
    return {id_: name for name, id_ in ids.items() if id_}


def _job_id(name: object) -> str:
    text = str(name)
    return text.rpartition("/")[2] if text.count("/") == 5 and kind_of_name(text) else ""
