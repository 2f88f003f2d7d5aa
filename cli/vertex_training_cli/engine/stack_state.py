"""The resources and jobs in the state file of the local backend.

The file is ``pulumi/.pulumi/stacks/PROJECT/STACK.json``. ``pulumi stack export`` prints the same
half a second slower.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localgcp.home import Home
from vertex_training.customjob.kinds import kind_of_name
from vertex_training_cli.engine.plan import PROVIDER, STACK


@dataclass(frozen=True)
class StackJob:
    """A job or a tuning job of the stack: its name there, and its id.

    The name is its key in the stack's output ``jobs``, else that of its resource.
    """

    name: str
    job_id: str


@dataclass(frozen=True)
class StackState:
    """Resources by type, without components, and the jobs."""

    counts: Counter[str]
    jobs: tuple[StackJob, ...]


def read(home: Home, project: str, stack: str) -> StackState:
    """The stack's state; empty if the stack does not exist."""
    return _state(home.pulumi / ".pulumi" / "stacks" / project / f"{stack}.json")


def job_ids_named(home: Home, name: str) -> list[str]:
    """Ids of jobs that have this name in a stack of the local backend."""
    files = sorted((home.pulumi / ".pulumi" / "stacks").glob("*/*.json"))
    return [job.job_id for file in files for job in _state(file).jobs if job.name == name]


def _state(file: Path) -> StackState:
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
        if resource.get("delete"):  # replaced, and its deletion did not finish
            continue
        counts[resource["type"]] += 1
        # Jobs of Cloud Scheduler and Cloud Run are named as those of Batch are.
        id_ = "" if resource["type"].startswith("gcp:") else _job_id(resource.get("id"))
        if id_:
            jobs.append(StackJob(names.get(id_) or resource["urn"].rpartition("::")[2], id_))
    return StackState(counts, tuple(jobs))


def _output_names(resources: list[dict[str, Any]]) -> dict[str, str]:
    """Name by job id, from the outputs ``jobs`` and ``tuning``.

    Each is ``{NAME: {name: projects/…/customJobs/ID}}``.
    """
    for resource in resources:
        if resource["type"] != STACK:
            continue
        outputs = resource.get("outputs") or {}
        sections = (outputs.get("jobs"), outputs.get("tuning"))
        return {
            id_: name
            for section in sections
            if isinstance(section, dict)
            for name, job in section.items()
            if isinstance(job, dict) and (id_ := _job_id(job.get("name")))
        }
    return {}


def _job_id(name: object) -> str:
    """The id in the resource name of a job, of any kind; empty of another text."""
    text = str(name)
    return text.rpartition("/")[2] if text.count("/") == 5 and kind_of_name(text) else ""
