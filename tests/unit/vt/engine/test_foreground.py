"""A real child process, and the signals that reach it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vertex_training_cli.engine import pulumi_cli

ROOT = Path(__file__).parents[4]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
CHILD = """\
import signal, sys
noted = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, noted)
print("ready", flush=True)
for _ in range(2):
    print("got", signal.Signals(signal.sigwait(noted)).name, flush=True)
sys.exit(8)
"""
PARENT = """\
import sys
from pathlib import Path
from vertex_training_cli.engine import pulumi_cli
code = pulumi_cli.run_at_terminal([sys.executable, "-c", sys.argv[1]], Path.cwd(), {})
print("exit code", code, flush=True)
"""


def start(script: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, script], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        start_new_session=True,  # no controlling terminal, as in CI
    )  # fmt: skip
    return process


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.parametrize("to_group", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_reaches_the_child_once(number: signal.Signals, to_group: bool) -> None:
    process = start(CHILD)
    assert line(process) == "ready"
    send = os.killpg if to_group else os.kill
    send(process.pid, number)
    assert line(process) == f"got {number.name}"
    send(process.pid, number)
    assert line(process) == f"got {number.name}"
    assert line(process) == "exit code 8"
    assert process.wait(60) == 0


@pytest.mark.parametrize(("script", "code"), [("raise SystemExit(3)", 3), ("", 0)])
def test_exit_code_of_the_child_is_returned(script: str, code: int) -> None:
    process = start(script)
    assert line(process) == f"exit code {code}"
    process.wait(60)


def test_child_ended_by_a_signal_returns_128_plus_its_number() -> None:
    process = start("import os; os.kill(os.getpid(), 9)")
    assert line(process) == "exit code 137"
    process.wait(60)


def test_signal_during_the_start_of_the_child_ends_it() -> None:
    meddled = """\
import os, signal, subprocess
real = subprocess.Popen
def slow(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGTERM)
    return real(*args, **kwargs)
subprocess.Popen = slow
"""
    sleeper = "import time; time.sleep(60)"
    done = subprocess.run(
        [sys.executable, "-c", meddled + PARENT, sleeper], cwd=ROOT, text=True, timeout=50,
        capture_output=True, start_new_session=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "exit code 143", done.stderr


def test_signal_taken_by_another_thread_reaches_the_child() -> None:
    """A wait for the child alone sleeps on: as when a signal comes just before it begins."""
    meddled = """\
import signal
from vertex_training_cli.engine import pulumi_cli
real = pulumi_cli._write
def write(file, content):
    done = real(file, content)
    if content:
        signal.raise_signal(signal.SIGTERM)  # in the thread that copies
    return done
pulumi_cli._write = write
"""
    done = subprocess.run(
        [sys.executable, "-c", meddled + PARENT, CHILD], cwd=ROOT, text=True, timeout=60,
        capture_output=True, start_new_session=True, check=False,
    )  # fmt: skip
    assert "got SIGTERM\ngot SIGTERM\nexit code 8" in done.stdout, done.stderr


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal: the end that a person types at, and the end that programs have."""
    typed, used = pty.openpty()
    yield typed, used
    os.close(typed)
    os.close(used)


def start_at(terminal: int, script: str) -> subprocess.Popen[str]:
    attach = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    return subprocess.Popen(
        [sys.executable, "-c", attach + PARENT, script], cwd=ROOT, text=True,
        stdin=terminal, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def test_ctrl_c_at_a_terminal_reaches_the_child_once(terminal: tuple[int, int]) -> None:
    typed, used = terminal
    process = start_at(used, CHILD)
    assert line(process) == "ready"
    os.write(typed, b"\x03")
    assert line(process) == "got SIGINT"
    process.terminate()
    assert line(process) == "got SIGTERM"
    assert line(process) == "exit code 8"
    assert process.wait(60) == 0


def test_the_child_may_ask_a_question_at_a_terminal(terminal: tuple[int, int]) -> None:
    typed, used = terminal
    # A process in the background that ignores SIGTTIN gets an error instead of the answer.
    question = """\
import signal
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
print("answer", input(), flush=True)
"""
    process = start_at(used, question)
    os.write(typed, b"yes\n")
    assert line(process) == "answer yes"
    assert line(process) == "exit code 0"
    assert process.wait(60) == 0


def test_closed_output_does_not_end_the_child(tmp_path: Path) -> None:
    note = tmp_path / "done"
    script = f"import os; [print(n, flush=True) for n in range(99)]; os.mkdir({str(note)!r})"
    process = start(script)
    assert process.stdout
    process.stdout.close()
    process.wait(60)
    assert note.exists()


def test_signal_handlers_and_open_files_are_restored(tmp_path: Path) -> None:
    env = {"PATH": os.defpath}

    def state() -> tuple[list[object], set[str]]:
        return [signal.getsignal(each) for each in SIGNALS], set(os.listdir("/proc/self/fd"))

    marked = [signal.signal(each, lambda *_: None) for each in SIGNALS]
    before = state()
    try:
        assert pulumi_cli.run_at_terminal(["sh", "-c", "exit 1"], tmp_path, env) == 1
        assert state() == before
        assert signal.set_wakeup_fd(-1) == -1
        with pytest.raises(FileNotFoundError):
            pulumi_cli.run_at_terminal([str(tmp_path / "gone")], tmp_path, env)
        assert state() == before
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        for each, handler in zip(SIGNALS, marked, strict=True):
            signal.signal(each, handler)
