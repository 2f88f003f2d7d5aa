"""What each reading of a job's accelerators proves, in words, with both sides of each limit."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import pytest

from tests.unit.infra.customjob.fakes import job
from vertex_training.customjob.protocol.idle import (
    IdleFinding,
    IdleRule,
    IdleStop,
    IdleVerdict,
    Reading,
    Series,
    record_of,
)

NOW = 1_800_000_000.0
#: Four minutes may be late, and the rule is about ten before them.
UNTIL = NOW - 240
SINCE = UNTIL - 600
RULE = IdleRule("5% for 10m")
REPLICA = "workerpool0-0"
JOB = dataclasses.replace(
    job("projects/1/locations/r/customJobs/7", "RUNNING"),
    accelerators=((REPLICA, 1),),
    started=int((NOW - 86_400) * 1e9),
)
TIMES = [SINCE + 60 * number for number in range(15)]
POINTS = [(time, 0.0) for time in TIMES]
IDLE = (IdleFinding.IDLE, "no accelerator was at 5% or above for 10m")
UNPROVEN, BUSY, YOUNG = IdleFinding.UNPROVEN, IdleFinding.BUSY, IdleFinding.YOUNG
SPAN = (UNPROVEN, f"points that do not cover the span of {REPLICA}")
GAP = (UNPROVEN, f"points with a gap of {REPLICA}")
ODD = (UNPROVEN, f"an odd point of {REPLICA}")
WORKS = (BUSY, f"{REPLICA} works")


def at(time: float, value: float) -> list[tuple[float, float]]:
    """The points of an idle replica, and another one."""
    return [point for point in POINTS if point[0] != time] + [(time, value)]


@pytest.mark.parametrize(
    ("points", "verdict"),
    [
        (POINTS, IDLE),
        (POINTS[1:], IDLE),
        (POINTS[2:], SPAN),
        (POINTS[:10], IDLE),
        (POINTS[:9], SPAN),
        ([*POINTS[:5], *POINTS[6:]], GAP),
        ([*POINTS[:5], (TIMES[4] + 90, 0.0), *POINTS[6:]], IDLE),
        ([*POINTS[:5], (TIMES[4] + 90.5, 0.0), *POINTS[6:]], GAP),
        (list(reversed(POINTS)), IDLE),
        (at(TIMES[5], 0.0499), IDLE),
        (at(TIMES[5], 0.05), WORKS),
        (at(SINCE, 0.05), IDLE),
        (at(SINCE + 1, 0.05), WORKS),
        (at(SINCE - 60, 1.0), IDLE),
        (at(TIMES[5], -0.01), ODD),
        (at(TIMES[5], math.nan), ODD),
        (at(TIMES[5], math.inf), ODD),
        (at(SINCE - 60, -1.0), ODD),
        (at(SINCE - 61, -1.0), IDLE),
        (at(NOW + 60, 0.0), IDLE),
        (at(NOW + 61, 0.0), ODD),
        ([], (UNPROVEN, f"no points of {REPLICA}")),
    ],
)
def test_points_prove_that_a_replica_did_nothing(points: Any, verdict: Any) -> None:
    found = RULE.judge(JOB, Reading(NOW, [Series(REPLICA, "", points)]))
    assert (found.finding, found.why) == verdict


@pytest.mark.parametrize(
    ("started", "finding"),
    [
        (0, YOUNG),
        (int((SINCE - 240) * 1e9), UNPROVEN),
        (int((SINCE - 239) * 1e9), YOUNG),
        (int((SINCE - 241) * 1e9), UNPROVEN),
    ],
)
def test_a_job_that_runs_for_less_lacks_nothing(started: int, finding: IdleFinding) -> None:
    young = dataclasses.replace(JOB, started=started)
    found = RULE.judge(young, Reading(NOW, []))
    words = {YOUNG: "it has not run for so long", UNPROVEN: f"no points of {REPLICA}"}
    assert (found.finding, found.why) == (finding, words[finding])
    idle = RULE.judge(young, Reading(NOW, [Series(REPLICA, "", POINTS)]))
    assert (idle.finding, idle.why) == IDLE


@pytest.mark.parametrize(
    ("series", "verdict"),
    [
        ([("", 0.0)], IDLE),
        ([("", 0.0249)], IDLE),
        ([("", 0.025)], (UNPROVEN, f"one of the 2 of {REPLICA} may work")),
        ([("", 0.05)], WORKS),
        ([("gpu=0", 0.0), ("gpu=1", 0.0)], IDLE),
        ([("gpu=0", 0.04), ("gpu=1", 0.04)], IDLE),
        ([("gpu=0,uuid=a", 0.0), ("gpu=1,uuid=b", 0.0)], IDLE),
        ([("gpu=0,zone=a", 0.0), ("gpu=1,zone=a", 0.0)], IDLE),
        ([("uuid=MQ==", 0.0), ("uuid=Mg==", 0.0)], IDLE),
        ([("gpu=0", 0.0)], (UNPROVEN, f"no points of all 2 accelerators of {REPLICA}")),
        ([("gpu=0,uuid=a", 0.0), ("gpu=0,uuid=a", 0.0)],
         (UNPROVEN, f"no points of all 2 accelerators of {REPLICA}")),
        ([("gpu=0", 0.0), ("gpu=1", 0.05)], WORKS),
    ],
)  # fmt: skip
def test_each_accelerator_of_a_replica_has_points(series: Any, verdict: Any) -> None:
    of_two = dataclasses.replace(JOB, accelerators=((REPLICA, 2),))
    found = [Series(REPLICA, name, [(t, value) for t in TIMES]) for name, value in series]
    judged = RULE.judge(of_two, Reading(NOW, found))
    assert (judged.finding, judged.why) == verdict


def test_a_job_without_accelerators_is_never_idle() -> None:
    without = dataclasses.replace(JOB, accelerators=())
    found = RULE.judge(without, Reading(NOW, []))
    assert found == IdleVerdict(UNPROVEN, "it has no accelerators")
    assert found.goes_on == (
        "whether it is idle is not known, and it goes on: it has no accelerators"
    )


@pytest.mark.parametrize(
    ("text", "below", "seconds"),
    [("5% for 10m", 0.05, 600.0), ("99% for 2h", 0.99, 7200.0), ("1% for 90m", 0.01, 5400.0)],
)
def test_a_rule_has_a_threshold_and_a_time(text: str, below: float, seconds: float) -> None:
    assert (IdleRule(text).below, IdleRule(text).seconds) == (below, seconds)


def test_what_does_not_run_is_not_read() -> None:
    asked: list[tuple[str, float]] = []

    def read(name: str, seconds: float) -> Reading:
        asked.append((name, seconds))
        return Reading(NOW, [Series(REPLICA, "", POINTS)])

    nobody: Any = None
    stop = IdleStop(RULE, nobody, nobody, read)
    for other in (
        dataclasses.replace(JOB, state="JOB_STATE_PENDING"),
        dataclasses.replace(JOB, accelerators=()),
    ):
        assert stop.look(other) == IdleVerdict(YOUNG, "it does not run")
    assert asked == []
    assert stop.look(JOB).finding is IdleFinding.IDLE
    assert asked == [(JOB.name, 900.0)]


def test_a_job_that_carries_no_request_id_has_no_record() -> None:
    assert record_of("a job", "", cast("Any", None)) is None
