"""Metrics of jobs, and the comparison of jobs for ``vt jobs compare``.

The metrics of a job are the numbers in the least nested ``metrics.json`` below its output
directory. The metrics of a tuning job are the final measurement of its best trial.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.errors import OperatorError
from vertex_training_cli.console import print_status
from vertex_training_cli.engine.values import redact
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_CODE
from vertex_training_cli.jobs.objects import Objects
from vertex_training_cli.jobs.service import kind_of

#: Metrics that come first in tables.
FIRST: Final = ("validation_accuracy", "test_accuracy")
METRICS: Final = "metrics.json"
#: Number of jobs whose metrics are read in parallel.
_AT_ONCE: Final = 8
#: Maximum number of metrics of a job. A larger table takes minutes to print.
MOST_NAMES: Final = 1000


class MetricsReader:
    """Reads the metrics of a project's jobs. Only the first error is logged."""

    def __init__(self, project: str) -> None:
        self._project, self._has_failed = project, False

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._project)

    def metrics(self, job: AnyJob) -> dict[str, float]:
        """Return the job's metrics; empty if the job wrote no metrics."""
        if view.is_tuning(job):
            best = next(iter(view.trials_of(view.message(job))), None)
            return dict(best.metrics) if best else {}
        return numbers(parsed(self._read(job)))

    def of_all(self, jobs: Sequence[AnyJob]) -> dict[str, dict[str, float]]:
        """Return the metrics of several jobs, by resource name."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            names = [job.name for job in jobs]
            return dict(zip(names, pool.map(self.metrics, jobs), strict=True))

    def _read(self, job: AnyJob) -> bytes:
        folder = str(view.spec_of(job).base_output_directory.output_uri_prefix)
        if not folder:
            return b""
        try:
            return self._objects.nearest(folder, METRICS)
        except OperatorError as error:
            if not self._has_failed:
                print_status(f"cannot read metrics: {error}")
            self._has_failed = True
            return b""


def numbers(data: Any) -> dict[str, float]:
    """Return the numbers at the top level of a document, ``FIRST`` first.

    >>> numbers({"loss": 0.5, "name": "x", "ok": True, "test_accuracy": 1})
    {'test_accuracy': 1, 'loss': 0.5}
    """
    if not isinstance(data, Mapping):
        return {}
    values: dict[str, float] = {
        key: value
        for key, value in data.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
        # JSON allows integers that are too large for a float.
        if isinstance(value, float) or abs(value) <= sys.float_info.max
    }
    order = [*(key for key in FIRST if key in values), *(key for key in values if key not in FIRST)]
    return {key: values[key] for key in order[:MOST_NAMES]}


def parsed(body: bytes) -> Any:
    """Return the parsed JSON of a file; None for invalid JSON, as after an interrupted write."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def compared(job: AnyJob, region: str, reader: MetricsReader) -> dict[str, Any]:
    """Return the properties, cost (at list prices), parameters and metrics of one job."""
    now, message = datetime.now(UTC), view.message(job)
    row = view.row(job, now)
    began: Any = job.start_time
    cost = ""
    if began and not view.is_tuning(job):
        ended: Any = job.end_time or now
        hourly = costs.of_job(message, region, kind_of(job).backend).hourly
        if hourly is not None:
            cost = costs.usd(hourly * (ended - began).total_seconds() / 3600)
    return {
        **{key: row[key] for key in ("job", "run", "id", "state", "duration")},
        "cost": cost,
        "parameters": parameters(kind_of(job).trial_of(message)),
        "metrics": reader.metrics(job),
    }


def comparison_table(
    jobs: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the rows of a table with a column for each job of ``compared``."""
    heads = ("", *(f"{job['job']} {job['run']}".strip() for job in jobs))
    rows = [(key, *(job[key] for job in jobs)) for key in ("id", "state", "duration", "cost")]
    for name in dict.fromkeys(name for job in jobs for name in job["parameters"]):
        cells = [job["parameters"].get(name, "") for job in jobs]
        if len(set(cells)) > 1:
            rows.append((name, *cells))
    for name in dict.fromkeys(name for job in jobs for name in job["metrics"]):
        rows.append((name, *(view.shown(job["metrics"].get(name)) for job in jobs)))
    return heads, rows


def parameters(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments (``--epochs`` -> ``3``), machines and code of a job."""
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
    words, flags = [str(word) for word in task.get("args", [])], dict[str, str]()
    index = 0
    while index < len(words):
        flag, equals, value = words[index].partition("=")
        index += 1
        if not equals and index < len(words) and not words[index].startswith("-"):
            value, index = words[index], index + 1
        flags[flag] = value
    return flags
