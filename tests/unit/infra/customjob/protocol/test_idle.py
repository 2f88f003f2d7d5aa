"""When a job is cancelled because its accelerators do nothing, and what each reading proves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.infra.customjob.fakes import World, job
from vertex_training.customjob.protocol.idle import (
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
    with pytest.raises(
        NotCancelledError, match=r"but the cancellation failed and the job continues: 403"
    ):
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
ONE = dataclasses.replace(JOB, accelerators=((REPLICA, 1),))
MINUTES = [SINCE + 60 * number for number in range(15)]
POINTS = [(time, 0.0) for time in MINUTES]
FILE = Path(__file__).parents[4] / "corpus/idle.yaml"
ROWS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def series_of(given: dict[str, Any]) -> Series:
    """Return the points of an entry: an idle replica, and what is different about it."""
    without = {SINCE + each for each in given.get("without", [])}
    points = [
        point for point in POINTS[slice(*given.get("minutes", [15]))] if point[0] not in without
    ]
    points = [(time, given.get("all", value)) for time, value in points]
    return Series(
        REPLICA, given.get("name", ""), points + [(SINCE + t, v) for t, v in given.get("more", [])]
    )


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_points_prove_that_accelerators_did_nothing_or_they_do_not(row: dict[str, Any]) -> None:
    count = row.get("count", 1)
    accelerators = ((REPLICA, count),) if count else ()
    one = dataclasses.replace(ONE, accelerators=accelerators)
    if "started" in row:
        one = dataclasses.replace(one, started=int((SINCE + row["started"]) * 1e9))
    found = RULE.judge(one, Reading(NOW, [series_of(each) for each in row["series"]]))
    assert f"{found.finding.name}: {found.why}" == row["verdict"]
    assert found.goes_on == f"idleStop cannot check the job; the job continues: {found.why}"


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
        assert stop.look(other) == IdleVerdict(IdleFinding.YOUNG, "the job is not running")
    assert asked == []
    assert stop.look(ONE).finding is IdleFinding.IDLE
    assert asked == [(ONE.name, 900.0)]
