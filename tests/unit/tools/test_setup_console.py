"""What a setup prints, how it ends programs, and which reason it gives."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.toolchain import console
from vertex_training_cli.toolchain.console import SubprocessError


@pytest.mark.parametrize(
    ("terminal", "period", "out"),
    [
        (True, 1.0, "\r  building ... 3 s\r\033[K"),
        (False, 15.0, "  building ... 3 s\n"),
    ],
)
def test_a_silent_program_has_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool,
    period: float, out: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    beat = console.Heartbeat("building")
    assert beat.period == period
    beat.beat(3.2)
    beat.clear()
    assert capsys.readouterr().out == out


class Answers:
    """``subprocess.run`` that answers so; what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
        self.given: dict[str, Any] = {}
        self.answer = answer
        monkeypatch.setattr(console.subprocess, "run", self)

    def __call__(self, parts: list[str], **options: Any) -> Any:
        self.given = {"parts": parts, **options}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def done(code: int = 0, out: str = "", err: str = "") -> Any:
    return SimpleNamespace(returncode=code, stdout=out, stderr=err)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (done(3, "out\n", "one\ntwo\n"), "x: two"),
        (done(3, "out\nlast\n", " \n"), "x: last"),
        (done(3), "x: exit code 3"),
        (subprocess.TimeoutExpired("x", 5), "x: no answer in 5 s"),
        (FileNotFoundError(2, "No such file or directory"), "x: No such file or directory"),
    ],
)
def test_a_command_that_fails_has_one_line(
    monkeypatch: pytest.MonkeyPatch, answer: Any, reason: str
) -> None:
    Answers(monkeypatch, answer)
    with pytest.raises(SubprocessError) as failed:
        console.read_output(["x"], limit=5.4)
    assert str(failed.value) == reason


class Program:
    """A program that goes on for some seconds: of ``waits``, how long each wait for it takes."""

    pid = 4242

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *waits: float, code: int | None) -> None:
        self.waits, self.code, self.now = list(waits), code, 100.0
        self.asked: list[float] = []
        monkeypatch.setattr(console.time, "monotonic", lambda: self.now)

    def poll(self) -> int | None:
        return None if self.waits else self.code

    def wait(self, limit: float) -> int:
        self.asked.append(limit)
        if self.waits:
            self.now += self.waits.pop(0)
            raise subprocess.TimeoutExpired("x", limit)
        assert self.code is not None
        return self.code


@pytest.mark.parametrize(
    ("waits", "code", "sent"),
    [
        ((), 0, []),  # it has ended
        ((), None, ["SIGTERM"]),
        ((3,), None, ["SIGTERM", "SIGKILL"]),
        ((3, 3), None, ["SIGTERM", "SIGKILL"]),
    ],
)
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_program_is_ended_with_its_group_and_killed_after_a_while(
    monkeypatch: pytest.MonkeyPatch, waits: tuple[float, ...], code: int | None, sent: list[str],
    is_gone: bool,
) -> None:  # fmt: skip
    def kill(group: int, number: signal.Signals) -> None:
        killed.append((group, number.name))
        program.code = -number
        if is_gone:
            raise ProcessLookupError

    killed: list[tuple[int, str]] = []
    program = Program(monkeypatch, *waits, code=code)
    monkeypatch.setattr(console.os, "killpg", kill)
    console.end_group(program)  # pyright: ignore
    assert killed == [(4242, name) for name in sent]
    assert program.asked == [3.0] * len(sent)
