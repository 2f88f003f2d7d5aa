"""One process of a job: how it is started, what ends it, and what is left of it."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localgcp import processes
from localgcp.access import guests
from localgcp.errors import CommandNotFoundError
from localgcp.processes import ChildProcess
from localgcp.runner import replica
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending, Outcome
from tests.unit.localcloud.conftest import wait_until


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at cancels and faults are frequent."""
    monkeypatch.setattr(replica, "_LOOK_SECONDS", 0.01)


def run(folder: Path, script: str, **given: Any) -> Outcome:
    env = {"PATH": os.defpath, "OWN": "1"}
    return replica.run(
        ["sh", "-c", script],
        env=given.pop("env", env),
        cwd=folder,
        log=JobLog(folder / "log"),
        notes=folder / "notes",
        cancelled=given.pop("cancelled", threading.Event()),
        **given,
    )


def log(folder: Path) -> str:
    return (folder / "log").read_text()


@pytest.mark.usefixtures("typed")
def test_a_process_has_its_folder_its_variables_and_its_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the server")
    script = 'pwd; echo "$OWN$SECRET" >&2; cat; touch file; umask; ps -o sid= -p $$; echo $$'
    assert run(tmp_path, script) == Outcome(Ending.EXITED, 0)
    where, own, umask, session, pid = log(tmp_path).split()
    assert (where, own, umask) == (str(tmp_path), "1", "0077")
    assert session == pid
    assert run(tmp_path, "umask > open", umask=0o022).code == 0
    assert (tmp_path / "open").read_text() == "0022\n"
    assert list((tmp_path / "notes").iterdir()) == []


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143)],
)
def test_a_code_is_as_a_container_reports_it(tmp_path: Path, script: str, code: int) -> None:
    assert run(tmp_path, script) == Outcome(Ending.EXITED, code)


@pytest.mark.parametrize(
    ("code", "name"),
    [(137, "SIGKILL"), (143, "SIGTERM"), (139, "SIGSEGV"), (129, "SIGHUP"), (128, ""), (1, ""),
     (255, "")],
)  # fmt: skip
def test_a_code_stands_for_a_signal(code: int, name: str) -> None:
    assert replica.signal_name(code) == name


@pytest.mark.parametrize(
    ("command", "why"),
    [("/none/x", "No such file or directory"), (".", "Permission denied")],
)
def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, command: str, why: str) -> None:
    with pytest.raises(CommandNotFoundError) as missing:
        replica.run(
            [command], env={}, cwd=tmp_path, log=JobLog(tmp_path / "log"), notes=tmp_path / "n",
            cancelled=threading.Event(),
        )  # fmt: skip
    assert str(missing.value) == f"{command}: {why}"


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "exec sleep 600", timeout_seconds=0.05)
    assert outcome == Outcome(Ending.TIMED_OUT, 143)


def test_a_cancel_is_no_timeout(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    outcome = run(tmp_path, "exec sleep 600", cancelled=cancelled, timeout_seconds=600.0)
    assert outcome == Outcome(Ending.CANCELLED, 143)


def test_a_process_that_does_not_end_is_killed_after_eight_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert replica.GRACE_SECONDS == 8.0
    monkeypatch.setattr(replica, "GRACE_SECONDS", 0.05)
    script = "trap '' TERM; echo ready; while :; do sleep 0.02; done"
    cancelled = threading.Event()

    def ready(_ran: float) -> bool:
        if "ready" in log(tmp_path):
            cancelled.set()
        return False

    outcome = run(tmp_path, script, cancelled=cancelled, killed=ready)
    assert outcome == Outcome(Ending.CANCELLED, 137)


def test_a_process_is_killed_when_it_is_said_so_by_the_time_it_ran(tmp_path: Path) -> None:
    asked: list[float] = []

    def killed(ran: float) -> bool:
        asked.append(ran)
        return ran > 0.05

    assert run(tmp_path, "exec sleep 600", killed=killed) == Outcome(Ending.EXITED, 137)
    assert asked == sorted(asked)
    assert asked[0] < 20
    assert asked[-1] > 0.05


def test_a_process_may_be_asked_to_end_in_another_way(tmp_path: Path) -> None:
    asked: list[ChildProcess] = []
    cancelled = threading.Event()

    def interrupt(child: ChildProcess) -> bool:
        if not asked:
            os.kill(child.pid, signal.SIGINT)
        asked.append(child)
        return True

    def ready(_ran: float) -> bool:
        if "ready" in log(tmp_path):
            cancelled.set()
        return False

    script = "trap 'exit 5' INT; echo ready; while :; do sleep 0.02; done"
    outcome = run(tmp_path, script, cancelled=cancelled, terminate=interrupt, killed=ready)
    assert outcome == Outcome(Ending.CANCELLED, 5)
    assert {child.role for child in asked} == {"job"}


def gone(pid: str) -> bool:
    return processes.start_time(int(pid)) is None


@pytest.mark.parametrize("script", ["sleep 600 & echo $!", "sleep 600 & echo $!; exit 3"])
def test_what_it_leaves_in_its_group_is_ended(tmp_path: Path, script: str) -> None:
    run(tmp_path, script)
    wait_until(lambda: gone(log(tmp_path).strip()))


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_what_left_its_group_is_ended_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    monkeypatch.setattr(processes, "_KILL_SECONDS", 0)  # the first process may be slow to hear
    cancelled = threading.Event()

    def killed(_ran: float) -> bool:
        if is_begun := log(tmp_path).endswith("\n") and is_cancelled:
            cancelled.set()
        return log(tmp_path).endswith("\n") and not is_begun

    run(tmp_path, "setsid sh -c 'echo $$; exec sleep 600' & sleep 600", killed=killed,
        cancelled=cancelled)  # fmt: skip
    wait_until(lambda: gone(log(tmp_path).strip()))


def test_a_home_of_others_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Path] = []
    monkeypatch.setattr(processes, "end_below", ended.append)
    run(tmp_path, "true")
    run(tmp_path, "true", env={"HOME": str(tmp_path.parent), "PATH": os.defpath})
    assert ended == []
    run(tmp_path, "true", env={"HOME": str(tmp_path), "PATH": os.defpath})
    assert ended == [tmp_path]


def test_a_process_is_noted_and_known_as_its_account_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    @contextmanager
    def guest(pid: int, account: str) -> Any:
        assert processes.start_time(pid)
        seen.append(("in", account))
        yield
        seen.append(("out", account))

    monkeypatch.setattr(guests, "replica", guest)

    def killed(_ran: float) -> bool:
        [note] = (tmp_path / "notes").glob("*.json")
        found = ChildProcess.parse(note.read_text())
        assert found is not None
        seen.append(found.role)
        return True

    run(tmp_path, "exec sleep 600", killed=killed, account="a@b")
    assert seen[0] == ("in", "a@b")
    assert set(seen[1:-1]) == {"job"}
    assert seen[-1] == ("out", "a@b")
    seen.clear()
    run(tmp_path, "exec sleep 600", killed=lambda _ran: True)  # of Google, not of the job
    assert seen == [("in", ""), ("out", "")]


def test_a_system_that_tells_of_no_end_is_asked_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    began = time.monotonic()
    assert run(tmp_path, "exit 3") == Outcome(Ending.EXITED, 3)
    assert time.monotonic() - began < 10
