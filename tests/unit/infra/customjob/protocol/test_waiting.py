"""Waits for a job and its next rungs, on a clock that only sleeping moves: ``corpus/waits.yaml``.

An entry has what each look at a job finds, the end of its log, what a ladder and an ``idleStop``
answer, each the last one repeatedly, and what is expected: lines, outcome, the time that it took,
looks of ``idleStop``. A text ``error …`` is raised. ``RECORD=1`` writes the expected values again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.infra.customjob.fakes import REQUEST, job
from tests.unit.infra.customjob.recorded import filled, in_turn, line
from vertex_training.customjob.protocol.idle import IdleFinding, IdleVerdict
from vertex_training.customjob.protocol.ladder import CurrentRung
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.customjob.protocol.waiting import (
    PollBackoff,
    Wait,
    WaitPorts,
    wait_for_job,
)
from vertex_training.errors import OperatorError

FILE = Path(__file__).parents[4] / "corpus/waits.yaml"
ENTRIES: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
NAMES = {
    "OUT": {"state": "FAILED", "error": "Resources are insufficient.", "out_of_stock": True},
    "GPU": {"state": "RUNNING", "accelerators": [["workerpool0-0", 1]]},
}
SPOT = dataclasses.replace(REQUEST, request_id="id2", ladder=("id1", "id2"), words="strategy SPOT")


def snapshot(name: str, found: Any) -> JobSnapshot | None:
    match checked(found):
        case None:
            return None
        case str() as state:
            return job(name, state)
        case {"state": state, **more}:
            return dataclasses.replace(job(name, state), **more)


def checked(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("error "):
        raise OperatorError(value.removeprefix("error "))
    return value


class Links:
    """A ladder and an ``idleStop`` that answer as an entry says."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._moves, self._findings = in_turn(*given.get("rungs", [])), in_turn(*given["idle"])
        self._given, self.cancelled, self.looks = given, False, 0

    def climb(self) -> CurrentRung | None:
        match checked(self._moves()):
            case [None]:
                return CurrentRung(SPOT, None)
            case [name, found, moved]:
                return CurrentRung(SPOT, snapshot(name, found), moved)

    def exhausted(self) -> str:
        return self._given.get("exhausted", "")

    def look(self, _: JobSnapshot) -> IdleVerdict:
        self.looks += 1
        finding = IdleFinding[checked(self._findings())]
        return IdleVerdict(finding, "no utilization data of workerpool0-0")

    def stop(self, _: JobSnapshot, verdict: IdleVerdict) -> str:
        self.cancelled = verdict.finding is IdleFinding.IDLE
        return "nobody works (idleStop)" if self.cancelled else ""

    def reason(self, _: JobSnapshot) -> str:
        stopped = checked(self._given.get("stopped", ""))
        return "nobody works (idleStop)" if self.cancelled else stopped


def observe(given: dict[str, Any]) -> dict[str, Any]:
    links: Any = Links({"idle": [], **given})
    looks = {name: in_turn(*states) for name, states in given["jobs"].items()}
    lines, time = list[str](), [0.0]

    def look(name: str) -> JobSnapshot | None:
        found = snapshot(name, looks[name]())
        if found and links.cancelled:
            return dataclasses.replace(found, state="JOB_STATE_CANCELLED")
        return found

    def tail(name: str, count: int) -> Any:
        assert (name in looks, count) == (True, 20)
        return checked(given.get("log", []))

    async def sleep(seconds: float) -> None:
        time[0] += seconds

    ports = WaitPorts(
        look, tail, lines.append, sleep, lambda: time[0],
        connect_ladder=lambda: links if "rungs" in given else None,
        connect_idle_stop=lambda: links if "idle" in given else None,
    )  # fmt: skip
    wait = Wait("train", 2, given["goal"], given.get("deadline", 3600.0))
    backoff = PollBackoff(**given.get("backoff", {}))
    try:
        ended = asyncio.run(wait_for_job(wait, "first", ports, backoff))
        outcome = f"{ended.name} {ended.state}"
    except OperatorError as error:
        outcome = f"{type(error).__name__}: {error}"
    found = {"lines": lines, "outcome": outcome, "time": time[0]}
    return {**found, "looks": links.looks} if "idle" in given else found


@pytest.mark.parametrize("number", range(len(ENTRIES)))
def test_a_wait_reports_lines_and_ends_as_recorded(number: int) -> None:
    entry = ENTRIES[number]
    found = observe(filled(entry["given"], NAMES))
    if os.environ.get("RECORD"):
        entry["expected"] = found
        text = "".join(f"- given: {line(each['given'])}\n  expected: {line(each.get('expected'))}\n"
                       for each in ENTRIES)  # fmt: skip
        FILE.write_text(f"{FILE.read_text().partition(chr(10))[0]}\n{text}", encoding="utf-8")
    assert found == entry["expected"]


def test_several_waits_go_on_side_by_side() -> None:
    meeting = threading.Barrier(3, timeout=60)  # broken, and an error, if they took turns

    async def one(name: str) -> JobSnapshot:
        def look(_: str) -> JobSnapshot:
            meeting.wait()
            return job("first", "SUCCEEDED")

        ports = WaitPorts(look, lambda *_: [], lambda _: None)
        return await wait_for_job(Wait(name, 1, "succeeded", 60), "first", ports)

    async def all_() -> list[JobSnapshot]:
        return await asyncio.gather(one("a"), one("b"), one("c"))

    assert len(asyncio.run(all_())) == 3
