"""One try at a task: its runnables in order, what ends it, and its exit code; no program runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.batch import tasks
from localgcp.batch.tasks import Attempt, Barriers, is_retried
from localgcp.errors import CommandNotFoundError, ImageError, PreparationError
from localgcp.home import Home
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending, Outcome
from tests.unit.localcloud.batch.rows import batch_row
from tests.unit.localcloud.conftest import TRAINER


class Tries:
    """Tries of one task. A runnable ``{"exits": N}`` exits with N, one that raises does so."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.home, self.folder = home, folder
        (folder / "work").mkdir()
        self.began: list[int] = []
        self.options: list[dict[str, Any]] = []
        self.closed: list[str] = []
        self.said: list[str] = []
        self.ending = threading.Event()
        self.preempted: Callable[[float], bool] = lambda _ran: False

    def attempt(self, *runnables: dict[str, Any], barriers: Barriers | None = None, **spec: Any
                ) -> Attempt:  # fmt: skip
        machine: Any = SimpleNamespace(
            job=batch_row(runnables=[*runnables], **spec), home=self.home, report=self.said.append,
            folders=SimpleNamespace(work=self.folder / "work"), prepare=self._prepare,
        )  # fmt: skip
        log, service = JobLog(self.folder / "log"), {"BATCH_TASK_INDEX": "3"}
        return Attempt(
            machine, 3, log, barriers or Barriers(1), service, self.ending,
            lambda ran: self.preempted(ran), lambda _ran: False,
        )  # fmt: skip

    def code(self, *runnables: dict[str, Any], **more: Any) -> int | None:
        return self.attempt(*runnables, **more).run()

    def _prepare(self, index: int, runnable: Any, service: Any, name: str) -> Any:
        assert service == {"BATCH_TASK_INDEX": "3"}
        if error := runnable.get("unready"):
            raise error
        self.began.append(index)
        argv = ["program", str(index)]
        launch = SimpleNamespace(argv=argv, env={"HOME": "h"}, umask=0o22, terminate=runnable)
        return SimpleNamespace(close=lambda: self.closed.append(name)), launch

    def run(self, argv: list[str], **options: Any) -> Outcome:
        """In place of a process."""
        self.options.append({"argv": argv, **options})
        runnable, stop = options["terminate"], options["cancelled"]
        if error := runnable.get("missing"):
            raise error
        if runnable.get("lasts"):
            stop.wait(20)
            time.sleep(0.02)  # it takes a while to end
            return Outcome(Ending.CANCELLED, 143)
        ending = Ending.TIMED_OUT if runnable.get("late") else Ending.EXITED
        return Outcome(ending, runnable.get("exits", 0))


