"""``vt jobs compare``: jobs side by side, without rows of equal values. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from vertex_training.catalog import costs
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_CODE
from vertex_training_cli.jobs.metrics import MetricsReader
from vertex_training_cli.jobs.service import kind_of

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: Characters of a curve, from low to high values.
_BARS: Final = "▁▂▃▄▅▆▇█"
#: Maximum number of characters of a curve.
_WIDTH: Final = 24


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
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)


def compared(job: AnyJob, region: str, reader: MetricsReader) -> Compared:
    """Return the properties, parameters and metrics of one job."""
    now, message = datetime.now(UTC), view.message(job)
    row = view.row(job, now)
    return Compared(
        job=row["job"],
        run=row["run"],
        id=row["id"],
        state=row["state"],
        duration=row["duration"],
        cost=_cost(job, message, region, now),
        parameters=parameters(kind_of(job).trial_of(message)),
        metrics=reader.metrics(job),
        curves=reader.curves(job),
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
    for name in dict.fromkeys(name for job in jobs for name in job.curves):
        series = [job.curves.get(name, ()) for job in jobs]
        rows.append((f"{name} (curve)", *curves(series)))
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


def curves(series: Sequence[Sequence[float]]) -> list[str]:
    """Return a line of bars for each series, on one scale, with the first and the last value.

    >>> curves([[0.0, 1.0], [0.5]])
    ['▁█ 0 → 1', '▄ 0.5']
    """
    finite = [value for curve in series for value in curve if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return [_curve(curve, low, high) for curve in series]


def _curve(values: Sequence[float], low: float, high: float) -> str:
    if not values:
        return ""
    count = min(len(values), _WIDTH)
    chosen = [values[i * (len(values) - 1) // max(count - 1, 1)] for i in range(count)]
    ends = [view.shown(values[0])]
    ends += [view.shown(values[-1])] if len(values) > 1 else []
    return f"{''.join(_bar(value, low, high) for value in chosen)} {' → '.join(ends)}"


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "?"
    span = high / 2 - low / 2  # halves: the whole may be larger than any float
    share = (value / 2 - low / 2) / span if span > 0 else 0.0
    return _BARS[int(share * (len(_BARS) - 1))]


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
