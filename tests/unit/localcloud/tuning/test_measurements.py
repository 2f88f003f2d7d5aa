"""What a trial's file may hold, by right or by mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.tuning.measurements import Report, read_report
from localgcp.tuning.records import (
    Measurement,
)

UP = [{"metricId": "m", "goal": "MAXIMIZE"}]
#: A start after every report: nothing has elapsed.
LATER = 1e12
TWO = [*UP, {"metricId": "k", "goal": "MINIMIZE"}]


def lines(*reports: Any) -> bytes:
    return b"".join(json.dumps(report).encode() + b"\n" for report in reports)


def report(step: int, **metrics: Any) -> dict[str, Any]:
    """A line as the package cloudml-hypertune writes it."""
    values = {name: str(value) for name, value in metrics.items()}
    rest = {"timestamp": 1.5, "trial": "1", "checkpoint_path": ""}
    return {**rest, **values, "global_step": str(step)}


def read(
    folder: Path, data: bytes, metrics: list[dict[str, str]] = UP, *, best: bool = False
) -> Report:
    file = folder / "metrics"
    file.write_bytes(data)
    return read_report(file, metrics, best=best, began=LATER)


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        ([1, 3, 5], 3),
        ([1, 2, 4], 2),
        ([2, 1, 4], 2),
        ([5, 4], 4),  # none before it: the last that was reported
    ],
)
def test_another_metric_counts_at_the_step_or_at_the_last_before_it(
    tmp_path: Path, steps: list[int], value: int
) -> None:
    data = lines(*(report(step, k=step) for step in steps), report(3, m=1))
    assert read(tmp_path, data, TWO).measurement == Measurement(3, {"m": 1, "k": value})


@pytest.mark.parametrize(("bytes_more", "read_of_it"), [(0, True), (1, False)])
def test_a_line_and_the_end_of_a_file_that_are_read_have_a_bound(
    tmp_path: Path, bytes_more: int, read_of_it: bool
) -> None:
    first = b'{"m": 1}\n'
    padding = b"\n" * ((1 << 20) - len(first) + bytes_more)
    assert bool(read(tmp_path, first + padding).measurement) is read_of_it
    line = b'{"m": 1}' + b" " * ((1 << 16) - 8 + bytes_more)
    assert bool(read(tmp_path, line).measurement) is read_of_it


@pytest.mark.parametrize(
    ("reports", "rest"),
    [
        ([{name: 1 for name in "gfedcba"}], " but of a, b, c, d, e"),
        ([{"n" * 41: 1}], f" but of {'n' * 40}"),
        ([{"m": "x" * 41, "other": 1}], f" but {'x' * 40}, which is no finite number"),
        ([{"timestamp": 1, "trial": 1, "global_step": 1, "checkpoint_path": ""}, 1],
         "; 1 lines of the file are no reports"),
        ([{}], ""),
    ],
)  # fmt: skip
def test_why_a_metric_is_missing_is_told_in_few_words(
    tmp_path: Path, reports: list[Any], rest: str
) -> None:
    text = f"it reported no value of the metric 'm'{rest}"
    assert read(tmp_path, lines(*reports)) == Report(None, text, ())


def test_good_reports_count_beside_bad_lines(tmp_path: Path) -> None:
    data = b"garbage\n" + lines(report(1, m=0.5), report(2, m="nan")) + b'{"m": "0.9", "glo'
    assert read(tmp_path, data).measurement == Measurement(1, {"m": 0.5})
