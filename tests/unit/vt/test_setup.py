"""The command line of ``vt setup``: what it asks for, prints and ends with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vertex_training_cli import setup
from vertex_training_cli.cli import app
from vertex_training_cli.toolchain.layout import Layout
from vertex_training_cli.toolchain.pulumi_cli import Pulumi

FOUND = Pulumi("build", "3.1", "built here", "a stand-in")
TOLD = "pulumi 3.1: built here\nPython language host: a stand-in\n"
MISSING = "setup: pulumi or the policies are missing here, or out of date. Hint: vt setup\n"
NOTHING = {"deploy": False, "own_releases": None}


@pytest.mark.parametrize(
    ("words", "variable", "layout", "done"),
    [
        ((), "", NOTHING, ("install", "auto")),
        ((), "build", NOTHING, ("install", "build")),
        (("--check",), "path", NOTHING, ("look", "path")),
        (
            ("--deploy", "--releases", "sums"), "",
            {"deploy": True, "own_releases": Path("sums")}, ("install", "auto"),
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("found", [FOUND, None])
def test_what_is_installed_is_told_and_what_is_missing_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], variable: str,
    layout: dict[str, Any], done: tuple[str, str], found: Pulumi | None,
) -> None:  # fmt: skip
    asked: list[Any] = []
    here = Layout(Path("/srv"), Path("/srv/cache"))

    def of_this_environment(**options: Any) -> Layout:
        asked.append(options)
        return here

    def act(name: str) -> Any:
        return lambda given, source: asked.append((name, given is here, source)) or found

    monkeypatch.setattr(setup.Layout, "of_this_environment", of_this_environment)
    monkeypatch.setattr(setup, "install_pulumi", act("install"))
    monkeypatch.setattr(setup, "installed_pulumi", act("look"))
    monkeypatch.setenv("VT_PULUMI_SOURCE", variable)
    ended = CliRunner().invoke(app, ["setup", *words])
    assert asked == [layout, (done[0], True, done[1])]
    assert (ended.exit_code, ended.stdout, ended.stderr) == (
        (0, "", TOLD) if found else (1, "", MISSING)
    )