@pytest.fixture
def tries(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tries:
    (folder := tmp_path / "task").mkdir()
    made = Tries(home, folder)
    monkeypatch.setattr(tasks.replica, "run", made.run)
    return made


@pytest.mark.parametrize(
    ("runnables", "code", "began"),
    [
        ([{}, {}], 0, [0, 1]),
        ([{"exits": 3}, {}], 3, [0]),
        ([{"exits": 3, "ignoreExitStatus": True}, {}], 0, [0, 1]),
        ([{"exits": 3}, {}, {"alwaysRun": True}, {}], 3, [0, 2]),
        ([{"exits": 3}, {"alwaysRun": True, "exits": 4}], 3, [0, 1]),
        ([{}, {"alwaysRun": True, "exits": 4}], 4, [0, 1]),
        ([{"alwaysRun": True}], 0, [0]),
        ([{"late": True, "exits": 143}, {}], 50005, [0]),
        ([{"late": True}, {}], 50005, [0]),
        ([{"barrier": {}}, {}], 0, [1]),
        ([{"unready": PreparationError("x")}, {}], 50000, []),
        ([{"unready": ImageError("x")}, {}], 125, []),
        ([{"unready": CommandNotFoundError("x")}, {}], 127, []),
        ([{"missing": CommandNotFoundError("x")}, {}], 127, [0]),
        ([{"background": True, "exits": 3}, {}], 0, [0, 1]),
        ([{"background": True, "lasts": True}, {"exits": 2}], 2, [0, 1]),
    ],
)
def test_the_first_failure_is_the_tasks_and_what_follows_depends_on_the_runnable(
    tries: Tries, runnables: list[dict[str, Any]], code: int, began: list[int]
) -> None:
    assert tries.code(*runnables) == code
    assert sorted(tries.began) == began
    assert sorted(tries.closed) == [f"vt-u-j-3-{index}" for index in began]


def test_what_goes_wrong_is_in_the_agents_log(tries: Tries) -> None:
    tries.code(
        {"exits": 3, "displayName": "train", "ignoreExitStatus": True},
        {"unready": PreparationError("no secret"), "ignoreExitStatus": True},
        {"missing": CommandNotFoundError("no program"), "ignoreExitStatus": True},
        {"late": True, "exits": 143, "ignoreExitStatus": True},
        {},
    )
    assert tries.said == [
        "task 3, train exited with status 3",
        "task 3, runnable 1: no secret",
        "task 3, runnable 2: no program",
    ]


def test_a_program_gets_its_place_its_time_and_its_account(tries: Tries) -> None:
    attempt = tries.attempt({"timeout": "90s"}, {"background": True})
    work = tries.folder / "work"
    (root := tries.folder / "root").mkdir()
    attempt.run()
    del tries.options[:]
    assert attempt.run() == 0  # once more on the same disk
    common = {
        "umask": 0o22, "cwd": work, "log": attempt.log, "notes": tries.home.children,
        "killed": attempt.killed, "account": TRAINER,
    }  # fmt: skip
    first, second = tries.options
    stops = [each.pop("cancelled") for each in (first, second)]
    assert first == {
        "argv": ["program", "0"], "env": {"HOME": "h"}, "terminate": {"timeout": "90s"},
        "timeout_seconds": 90.0, **common,
    }  # fmt: skip
    # A home of its own: else the end of one before it would end it, too.
    home = tries.folder / "background-1"
    assert second == {
        "argv": ["program", "1"], "env": {"HOME": str(home)}, "terminate": {"background": True},
        "timeout_seconds": None, **common,
    }  # fmt: skip
    assert home.is_dir()
    assert stops[0] is not stops[1]
    assert not root.exists()


@pytest.mark.parametrize(
    ("why", "code"), [("preempted", 50001), ("late", 50005), ("ending", None), ("failed", 2)]
)
def test_a_task_is_cut_short_and_nothing_else_begins(
    tries: Tries, monkeypatch: pytest.MonkeyPatch, why: str, code: int | None
) -> None:
    monkeypatch.setattr(tasks, "_LOOK_SECONDS", 0.01)
    first = {"exits": 2} if why == "failed" else {"lasts": True}
    after = [{"alwaysRun": True, "lasts": True}, {"alwaysRun": True}]
    attempt = tries.attempt(first, *after, maxRunDuration="1000s")

    def preempted(ran: float) -> bool:
        if len(tries.began) == (2 if why == "failed" else 1):  # the one that lasts
            if why == "ending":
                tries.ending.set()
            elif why != "preempted":
                attempt._began -= 1001
            return why == "preempted" and ran >= 0
        return False

    tries.preempted = preempted
    assert attempt.run() == code  # of a failure and of what came later, the first one's
    assert tries.began == ([0, 1] if why == "failed" else [0])
    assert tries.said == (["task 3, runnable 0 exited with status 2"] if why == "failed" else [])


def test_a_task_waits_at_a_barrier_for_all_others(tries: Tries) -> None:
    barriers = Barriers(3)
    attempt = tries.attempt({}, {"barrier": {}}, {}, barriers=barriers)
    thread = threading.Thread(target=attempt.run)
    thread.start()
    barriers.reach(1, 0)
    barriers.reach(1, 0)  # tried again
    barriers.reach(0, 1)  # another barrier
    time.sleep(0.1)
    assert (tries.began, barriers.is_open(1)) == ([0], False)
    barriers.reach(1, 1)
    thread.join(20)
    assert tries.began == [0, 2]
    assert (barriers.is_open(1), barriers.is_open(0), barriers.is_open(7)) == (True, False, False)


def test_a_task_at_a_barrier_ends_with_its_job(
    tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_LOOK_SECONDS", 0.01)
    tries.ending.set()
    assert tries.code({"barrier": {}}, {}, barriers=Barriers(2)) is None
    assert tries.began == []


@pytest.mark.parametrize(
    ("spec", "code", "retries", "again"),
    [
        ({}, 1, 0, False),
        ({"maxRetryCount": 1}, 1, 0, True),
        ({"maxRetryCount": 1}, 1, 1, False),
        ({"maxRetryCount": "2"}, 1, 1, True),
    ],
)
def test_a_task_has_as_many_retries_as_it_says(
    spec: dict[str, Any], code: int, retries: int, again: bool
) -> None:
    assert is_retried(spec, code, retries) is again


def test_the_first_policy_decides_on_a_retry() -> None:
    codes = [{"action": action, "actionCondition": {"exitCodes": [code]}}
             for action, code in (("RETRY_TASK", 7), ("FAIL_TASK", 8))]  # fmt: skip
    spec = {"maxRetryCount": 3, "lifecyclePolicies": codes}
    assert [is_retried(spec, code, 0) for code in (7, 8, 9)] == [True, False, False]
    spec["lifecyclePolicies"] = [*reversed(codes)]
    assert [is_retried(spec, code, 0) for code in (7, 8, 9)] == [True, False, True]
