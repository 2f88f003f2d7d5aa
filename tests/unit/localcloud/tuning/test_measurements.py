"""What a trial's file may hold, by right or by mistake."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from localgcp.tuning.measurements import Report, read_report
from localgcp.tuning.records import (
    MOST_MEASUREMENTS,
    Measurement,
    TrialRecord,
    TuningTable,
)
from localgcp.vertex.records import JobTable

UP = [{"metricId": "m", "goal": "MAXIMIZE"}]
DOWN = [{"metricId": "m", "goal": "MINIMIZE"}]
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


def test_the_last_and_the_best_measurement(tmp_path: Path) -> None:
    data = lines(report(1, m=0.5), report(2, m=0.9), report(3, m=0.7))
    assert read(tmp_path, data).measurement == Measurement(3, {"m": 0.7})
    assert read(tmp_path, data, best=True).measurement == Measurement(2, {"m": 0.9})
    assert read(tmp_path, data, DOWN, best=True).measurement == Measurement(1, {"m": 0.5})


def test_two_metrics_meet_at_the_step_of_the_first(tmp_path: Path) -> None:
    data = lines(report(1, m=9), report(1, k=4), report(2, k=5), report(3, m=1), report(3, k=6))
    assert read(tmp_path, data, TWO).measurement == Measurement(3, {"m": 1, "k": 6})
    assert read(tmp_path, data, TWO, best=True).measurement == Measurement(1, {"m": 9, "k": 4})


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


@pytest.mark.parametrize(
    ("step", "at"), [(0, 0), (2**62, 2**62), (2**63, 1), (-1, 1), ("7", 7), (True, 1)]
)
def test_a_step_is_a_number_of_sixty_three_bits_or_the_place_of_the_report(
    tmp_path: Path, step: Any, at: int
) -> None:
    data = lines(report(3, m=1), {"m": 2, "global_step": step})
    assert read(tmp_path, data).measurement == Measurement(at, {"m": 2})


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


def test_a_step_that_is_reported_again_is_the_last(tmp_path: Path) -> None:
    data = lines(report(5, m=1), report(6, m=2), report(5, m=3))
    assert read(tmp_path, data).measurement == Measurement(5, {"m": 3})


def test_reports_without_steps_and_with_wild_ones_count_in_their_order(tmp_path: Path) -> None:
    wild = [{"m": 1}, {"m": 2, "global_step": "x"}, {"m": 3, "global_step": 1e300}]
    assert read(tmp_path, lines(*wild)).measurement == Measurement(2, {"m": 3})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (lines(report(1, other=1)), "no value of the metric 'm' but of other"),
        (lines(report(1, m=float("nan"))), "but nan, which is no finite number"),
        (b'{"m": NaN}\n{"m": Infinity}\n', "but inf, which is no finite number"),
        (b'{"m": true}\n', "but True, which is no finite number"),
        (b'{"m": "1' + b"0" * 400 + b'"}', "which is no finite number"),
        (b'{"m": 1' + b"0" * 5000 + b"}", "no value of the metric"),
        (os.urandom(5000), "lines of the file are no reports"),
        (b"[" * 100_000, "1 lines of the file are no reports"),
        (b"\xff\xfe{}\n[1]\n3\n", "3 lines of the file are no reports"),
        (b"\n \t\n[1]\n\n", "; 1 lines of the file are no reports"),
        (b"", "no value of the metric 'm'"),
        (lines({"m": {"value": 1}}), "which is no finite number"),
    ],
)
def test_a_file_without_a_usable_report_says_what_it_has(
    tmp_path: Path, data: bytes, text: str
) -> None:
    found = read(tmp_path, data)
    assert found.measurement is None
    assert text in found.missing


def test_good_reports_count_beside_bad_lines(tmp_path: Path) -> None:
    data = b"garbage\n" + lines(report(1, m=0.5), report(2, m="nan")) + b'{"m": "0.9", "glo'
    assert read(tmp_path, data).measurement == Measurement(1, {"m": 0.5})


def test_of_a_file_of_two_gigabytes_only_the_end_is_read(tmp_path: Path) -> None:
    file = tmp_path / "metrics"
    with file.open("wb") as opened:
        opened.truncate(2 << 30)  # takes no room: it is a hole
        opened.seek(0, os.SEEK_END)
        opened.write(b"\n" + lines(report(1, m=0.5)))
    assert read_report(file, UP, best=False, began=LATER).measurement == Measurement(1, {"m": 0.5})


@pytest.mark.parametrize("kind", ["missing", "folder", "link", "pipe", "device"])
def test_anything_but_a_file_of_the_trial_is_no_report(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "metrics"
    other = tmp_path / "other"
    other.write_bytes(lines(report(1, m=1)))
    match kind:
        case "folder":
            file.mkdir()
        case "link":
            file.symlink_to(other)
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
    found = read_report(file, UP, best=False, began=LATER)
    assert found.measurement is None
    assert "CLOUD_ML_HP_METRIC_FILE was not written" in found.missing


def test_measurements_are_in_the_order_of_their_steps_with_the_time_since_the_start(
    tmp_path: Path,
) -> None:
    file = tmp_path / "metrics"
    reports = [report(2, m=0.9), report(1, m=0.5), report(1, k=4), report(3, k=5)]
    for place, each in enumerate(reports):
        each["timestamp"] = 1000.0 + place
    file.write_bytes(lines(*reports))
    found = read_report(file, TWO, best=False, began=999.5)
    last = Measurement(1, {"m": 0.5, "k": 4}, 2.5)
    reported = (last, Measurement(2, {"m": 0.9}, 0.5), Measurement(3, {"k": 5}, 3.5))
    assert found == Report(last, missing="", measurements=reported)


@pytest.mark.parametrize(
    ("timestamp", "elapsed"),
    [(5.0, 0.0), (1e30, 20.0), ("nan", 20.0), (None, 20.0), ([], 20.0), ("1011", 11.0)],
)
def test_a_report_is_between_the_start_and_the_last_change_of_the_file(
    tmp_path: Path, timestamp: Any, elapsed: float
) -> None:
    file = tmp_path / "metrics"
    file.write_bytes(lines({"m": 1, "global_step": 1, "timestamp": timestamp}))
    os.utime(file, (1020, 1020))
    [only] = read_report(file, UP, best=False, began=1000).measurements
    assert only.elapsed == elapsed


@pytest.mark.parametrize("left", [b"", b'{"m": "0.1", "glo', lines(report(4, m=0.4))])
def test_what_was_read_before_counts_while_the_file_is_written_anew(
    tmp_path: Path, left: bytes
) -> None:
    known = [Measurement(1, {"m": 0.9}, 1), Measurement(4, {"m": 0.4}, 2)]
    file = tmp_path / "metrics"
    file.write_bytes(left)
    last = read_report(file, UP, best=False, began=LATER, known=known)
    assert [each.step for each in last.measurements] == [1, 4]
    assert last.measurement is not None
    assert last.measurement.step == 4
    best = read_report(file, UP, best=True, began=LATER, known=known)
    assert best.measurement == known[0]


def test_reports_without_steps_are_no_further_ones_when_they_are_read_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "metrics"
    file.write_bytes(lines({"m": 1}, {"m": 2}))
    once = read_report(file, UP, best=False, began=LATER).measurements
    again = read_report(file, UP, best=False, began=LATER, known=once).measurements
    assert [each.step for each in again] == [each.step for each in once] == [0, 1]


def test_of_more_measurements_than_are_kept_those_of_the_last_steps_stay(tmp_path: Path) -> None:
    table = TuningTable(tmp_path / "cloud.sqlite")
    one, other = (TrialRecord("7", number, str(number), "", {}) for number in (1, 2))
    most = MOST_MEASUREMENTS
    for begin in (0, most // 2):  # as two looks at the file have them
        table.put_measurements(one, [Measurement(n, {"m": n}) for n in range(begin, begin + most)])
    table.put_measurements(other, [Measurement(0, {"m": 0.0})])
    found = table.measurements("7")
    assert [each.step for each in found[1]] == list(range(most // 2, most // 2 + most))
    assert [each.step for each in found[2]] == [0]
    table.put_measurements(other, [Measurement(0, {"m": 2.0}, 3.5)])
    assert table.measurements("7")[2] == [Measurement(0, {"m": 2.0}, 3.5)]
    JobTable(table.path).list()  # makes its table
    table.delete("7")
    assert table.measurements("7") == {}
