"""What ``vt local`` says when the machine is at fault."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from localgcp.home import Home
from localgcp.runner.executors import take_nearest
from vertex_training_cli.cli import app
from vertex_training_cli.local import commands


def test_the_status_tells_that_the_nearest_version_runs_for_images_that_are_not_here(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    action = "the nearest version is used (set by --prebuilt nearest)"
    told = f"prebuilt images that are not installed: {action}"
    assert told not in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()
    take_nearest(home, on=True)
    assert told in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()


def test_the_choice_for_missing_gpus_is_kept_and_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    refused = CliRunner().invoke(app, ["local", "up", "--gpus", "wat"])
    assert refused.exit_code == 2
    assert "'wat' is not a valid value: did you mean 'wait'?" in refused.stderr
    for choice, action in (("wait", "wait"), ("cpu", "run on CPUs"), ("auto", "")):
        commands.keep_gpu_choice(home, choice)
        commands.keep_gpu_choice(home, None)
        shown = CliRunner().invoke(app, ["local", "status"]).stdout
        line = f"jobs without enough free GPUs {action} (set by --gpus {choice})"
        assert (line in shown.splitlines()) == bool(action)
        assert ("GPUs" in shown) == bool(action)


def test_an_interruption_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), commands.private_files():
        raise KeyboardInterrupt
    assert capsys.readouterr().err == (
        "vt: interrupted; started processes continue to run. `vt local status` lists and "
        "`vt local down` stops these processes\n"
    )
