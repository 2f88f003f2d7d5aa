"""``vt jobs compare``: jobs side by side, without rows of equal values. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vertex_training.catalog import costs
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_CODE
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import kind_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob


@dataclass(frozen=True, slots=True)
class Compared:
    """A job in a comparison."""

    job: str
    run: str
    id: str
    state: str
    duration: str
    cost: str
    """Cost at list prices for the job's running time."""
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]


def compared(job: AnyJob, region: str, reader: MetricsReader) -> Compared:
    """Return the properties, parameters and metrics of one job."""
    now, message = datetime.now(UTC), view.message(job)
    row = view.row(job, now)
    return Compared(
        **{key: row[key] for key in ("job", "run", "id", "state", "duration")},
        cost=_cost(job, message, region, now),
        parameters=parameters(kind_of(job).trial_of(message)),
        metrics=reader.metrics(job),
    )


def table(jobs: Sequence[Compared]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and rows of the table, with a column for each job."""
    heads = ("", *(f"{job.job} {job.run}".strip() for job in jobs))
    rows = [
        (key, *(str(getattr(job, key)) for job in jobs))
        for key in ("id", "state", "duration", "cost")
    ]
    names = dict.fromkeys(name for job in jobs for name in job.parameters)
    for name in names:
        cells = [job.parameters.get(name, "") for job in jobs]
        if len(set(cells)) > 1:
            rows.append((name, *cells))
    for name in dict.fromkeys(name for job in jobs for name in job.metrics):
        rows.append((name, *(view.shown(job.metrics.get(name)) for job in jobs)))
    return heads, rows


def parameters(job: Mapping[str, Any]) -> dict[str, str]:
    """Return arguments (``--epochs`` -> ``3``), machines and the first pool's replica count."""
    texts: dict[str, str] = {}
    pools = job.get("jobSpec", {}).get("workerPoolSpecs", [])
    for number, pool in enumerate(pools):
        machine = pool.get("machineSpec", {})
        text = f"{pool.get('replicaCount', 1)} x {machine.get('machineType', '')}"
        if machine.get("acceleratorCount"):
            text += f" + {machine['acceleratorCount']} x {machine.get('acceleratorType')}"
        texts[f"pool {number}"] = text
        task = pool.get("pythonPackageSpec") or pool.get("containerSpec") or {}
        texts |= {key: value for key, value in _flags(task).items() if key not in texts}
        code = [
            variable.get("value")
            for variable in task.get("env", [])
            if variable.get("name") == RUN_CODE
        ]
        code = code or task.get("packageUris") or [task.get("imageUri", "")]
        texts.setdefault("code", " ".join(str(uri).rpartition("/")[2] for uri in code))
    return redact(texts)


def _flags(task: Mapping[str, Any]) -> dict[str, str]:
    """Return flag -> value for a task's arguments; the value is empty if there is none."""
    words, flags = [str(word) for word in task.get("args", [])], dict[str, str]()
    index = 0
    while index < len(words):
        flag, equals, value = words[index].partition("=")
        index += 1
        if not equals and index < len(words) and not words[index].startswith("-"):
            value, index = words[index], index + 1
        flags[flag] = value
    return flags


def _cost(job: AnyJob, message: Mapping[str, Any], region: str, now: datetime) -> str:
    began: Any = job.start_time
    if not began or view.is_tuning(job):
        return ""
    ended: Any = job.end_time or now
    hourly = costs.of_job(message, region, kind_of(job).backend).hourly
    return "" if hourly is None else costs.usd(hourly * (ended - began).total_seconds() / 3600)
