"""What a setup prints, how it ends programs, and which reason it gives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.toolchain import console
from vertex_training_cli.toolchain.console import SetupError, SubprocessError


def test_an_error_is_a_whole_message() -> None:
    assert str(SetupError("no usable pulumi", ["path: none", "build: no Go"], "install it")) == (
        "setup: no usable pulumi\n  tried: path: none\n  tried: build: no Go\n  Hint: install it"
    )
    assert str(SetupError("it")) == "setup: it"


def test_a_step_is_a_line_with_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [1.0, 3.25]
    monkeypatch.setattr(console.time, "monotonic", lambda: times.pop(0))
    monkeypatch.setattr(
        console, "ProgressLine",
        lambda: SimpleNamespace(note="", seconds=2.25),
    )  # fmt: skip
    with console.step("Python") as line:
        line.note = "3.11"
    assert capsys.readouterr().out == "  Python               3.11 (2.2 s)\n"
    with pytest.raises(ValueError, match="no"), console.step("Python"):
        raise ValueError("no")
    assert capsys.readouterr().out == ""


def test_the_seconds_of_a_line_are_those_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.time, "monotonic", lambda: 7.5)
    assert console.ProgressLine(started=5.0).seconds == 2.5


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


@pytest.mark.parametrize(
    ("text", "count", "reason"),
    [
        ("", 3, "(it printed nothing)"),
        (" \n\n", 3, "(it printed nothing)"),
        ("a\n  b \n\nc\nd\n", 3, "b | c | d"),
        ("a\nb\n", 1, "b"),
        ("only", 3, "only"),
    ],
)
def test_the_reason_is_the_end_of_a_log(tmp_path: Path, text: str, count: int, reason: str) -> None:
    (tmp_path / "log").write_text(text)
    assert console.last_lines(tmp_path / "log", count) == reason
    if count == 3:
        assert console.last_lines(tmp_path / "log") == reason


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


def test_the_output_of_a_short_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "kept")
    answers = Answers(monkeypatch, done(out=" v3.259.0\n"))
    assert console.read_output([Path("/bin/pulumi"), "version"]) == "v3.259.0"
    given = answers.given
    assert given["parts"] == ["/bin/pulumi", "version"]
    assert (given["timeout"], given["stdin"], given["text"]) == (20.0, subprocess.DEVNULL, True)
    assert (given["env"]["PULUMI_SKIP_UPDATE_CHECK"], given["env"]["OWN"]) == ("true", "kept")


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


class Heart:
    """What a heartbeat was told."""

    period = 4.0

    def __init__(self) -> None:
        self.beats: list[float | str] = []

    def beat(self, seconds: float) -> None:
        self.beats.append(seconds)

    def clear(self) -> None:
        self.beats.append("clear")


@pytest.mark.parametrize(
    ("waits", "beats"),
    [((), []), ((4,), [4]), ((4, 4, 2), [4, 8, 10])],  # as long as the limit, and no longer
)
def test_a_program_is_waited_for_with_a_beat_each_period(
    monkeypatch: pytest.MonkeyPatch, waits: tuple[float, ...], beats: list[float]
) -> None:
    program, heart = Program(monkeypatch, *waits, code=3), Heart()
    assert console._wait_for(program, heart, 10.0) == 3  # pyright: ignore
    assert heart.beats == [*beats, "clear"]
    assert program.asked == [4.0] * (len(waits) + 1)


def test_a_program_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program, heart = Program(monkeypatch, 4, 6.5, 4, code=0), Heart()
    with pytest.raises(SubprocessError, match=r"^no end after 10 s, given up$"):
        console._wait_for(program, heart, 10.4)  # pyright: ignore
    assert heart.beats == [4, 10.5, "clear"]


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
