"""What `vt` shows without a command, and that it changes no shell."""

from typer.testing import CliRunner

from vertex_training_cli.cli import app


def test_an_error_of_the_program_keeps_its_own_traceback():
    assert app.pretty_exceptions_enable is False


def test_the_version_is_printed():
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output[:3]) == (0, "vt ")
