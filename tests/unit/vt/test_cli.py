"""The command as a whole."""

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app


def test_help_is_folded_to_the_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["up", "--help"]).stdout
    assert "a live one, or one of another \n machine, is respected. After an up" in shown
