"""What a setup prints, how it ends programs, and which reason it gives."""

from __future__ import annotations

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
