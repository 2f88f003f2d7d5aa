"""Measurements of a job: numbers of its ``metrics.json``.

The file is searched for below the output directory; of several, the one nearest to it is read. Of a
tuning job: the final measurement of its best trial.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from vertex_training.errors import OperatorError
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.objects import Objects

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: Numbers that are shown before the others.
FIRST: Final = ("validation_accuracy", "test_accuracy")
METRICS: Final = "metrics.json"
#: Number of jobs that are read in parallel.
_AT_ONCE: Final = 8
#: Maximum number of metrics read from one job: a table with more can take minutes.
MOST_NAMES: Final = 1000


class MetricsReader:
    """Reads the measurements of a project's jobs. Logs only the first error."""

    def __init__(self, project: str, log: Callable[[str], None]) -> None:
        self._project, self._log = project, log
        self._has_failed = False

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._project)

    def metrics(self, job: AnyJob) -> dict[str, float]:
        """Return the job's numbers; empty if it wrote no metrics."""
        if view.is_tuning(job):
            best = next(iter(view.trials_of(view.message(job))), None)
            return dict(best.metrics) if best else {}
        return numbers(parsed(self._read(job, METRICS)))

    def of_all(self, jobs: Sequence[AnyJob]) -> dict[str, dict[str, float]]:
        """Return the numbers of several jobs, by resource name."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            names = [job.name for job in jobs]
            return dict(zip(names, pool.map(self.metrics, jobs), strict=True))

    def _read(self, job: AnyJob, name: str) -> bytes:
        folder = str(view.spec_of(job).base_output_directory.output_uri_prefix)
        if not folder:
            return b""
        try:
            return self._objects.nearest(folder, name)
        except OperatorError as error:
            if not self._has_failed:
                self._log(f"cannot read metrics: {error}")
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
        # An integer of JSON may be larger than any float, which nothing could print.
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
