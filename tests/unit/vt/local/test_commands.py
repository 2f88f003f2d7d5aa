"""What ``vt local`` says when the machine is at fault."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from localgcp import lifecycle
from localgcp.bigquery import PINS
from localgcp.home import Home
from localgcp.runner import substitutes
from localgcp.server_info import ServerInfo
from vertex_training_cli.cli import app
from vertex_training_cli.local import commands


def test_the_status_tells_that_the_nearest_version_runs_for_images_that_are_not_here(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    command = "vt local start --prebuilt nearest"
    told = f"prebuilt images that are not here: the nearest version runs ({command})"
    assert told not in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()
    substitutes.take_nearest(home, on=True)
    assert told in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()


def test_the_engine_of_bigquery_is_installed_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[tuple[object, ...]] = []
    own = SimpleNamespace(folder=tmp_path / "engine", marker=tmp_path / "marker", python=None)

    def install(*given: object) -> None:
        installed.append(given)
        own.python = tmp_path / "python"

    monkeypatch.setattr(commands, "engine_environment", lambda: own)
    monkeypatch.setattr(commands, "install_once", install)
    missing = CliRunner().invoke(app, ["local", "bigquery"])
    assert (missing.exit_code, missing.stderr) == (
        1,
        "vt local bigquery: BigQuery's engine is not installed. "
        "Hint: `vt local bigquery --install`\n",
    )
    assert installed == []
    done = CliRunner().invoke(app, ["local", "bigquery", "--install"])
    told = f"vt: BigQuery's engine is installed in {tmp_path / 'engine'}\n"
    assert (done.exit_code, done.stderr) == (0, told)
    assert installed == [(own.folder, own.marker, PINS, "BigQuery's engine")]
    assert CliRunner().invoke(app, ["local", "bigquery"]).stderr == told
    assert len(installed) == 1


def vt_local(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["local", *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_start_says_the_process_and_keeps_what_runs_missing_images(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(lifecycle, "start", lambda *_: ServerInfo(4242, 2, 3, "now"))
    told = (0, "", "vt: running (process 4242)\n")
    for words, nearest in (
        ((), False), (("--prebuilt", "nearest"), True), ((), True),
        (("--prebuilt", "exact"), False), ((), False),
    ):  # fmt: skip
        assert vt_local("start", *words) == told
        assert substitutes.takes_nearest(home) is nearest


@pytest.mark.parametrize(("ran", "told"), [(True, "stopped"), (False, "nothing was running")])
def test_a_stop_says_whether_anything_ran(
    home: Home, monkeypatch: pytest.MonkeyPatch, ran: bool, told: str
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(lifecycle, "stop", lambda found: ran and found.root == home.root)
    assert vt_local("stop") == (0, "", f"vt: {told}\n")


@pytest.mark.parametrize(
    ("words", "given"), [((), None), (("--command", "ls"), "ls"), (("-c", ""), "")]
)
def test_a_shell_gets_its_command_and_the_umask_of_before(
    home: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], given: str | None
) -> None:
    entered: list[object] = []

    def enter(found: Home, command: str | None, report: object, umask: int) -> None:
        entered.append((found.root, command, report, umask))

    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(commands, "enter_shell", enter)
    before = os.umask(0o27)
    try:
        assert vt_local("shell", *words) == (0, "", "")
        assert os.umask(before) == 0o27
    finally:
        os.umask(before)
    assert entered == [(home.root, given, commands.report, 0o27)]


def test_an_interruption_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), commands.private_files():
        raise KeyboardInterrupt
    assert capsys.readouterr().err == (
        "vt: interrupted; what was started goes on (`vt local status`, `vt local down`)\n"
    )
