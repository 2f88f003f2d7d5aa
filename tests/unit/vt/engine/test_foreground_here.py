"""A command in place of this process: its output, exit code and signals, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vertex_training_cli.engine import foreground

ENV = {"PATH": os.defpath, "WORD": "given"}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


def run(tmp_path: Path, script: str) -> int:
    return foreground.run(["sh", "-c", script], tmp_path, ENV)


def test_signals_and_files_are_as_before_afterwards(tmp_path: Path) -> None:
    def state() -> tuple[list[object], set[str]]:
        return [signal.getsignal(each) for each in SIGNALS], set(os.listdir("/proc/self/fd"))

    marked = [signal.signal(each, lambda *_: None) for each in SIGNALS]
    before = state()
    try:
        assert run(tmp_path, "exit 1") == 1
        assert state() == before
        assert signal.set_wakeup_fd(-1) == -1
        with pytest.raises(FileNotFoundError):
            foreground.run([str(tmp_path / "gone")], tmp_path, ENV)
        assert state() == before
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        for each, handler in zip(SIGNALS, marked, strict=True):
            signal.signal(each, handler)


def waiting(*kills: signal.Signals) -> str:
    """A script that sends this process signals, tells those that it gets, and ends at the last.

    It begins once a file ``go`` is there.
    """

    def name(number: signal.Signals) -> str:
        return number.name.removeprefix("SIG")

    traps = [f"trap 'echo got {name(each)}' {name(each)}" for each in SIGNALS[:3]]
    last = f"trap 'kill $!; echo got {name(kills[-1])}; exit 8' {name(kills[-1])}"
    sent = [f"kill -{name(each)} {os.getpid()}" for each in kills]
    ready = "until [ -e go ]; do :; done; sleep 5 >/dev/null 2>&1 &"
    return "; ".join([*traps, last, ready]) + f" {'; '.join(sent)}; wait; wait"


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the file ``go`` when the command is waited for: no signal comes while it is started."""
    real = foreground._wait

    def wait(process: subprocess.Popen[bytes], arrived: int) -> int:
        (tmp_path / "go").touch()
        return real(process, arrived)

    monkeypatch.setattr(foreground, "_wait", wait)


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("number", SIGNALS[:3])
def test_a_signal_to_this_process_goes_to_the_command(
    tmp_path: Path, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, waiting(number)) == 8
    assert capfd.readouterr().out == f"got {number.name.removeprefix('SIG')}\n"


@pytest.mark.usefixtures("started")
def test_ctrl_c_at_a_terminal_is_not_sent_on_and_all_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(foreground, "_in_foreground", lambda: True)
    assert run(tmp_path, waiting(signal.SIGINT, signal.SIGTERM)) == 8
    assert capfd.readouterr().out == "got TERM\n"


@pytest.mark.parametrize("number", SIGNALS[:3])
def test_a_signal_that_comes_while_the_command_is_started_goes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def start(*given: Any, **more: Any) -> Any:
        os.kill(os.getpid(), number)
        return real(*given, **more)

    real = subprocess.Popen
    monkeypatch.setattr(foreground.subprocess, "Popen", start)
    assert run(tmp_path, "exec sleep 5 >/dev/null 2>&1") == 128 + number


def test_what_nobody_reads_any_more_does_not_end_the_command(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        assert foreground._write(writes, b"x") is False
        assert foreground._write(writes, b"") is True
    finally:
        os.close(writes)


@pytest.mark.parametrize(("group", "is_in_front"), [(7, True), (8, False), (None, False)])
def test_a_process_is_in_front_if_its_group_has_the_terminal(
    monkeypatch: pytest.MonkeyPatch, group: int | None, is_in_front: bool
) -> None:
    opened, closed = list[str](), list[int]()

    def owner(file: int) -> int:
        if group is None:
            raise OSError(25, "Inappropriate ioctl for device")
        return group + file - 99

    with monkeypatch.context() as here:
        here.setattr(os, "open", lambda path, _flags: opened.append(path) or 99)
        here.setattr(os, "close", closed.append)
        here.setattr(os, "tcgetpgrp", owner)
        here.setattr(os, "getpgrp", lambda: 7)
        assert foreground._in_foreground() is is_in_front
    assert (opened, closed) == (["/dev/tty"], [99])
