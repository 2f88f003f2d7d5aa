"""The resources and jobs in the state file of the local backend.

The file is ``pulumi/.pulumi/stacks/PROJECT/STACK.json``. ``pulumi stack export`` prints the same
half a second slower.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.home import Home
from vertex_training_cli.engine.plan import PROVIDER, STACK

_JOB_NAME: Final = re.compile(
    r"projects/[^/]+/locations/[^/]+/(?:customJobs|hyperparameterTuningJobs|jobs)/([a-z0-9-]+)$"
)


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
        if match := _JOB_NAME.match(str(resource.get("id"))):
            name = names.get(match[1]) or resource["urn"].rpartition("::")[2]
            jobs.append(StackJob(name, match[1]))
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
            match[1]: name
            for section in sections
            if isinstance(section, dict)
            for name, job in section.items()
            if isinstance(job, dict) and (match := _JOB_NAME.match(str(job.get("name"))))
        }
    return {}
