"""The thread that drives tuning jobs: when it looks, what it survives, and how it ends."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from localgcp.tuning import driver as drivers
from localgcp.vertex.records import JobState
from tests.unit.localcloud.tuning.test_driver import Studied, studied

__all__ = ["studied"]


def test_a_database_that_is_locked_is_looked_at_again(
    studied: Studied, monkeypatch: pytest.MonkeyPatch
) -> None:
    studied.make()

    def locked(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("locked")

    monkeypatch.setattr(drivers.progress, "next_step", locked)
    with pytest.raises(sqlite3.OperationalError):
        studied.driver.advance()
    assert studied.tuning.state is JobState.PENDING


def test_the_thread_looks_often_while_a_job_lives_and_after_a_lock_a_second_later(
    studied: Studied, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = list[Any]()

    class Changed:
        def wait(self, seconds: float | None) -> None:
            done.append(seconds)
            if done.count(0.2) + done.count(None) == 4:  # a stop ends the wait
                studied.driver._stopping.set()

        def clear(self) -> None:
            done.append("clear")

    looks = iter([sqlite3.OperationalError("locked"), False, True])

    def advance() -> bool:
        done.append("look")
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(studied.driver, "_changed", Changed())
    monkeypatch.setattr(studied.driver._stopping, "wait", done.append)
    monkeypatch.setattr(studied.driver, "advance", advance)
    studied.driver._work()
    look = ["clear", "look"]
    assert done == [0.2, *look, 1, 0.2, *look, None, *look, 0.2, "clear"]
    assert "OperationalError: locked" in capsys.readouterr().err


def test_a_server_settles_trials_that_ended_without_one(studied: Studied) -> None:
    studied.make(trials=1)
    studied.driver.advance()
    studied.table.move(studied.id, JobState.FAILED)
    studied.end(1, 0.5)
    studied.driver.start()
    studied.driver.stop()
    assert studied.states() == ["SUCCEEDED"]
