"""The command as a whole."""

import importlib.metadata
import sys
from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from vertex_training.errors import CommandError
from vertex_training_cli import cli
from vertex_training_cli.check import command
from vertex_training_cli.cli import app


def raises(error: BaseException) -> Callable[[list[str]], None]:
    def check(_files: list[str]) -> None:
        raise error

    return check


@pytest.mark.parametrize(
    ("check", "code", "said"),
    [
        (lambda files: print(f"checks {files}"), 0, ("checks ['a.yaml', '-']\n", "")),
        (raises(typer.Exit(1)), 1, ("", "")),
        (raises(KeyboardInterrupt()), 130, ("", "")),
        (
            raises(CommandError("no file.", "name one")),
            1,
            ("", "vt check: no file. Hint: name one\n"),
        ),
    ],
)
def test_files_are_checked_without_the_parser_of_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    check: Callable[[list[str]], None], code: int, said: tuple[str, str],
) -> None:  # fmt: skip
    monkeypatch.setattr(command, "check", check)
    monkeypatch.setattr(cli, "prepare", lambda: None)
    monkeypatch.setattr(sys, "argv", ["vt", "check", "a.yaml", "-"])
    with pytest.raises(SystemExit) as ended:
        app()
    assert (ended.value.code, capsys.readouterr()) == (code, said)


def test_who_reads_no_further_has_what_it_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "check", raises(BrokenPipeError()))
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert cli.run_check(["a.yaml"]) == 1
    assert sys.stdout is None  # so that its end writes nothing more


def test_any_other_line_is_the_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run_check", raises(AssertionError()))
    monkeypatch.setattr(sys, "argv", ["vt", "check", "a.yaml", "--fix", "--no-such"])
    with pytest.raises(SystemExit) as ended:
        app()
    assert ended.value.code == 2


def test_the_version_is_the_packages_or_that_of_a_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"0.1 of {name}")
    assert CliRunner().invoke(app, ["--version"]).stdout == "vt 0.1 of vertex-training\n"

    def of_none(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", of_none)
    assert CliRunner().invoke(app, ["--version"]).stdout == "vt, from a checkout\n"
