"""Reads the file to which a trial writes its metrics (``CLOUD_ML_HP_METRIC_FILE``).

The format is that of the package cloudml-hypertune: each report is a line of JSON with
``timestamp``, ``trial``, ``global_step`` and one metric. Values are texts or numbers.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.system.root_directory import RootDirectory
from localgcp.tuning.records import Measurement

#: Bytes read from the end of the file. cloudml-hypertune keeps the last 100 reports (about 20 kB).
_MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_MOST_STEPS: Final = 1 << 63
#: Keys of a report that are not metrics.
_NO_METRICS: Final = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


@dataclass(frozen=True)
class Report:
    """The final measurement of a trial, or the reason why a metric is missing."""

    measurement: Measurement | None
    missing: str = ""


def read_report(
    file: Path, metrics: Sequence[Mapping[str, Any]], *, best: bool, began: float
) -> Report:
    """Return the last measurement, or with ``best`` the best measurement by the first metric.

    ``began``: the time of day at which the trial began.
    """
    tail = _tail(file)
    if tail is None:
        return Report(None, "the trial reported no metric: CLOUD_ML_HP_METRIC_FILE was not written")
    data, written = tail
    lines = [_parse(line) for line in data.splitlines() if line.strip()]
    reports = [line for line in lines if isinstance(line, dict)]
    values: dict[str, dict[int, float]] = {metric["metricId"]: {} for metric in metrics}
    elapsed: dict[int, float] = {}
    counts, not_finite = Counter[str](), ""
    for report in reports:
        step, time = _number(report.get("global_step")), _number(report.get("timestamp"))
        for metric in (metric for metric in values if metric in report):
            value = _number(report[metric])
            if value is None:
                not_finite = str(report[metric])[:40]
                continue
            at = int(step) if step is not None and 0 <= step < _MOST_STEPS else counts[metric]
            counts[metric] += 1
            values[metric].pop(at, None)  # a repeated step becomes the last step
            values[metric][at] = value
            elapsed[at] = max(0.0, min(written if time is None else time, written) - began)
    if missing := next((metric for metric in values if not values[metric]), None):
        others = {key[:40] for r in reports for key in r if key not in {*values, *_NO_METRICS}}
        text = f"the trial reported no value of the metric {missing!r}"
        if not_finite:
            return Report(None, f"{text} but {not_finite}, which is not a finite number")
        if others:
            return Report(None, f"{text} but of {', '.join(sorted(others)[:5])}")
        unusable = len(lines) - len(reports)
        hint = f"; {unusable} lines of the file are not JSON objects" if unusable else ""
        return Report(None, f"{text}{hint}")
    steps = values[metrics[0]["metricId"]]
    step = next(reversed(steps))
    if best:
        choose = min if metrics[0].get("goal") == "MINIMIZE" else max
        step = choose(steps, key=lambda candidate: steps[candidate])
    final = {metric: _at(step, values[metric]) for metric in values}
    return Report(Measurement(step, final, elapsed[step]))


def _at(step: int, reported: dict[int, float]) -> float:
    """Return a metric's value at a step, or at the last step before, or its last value."""
    if step in reported:
        return reported[step]
    before = [other for other in reported if other < step]
    return reported[max(before) if before else next(reversed(reported))]


def _tail(file: Path) -> tuple[bytes, float] | None:
    """Return the end and modification time of a file; None if it is not a regular file."""
    folder = file.parent
    try:
        opened = RootDirectory(folder.parent).open(f"{folder.name}/{file.name}")
    except OSError:
        return None
    with opened:
        status = os.fstat(opened.fileno())
        opened.seek(max(0, status.st_size - _MOST_BYTES))
        return opened.read(_MOST_BYTES), status.st_mtime


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line) if len(line) <= _LONGEST_LINE else None
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
