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
from localgcp.batch.tasks import Attempt, Barriers
from localgcp.errors import CommandNotFoundError, PreparationError
from localgcp.home import Home
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending, Outcome
from tests.unit.localcloud.batch.rows import batch_row


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
        ([{"late": True, "exits": 143}, {}], 50005, [0]),
        ([{"barrier": {}}, {}], 0, [1]),
        ([{"unready": PreparationError("x")}, {}], 50000, []),
        ([{"unready": CommandNotFoundError("x")}, {}], 127, []),
        ([{"missing": CommandNotFoundError("x")}, {}], 127, [0]),
        ([{"background": True, "lasts": True}, {"exits": 2}], 2, [0, 1]),
    ],
)
def test_the_first_failure_is_the_tasks_and_what_follows_depends_on_the_runnable(
    tries: Tries, runnables: list[dict[str, Any]], code: int, began: list[int]
) -> None:
    assert tries.code(*runnables) == code
    assert sorted(tries.began) == began
    assert sorted(tries.closed) == [f"vt-u-j-3-{index}" for index in began]
