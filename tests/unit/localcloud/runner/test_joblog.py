"""The runner's own lines in a log, and the notes of when it had which length."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localgcp.home import Home
from localgcp.runner.joblog import JobLog, log_path


def test_each_line_of_the_runner_is_marked_with_its_time(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "logs" / "workerpool0-0.log")
    with log.open() as output:
        output.write(b"of the program\n")
    log.append("one\ntwo \u00e9")
    log.append("three")
    first, *ours = log.path.read_text(encoding="utf-8").splitlines()
    assert first == "of the program"
    marks = [re.fullmatch(r"\[local \d\d:\d\d:\d\d\] (.*)", line) for line in ours]
    assert [mark and mark[1] for mark in marks] == ["one", "two \u00e9", "three"]


def test_a_length_is_noted_once_with_its_time(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "a.log")
    times = tmp_path / "a.times"
    log.stamp()
    assert not times.exists()
    log.path.touch()
    log.stamp()
    assert not times.exists()
    with log.open() as output:
        output.write(b"12345\n")
    log.stamp()
    log.stamp()
    [line] = times.read_text().splitlines()
    size, _, time = line.partition(" ")
    assert size == "6"
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(time) < timedelta(minutes=5)
    log.append("x")
    assert [line.partition(" ")[0] for line in times.read_text().splitlines()] == ["6", "25"]


def test_a_log_of_one_byte_has_a_length(tmp_path: Path) -> None:
    log = JobLog(tmp_path / "a.log")
    with log.open() as output:
        output.write(b"\n")
    log.stamp()
    assert (tmp_path / "a.times").read_text().startswith("1 ")


def test_a_replicas_log_lies_in_the_folder_of_its_job(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    assert log_path(home, "42", "workerpool1-0") == home.jobs / "42" / "logs" / "workerpool1-0.log"
