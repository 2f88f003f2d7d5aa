"""What `vt` shows without a command, and that it changes no shell."""

from typer.testing import CliRunner

from vertex_training_cli.cli import app


def test_without_a_command_the_commands_are_listed():
    shown = CliRunner().invoke(app, [])
    for command in (
        "check",
        "render",
        "review",
        "up",
        "destroy",
        "jobs",
        "local",
        "deploy",
        "drift",
    ):
        assert f" {command} " in shown.output


def test_no_option_writes_to_the_files_of_the_shell():
    assert "completion" not in CliRunner().invoke(app, ["--help"]).output


def test_an_error_of_the_program_keeps_its_own_traceback():
    assert app.pretty_exceptions_enable is False


def test_the_version_is_printed():
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output[:3]) == (0, "vt ")
