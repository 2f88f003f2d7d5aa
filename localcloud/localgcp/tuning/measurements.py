"""Reads the file to which a trial writes its metrics (``CLOUD_ML_HP_METRIC_FILE``).

The format is that of the package cloudml-hypertune: each report is a line of JSON with
``timestamp``, ``trial``, ``global_step`` and one metric. Values are texts or numbers.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from localgcp.system.root_directory import RootDirectory
from localgcp.tuning.records import Measurement

#: Bytes read from the end of the file. cloudml-hypertune keeps the last 100 reports (about 20 kB).
_MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 16
_MOST_STEPS: Final = 1 << 63


@dataclass(frozen=True)
class Report:
    """The final measurement of a trial, or the reason why it has none."""

    measurement: Measurement | None
    """None if a metric is missing."""
    missing: str = ""
    """The reason why there is no measurement."""


@dataclass
class _Reported:
    """Values by metric and step; steps are in the order of their reports."""

    values: dict[str, dict[int, float]] = field(default_factory=dict[str, dict[int, float]])
    elapsed: dict[int, float] = field(default_factory=dict[int, float])
    """Seconds from the start of the trial, by step."""
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """Number of reports of each metric in the file."""
    others: set[str] = field(default_factory=set[str])
    """Keys of other metrics."""
    unusable: int = 0
    """Number of lines that are no report."""
    not_finite: str = ""


def read_report(
    file: Path,
    metrics: Sequence[Mapping[str, Any]],
    *,
    best: bool,
    began: float,
) -> Report:
    """Return the last measurement, or with ``best`` the best measurement by the first metric.

    ``began``: the time of day at which the trial began.
    """
    tail = _tail(file)
    if tail is None:
        return Report(None, "the trial reported no metric: CLOUD_ML_HP_METRIC_FILE was not written")
    reported, (data, written) = _Reported(), tail
    _read_lines(data, [metric["metricId"] for metric in metrics], (began, written), reported)
    for metric in metrics:
        if metric["metricId"] not in reported.values:
            return Report(None, _missing(metric["metricId"], reported))
    first = metrics[0]
    steps = reported.values[first["metricId"]]
    step = next(reversed(steps))
    if best:
        choose = min if first.get("goal") == "MINIMIZE" else max
        step = choose(steps, key=lambda candidate: steps[candidate])
    values = {m["metricId"]: _at(step, reported.values[m["metricId"]]) for m in metrics}
    return Report(Measurement(step, values, reported.elapsed[step]))


def _at(step: int, reported: dict[int, float]) -> float:
    """Return a metric's value at a step, or at the last step before, or its last value."""
    if step in reported:
        return reported[step]
    before = [other for other in reported if other < step]
    return reported[max(before) if before else next(reversed(reported))]


def _missing(metric: str, reported: _Reported) -> str:
    text = f"the trial reported no value of the metric {metric!r}"
    if reported.not_finite:
        return f"{text} but {reported.not_finite}, which is not a finite number"
    if reported.others:
        return f"{text} but of {', '.join(sorted(reported.others)[:5])}"
    return (
        f"{text}; {reported.unusable} lines of the file are not JSON objects"
        if reported.unusable
        else text
    )


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


_NO_METRICS: Final = frozenset({"timestamp", "trial", "global_step", "checkpoint_path"})


def _read_lines(
    data: bytes, metrics: Sequence[str], times: tuple[float, float], reported: _Reported
) -> None:
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            report = json.loads(line) if len(line) <= _LONGEST_LINE else None
        except (ValueError, RecursionError):
            report = None
        if not isinstance(report, dict):
            reported.unusable += 1
            continue
        _add(report, metrics, times, reported)


def _add(
    report: dict[str, Any], metrics: Sequence[str], times: tuple[float, float], reported: _Reported
) -> None:
    reported.others.update(
        key[:40] for key in report if key not in metrics and key not in _NO_METRICS
    )
    step = _number(report.get("global_step"))
    for metric in metrics:
        if metric not in report:
            continue
        value = _number(report[metric])
        if value is None:
            reported.not_finite = str(report[metric])[:40]
            continue
        steps = reported.values.setdefault(metric, {})
        place = reported.lines[metric] = reported.lines.get(metric, -1) + 1
        at = int(step) if step is not None and 0 <= step < _MOST_STEPS else place
        steps.pop(at, None)  # a step that is reported again is the last one
        steps[at] = value
        reported.elapsed[at] = _elapsed(report.get("timestamp"), times)


def _elapsed(timestamp: Any, times: tuple[float, float]) -> float:
    began, written = times
    reported = _number(timestamp)
    return max(0.0, min(written if reported is None else reported, written) - began)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
