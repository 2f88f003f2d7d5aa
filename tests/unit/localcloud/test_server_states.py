"""What start and stop do in each state of a server, without a server."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localgcp import lifecycle
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.processes import ChildProcess
from localgcp.server_info import ServerInfo

INFO = ServerInfo(999_999, 1, 2, "now", warnings=("anybody gets in",))
NEW = ServerInfo(5, 6, 7, "later")
WARNING = "warning: anybody gets in (docs/local-stack.md, Who gets in)"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_START_SECONDS", "_STOP_SECONDS", "_DYING_SECONDS", "_POLL_SECONDS"):
        monkeypatch.setattr(lifecycle, limit, 0.05)
    monkeypatch.setattr(lifecycle, "install_tools", lambda _home: None)


@pytest.fixture
def locked(home: Home) -> Iterator[Home]:
    """A home whose lock is held, as by a server."""
    with home.server_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield home


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which servers were ended and started."""
    done: list[str] = []

    def spawn(_home: Home) -> ServerInfo:
        done.append("spawn")
        return NEW

    monkeypatch.setattr(lifecycle, "_spawn", spawn)
    monkeypatch.setattr(lifecycle, "_end_server", lambda _home: done.append("end"))
    return done


@pytest.mark.parametrize(
    ("healthy", "found", "done", "said"),
    [
        (True, INFO, [], [WARNING]),
        (False, NEW, ["end", "spawn"],
         ["the server does not answer; starting it again",
          "the server (process 999999) was killed; starting a new one",
          "local cloud started: vertex 6, storage 7"]),
    ],
)  # fmt: skip
def test_a_server_that_answers_is_kept_and_one_that_does_not_is_replaced(
    locked: Home, steps: list[str], monkeypatch: pytest.MonkeyPatch,
    healthy: bool, found: ServerInfo, done: list[str], said: list[str],
) -> None:  # fmt: skip
    INFO.write(locked.server_file)
    monkeypatch.setattr(lifecycle, "healthy", lambda info: healthy and info == INFO)
    reports: list[str] = []
    assert lifecycle.start(locked, reports.append) == found
    assert (steps, reports) == (done, said)


def test_a_server_that_never_becomes_ready_is_replaced(locked: Home, steps: list[str]) -> None:
    reports: list[str] = []
    assert lifecycle.start(locked, reports.append) == NEW
    assert steps == ["end", "spawn"]
    assert reports == [
        "the server does not answer; starting it again",
        "local cloud started: vertex 6, storage 7",
    ]


def test_both_emulators_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = True

    def answers(port: int) -> bool:
        asked.append(port)
        return answer

    monkeypatch.setattr(lifecycle.storage, "answers", answers)
    with socket.create_server(("127.0.0.1", 0)) as server:
        info = ServerInfo(1, server.getsockname()[1], 77, "now")
        assert lifecycle.healthy(info) is True
        answer = False
        assert lifecycle.healthy(info) is False
    answer = True
    assert lifecycle.healthy(info) is False
    assert asked == [77, 77]


def test_stop_leaves_a_folder_of_someone_else_alone(tmp_path: Path) -> None:
    assert lifecycle.stop(Home(tmp_path, tmp_path)) is False
    assert list(tmp_path.iterdir()) == []


def test_only_a_folder_that_was_made_here_is_removed(home: Home, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    assert lifecycle.check_removable(Home(foreign, tmp_path)) is False
    assert lifecycle.remove(Home(foreign, tmp_path)) is False
    foreign.mkdir()
    with pytest.raises(LocalCloudError) as refused:
        lifecycle.remove(Home(foreign, tmp_path))
    assert str(refused.value) == (
        f"{foreign} was not made by `vt local`; nothing was removed. Hint: look at VT_LOCAL_HOME."
    )
    assert foreign.exists()
    assert lifecycle.check_removable(home) is True
    assert lifecycle.remove(home) is True
    assert not home.root.exists()


def told(call: Any) -> str:
    with pytest.raises(LocalCloudError) as error:
        call()
    return str(error.value)


def test_a_server_that_cannot_be_ended_is_named(
    locked: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle.os, "kill", lambda _pid, _number: pytest.fail("killed"))
    hint = f"Hint: end the process that has {locked.server_lock} open."
    assert told(lambda: lifecycle._end_server(locked)) == (
        f"the server holds its lock but does not become ready. {hint}"
    )
    ServerInfo(os.getpid(), 1, 2, "now").write(locked.server_file)
    assert told(lambda: lifecycle._end_server(locked)) == (
        f"{locked.server_file} names process {os.getpid()}, which is not the server. {hint}"
    )


def test_a_server_that_is_gone_by_then_is_ended(home: Home) -> None:
    INFO.write(home.server_file)
    lifecycle._end_server(home)


@pytest.mark.parametrize(
    ("ends_by", "sent"),
    [
        (signal.SIGTERM, [signal.SIGTERM]),
        (signal.SIGKILL, [signal.SIGTERM, signal.SIGKILL]),
        (None, [signal.SIGTERM, signal.SIGKILL]),
    ],
)
def test_a_server_is_asked_to_end_then_killed(
    locked: Home, monkeypatch: pytest.MonkeyPatch, ends_by: Any, sent: list[int]
) -> None:
    INFO.write(locked.server_file)
    signals: list[int] = []
    asked: list[Any] = []

    def runs(*words: Any) -> bool:
        asked.append(words)
        return True

    monkeypatch.setattr(lifecycle.os, "kill", lambda _pid, number: signals.append(number))
    monkeypatch.setattr(lifecycle.processes, "runs", runs)
    monkeypatch.setattr(ChildProcess, "is_alive", lambda _self: ends_by not in signals)
    lifecycle._end_server(locked)
    assert signals == sent
    assert asked == [(999_999, "localgcp.server", str(locked.root))]


class Process:
    """A process that was started: never ready, over after ``code`` if it has one."""

    pid = 42

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.killed = False

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.killed = True


def spawned(monkeypatch: pytest.MonkeyPatch, code: int | None, log: bytes) -> tuple[Process, Any]:
    process, given = Process(code), {}

    def popen(command: list[str], **options: Any) -> Process:
        options["stdout"].write(log)
        options["stdout"].flush()
        given.update(options, command=command)
        return process

    monkeypatch.setattr(lifecycle.subprocess, "Popen", popen)
    return process, given


def test_a_server_that_is_not_ready_in_time_is_killed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    INFO.write(home.server_file)  # of another process
    process, _ = spawned(monkeypatch, None, b"")
    assert told(lambda: lifecycle._spawn(home)) == (
        f"the local cloud was not ready after 0 s. Hint: see {home.server_log}."
    )
    assert process.killed
