"""When a job is cancelled because its accelerators do nothing, and what each reading proves."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.customjob.fakes import World, job
from vertex_training.customjob.protocol.idle import (
    GAP,
    LATE,
    SAMPLE,
    SKEW,
    IdleFinding,
    IdleRule,
    IdleStop,
    IdleVerdict,
    NotCancelledError,
    Reading,
    Series,
    record_of,
)
from vertex_training.customjob.protocol.ports import IntentRecord, IntentState, StoredIntent
from vertex_training.errors import OperatorError, PreconditionFailedError

NOW = 1_800_000_000.0
RULE = IdleRule("5% for 10m")
NAME, ID = "projects/1/locations/r/customJobs/7", "id1"
POOLS = (("workerpool0-0", 1), ("workerpool1-0", 2), ("workerpool1-1", 2))
JOB = dataclasses.replace(
    job(NAME, "RUNNING"), accelerators=POOLS, started=int((NOW - 86400) * 1e9), request_id=ID
)
#: All that the window asks for, and the points that came already after it.
TIMES = [NOW - LATE - RULE.seconds + SAMPLE * n for n in range(15)]


def whole(value: float = 0.0) -> list[Series]:
    """Every point there may be, all of one value: an idle job."""
    points = [(time, value) for time in TIMES]
    return [
        Series(replica, f"accelerator_id={n}" if count > 1 else "", points)
        for replica, count in POOLS
        for n in range(count)
    ]


def judged(series: list[Series], now: float = NOW, of: Any = JOB) -> IdleFinding:
    return RULE.judge(of, Reading(now, series)).finding


series_and_points = st.tuples(st.integers(0, 4), st.integers(0, len(TIMES) - 1))


@given(series_and_points, st.floats(0.05, 1.0))
def test_one_point_of_one_accelerator_is_work(place: tuple[int, int], value: float) -> None:
    series, at = whole(), place[1]
    points = list(series[place[0]].points)
    points[at] = (TIMES[at], value)
    series[place[0]] = dataclasses.replace(series[place[0]], points=points)
    # Of the point that the span begins with, one more may have said the same.
    assert (judged(series) is IdleFinding.BUSY) == (at > 0)


@given(st.sets(series_and_points, min_size=1))
def test_whatever_is_missing_of_the_span_is_no_proof(gone: set[tuple[int, int]]) -> None:
    series = [
        dataclasses.replace(
            each, points=[p for at, p in enumerate(each.points) if (number, at) not in gone]
        )
        for number, each in enumerate(whole())
    ]
    # The newest four minutes may be late, and of both ends of the span one point is enough.
    needed = [(n, at) for n, at in gone if 0 < at < 10]
    if needed:
        assert judged(series) is IdleFinding.UNPROVEN
    assert judged(series) in (IdleFinding.IDLE, IdleFinding.UNPROVEN)


@given(st.floats(-86400, 86400).filter(lambda seconds: abs(seconds) > LATE + SKEW))
def test_a_clock_that_steps_is_no_proof(step: float) -> None:
    assert judged(whole(), NOW + step) is not IdleFinding.IDLE


@given(st.lists(st.floats(0, SAMPLE / 5), min_size=15, max_size=15), st.randoms())
def test_points_come_in_any_order_and_not_to_the_second(late: list[float], order: Any) -> None:
    points = [(time + more, 0.0) for time, more in zip(TIMES, late, strict=True)]
    order.shuffle(points)
    assert (
        judged([dataclasses.replace(each, points=points) for each in whole()]) is IdleFinding.IDLE
    )


def test_points_of_one_replica_are_none_of_another() -> None:
    others = [dataclasses.replace(each, replica="workerpool0-0") for each in whole()]
    assert judged(others) is IdleFinding.UNPROVEN
    assert judged([*whole(), Series("workerpool9-0", "", [(NOW - 300, 1.0)])]) is IdleFinding.BUSY


def test_the_gap_is_less_than_a_lost_point() -> None:
    assert SAMPLE < GAP < 2 * SAMPLE


class Cloud(World):
    """A job that runs, and its record."""

    def __init__(self) -> None:
        super().__init__(jobs={NAME: JOB})
        self.cancelled: list[str] = []
        record = IntentRecord(ID, IntentState.DONE, "me", NAME)
        self.records[ID] = StoredIntent(record, 5, 0.0)
        self.meanwhile = lambda: None
        self.series: list[Series] = []

    def get(self, name: str) -> Any:
        return self.jobs.get(name)

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        self.jobs[name] = dataclasses.replace(self.jobs[name], state="JOB_STATE_CANCELLING")

    def read(self, request_id: str) -> Any:
        return self.records.get(request_id)

    def write(self, record: IntentRecord, generation: int) -> Any:
        self.meanwhile()
        if self.records[record.request_id].generation != generation:
            raise PreconditionFailedError
        self.records[record.request_id] = StoredIntent(record, generation + 1, 0.0)
        return self.records[record.request_id]


def stopping(cloud: Any, series: list[Series]) -> tuple[IdleStop, Any]:
    stop = IdleStop(RULE, cloud, cloud, lambda _name, _seconds: Reading(NOW, series))
    return stop, stop.look(JOB)


def test_a_cancellation_is_recorded_before_it_is_requested() -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, whole())
    assert stop.stop(JOB, verdict) == "no accelerator was at 5% or above for 10m (idleStop)"
    assert cloud.cancelled == [NAME]
    assert stop.reason(JOB) == "no accelerator was at 5% or above for 10m (idleStop)"
    assert stop.stop(JOB, verdict) == ""  # it is being cancelled
    assert cloud.cancelled == [NAME]


@pytest.mark.parametrize("series", [[], whole(0.9), whole()[1:]])
def test_without_a_proof_nothing_is_touched(series: list[Series]) -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, series)
    assert stop.stop(JOB, verdict) == ""
    assert (cloud.cancelled, cloud.records[ID].generation) == ([], 5)


def test_a_process_killed_before_it_asked_is_followed_by_another() -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, whole())
    asks, cloud.cancel = cloud.cancel, lambda _: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        stop.stop(JOB, verdict)
    cloud.cancel = asks
    assert stop.stop(JOB, verdict)
    assert cloud.cancelled == [NAME]


def test_a_refused_cancellation_is_reported_and_leaves_no_reason() -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, whole())
    cloud.cancel = lambda _: (_ for _ in ()).throw(OperatorError("403"))
    with pytest.raises(NotCancelledError, match=r"above for 10m, and it goes on: .* 403"):
        stop.stop(JOB, verdict)
    assert stop.reason(JOB) == ""


def test_a_job_that_works_again_has_no_stop_reason() -> None:
    cloud = Cloud()
    record = dataclasses.replace(cloud.records[ID].record, stopped="idle")  # and then it was killed
    cloud.records[ID] = StoredIntent(record, 6, 0.0)
    stop, verdict = stopping(cloud, whole(0.9))
    assert stop.stop(JOB, verdict) == ""
    assert (stop.reason(JOB), cloud.cancelled) == ("", [])


@pytest.mark.parametrize(
    "change",
    [
        {"state": IntentState.RELEASED},  # `up` takes it out of its stack
        {"state": IntentState.SENDING},
        {"job_name": "projects/1/locations/r/customJobs/8"},
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_job_that_somebody_else_acts_on_is_left_to_them(
    change: dict[str, Any], late: bool
) -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, whole())

    def meanwhile() -> None:
        record = dataclasses.replace(cloud.records[ID].record, **change)
        cloud.records[ID] = StoredIntent(record, 6, 0.0)

    if late:
        cloud.meanwhile = meanwhile
    else:
        meanwhile()
    assert stop.stop(JOB, verdict) == ""
    assert cloud.cancelled == []
    assert stop.reason(JOB) == ""  # what its record says is about another job, or over


def test_a_job_that_ended_meanwhile_is_left_as_it_is() -> None:
    cloud = Cloud()
    stop, verdict = stopping(cloud, whole())
    cloud.jobs[NAME] = dataclasses.replace(JOB, state="JOB_STATE_SUCCEEDED")
    assert stop.stop(JOB, verdict) == ""
    assert cloud.records[ID].record.stopped == ""


#: Four minutes may be late, and the rule is about ten before them.
UNTIL = NOW - 240
SINCE = UNTIL - 600
REPLICA = "workerpool0-0"
ONE = dataclasses.replace(
    job("projects/1/locations/r/customJobs/7", "RUNNING"),
    accelerators=((REPLICA, 1),),
    started=int((NOW - 86_400) * 1e9),
)
MINUTES = [SINCE + 60 * number for number in range(15)]
POINTS = [(time, 0.0) for time in MINUTES]
IDLE = (IdleFinding.IDLE, "no accelerator was at 5% or above for 10m")
UNPROVEN, BUSY, YOUNG = IdleFinding.UNPROVEN, IdleFinding.BUSY, IdleFinding.YOUNG
SPAN = (UNPROVEN, f"points that do not cover the span of {REPLICA}")
HOLE = (UNPROVEN, f"points with a gap of {REPLICA}")
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
        ([*POINTS[:5], *POINTS[6:]], HOLE),
        ([*POINTS[:5], (MINUTES[4] + 90, 0.0), *POINTS[6:]], IDLE),
        ([*POINTS[:5], (MINUTES[4] + 90.5, 0.0), *POINTS[6:]], HOLE),
        (list(reversed(POINTS)), IDLE),
        (at(MINUTES[5], 0.0499), IDLE),
        (at(MINUTES[5], 0.05), WORKS),
        (at(SINCE, 0.05), IDLE),
        (at(SINCE + 1, 0.05), WORKS),
        (at(SINCE - 60, 1.0), IDLE),
        (at(MINUTES[5], -0.01), ODD),
        (at(MINUTES[5], math.nan), ODD),
        (at(MINUTES[5], math.inf), ODD),
        (at(SINCE - 60, -1.0), ODD),
        (at(SINCE - 61, -1.0), IDLE),
        (at(NOW + 60, 0.0), IDLE),
        (at(NOW + 61, 0.0), ODD),
        ([], (UNPROVEN, f"no points of {REPLICA}")),
    ],
)
def test_points_prove_that_a_replica_did_nothing(points: Any, verdict: Any) -> None:
    found = RULE.judge(ONE, Reading(NOW, [Series(REPLICA, "", points)]))
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
    young = dataclasses.replace(ONE, started=started)
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
        ([("gpu=0", 0.0), ("gpu=0,x=1", 0.0)],
         (UNPROVEN, f"no points of all 2 accelerators of {REPLICA}")),
        ([("gpu=0,uuid=a", 0.0), ("gpu=0,uuid=a", 0.0)],
         (UNPROVEN, f"no points of all 2 accelerators of {REPLICA}")),
        ([("gpu=0", 0.0), ("gpu=1", 0.05)], WORKS),
    ],
)  # fmt: skip
def test_each_accelerator_of_a_replica_has_points(series: Any, verdict: Any) -> None:
    of_two = dataclasses.replace(ONE, accelerators=((REPLICA, 2),))
    found = [Series(REPLICA, name, [(t, value) for t in MINUTES]) for name, value in series]
    judged = RULE.judge(of_two, Reading(NOW, found))
    assert (judged.finding, judged.why) == verdict


def test_a_job_without_accelerators_is_never_idle() -> None:
    without = dataclasses.replace(ONE, accelerators=())
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
        dataclasses.replace(ONE, state="JOB_STATE_PENDING"),
        dataclasses.replace(ONE, accelerators=()),
    ):
        assert stop.look(other) == IdleVerdict(YOUNG, "it does not run")
    assert asked == []
    assert stop.look(ONE).finding is IdleFinding.IDLE
    assert asked == [(ONE.name, 900.0)]


def test_a_job_that_carries_no_request_id_has_no_record() -> None:
    assert record_of("a job", "", cast("Any", None)) is None
