"""What a person can act on is a line on stderr and an exit code; the rest keeps its traceback."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
import typer

from localgcp.errors import LocalCloudError
from vertex_training.errors import (
    CheckUnavailableError,
    CommandError,
    ConfigError,
    ImageBuildError,
    Location,
    Problem,
    UnknownStackError,
)
from vertex_training_cli.failures import FAILED, exit_codes
from vertex_training_cli.toolchain.console import SetupError

IN_A_FILE = Problem("is wrong", location=Location("Pulumi.dev.yaml", 3))


@pytest.mark.parametrize(
    ("verb", "error", "code", "said"),
    [
        ("jobs list", CommandError("no stack.", "name one"), 1, "vt jobs list: no stack. Hint: "),
        ("import", CommandError("no source."), 2, "vt import: no source.\n"),
        ("jobs list", UnknownStackError("no stack"), 2, "vt jobs list: no stack\n"),
        ("render", CheckUnavailableError("no job"), 2, "vt render: no job\n"),
        ("iam", ConfigError([IN_A_FILE]), 1, "1 mistake; nothing was changed.\nPulumi.dev"),
        ("init", ConfigError([Problem("--a: x"), Problem("--b: y")]), 2,
         "vt init: --a: x.\nvt init: --b: y.\n"),
        ("images build", ImageBuildError("failed.", ["\x1b[1mred"]), 1, "\n  | \ufffd[1mred"),
        ("local up", LocalCloudError("no port."), 1, "vt local up: no port.\n"),
        ("setup", SetupError("no Go", (), "install it"), 1, "vt setup: "),
        ("local up", sqlite3.DatabaseError("full"), 1, "cloud.sqlite cannot be used: full."),
        ("jobs list", OSError(28, "No space left", "a.log"), 1,
         "vt jobs list: a.log cannot be used: No space left.\n"),
        ("jobs list", ConnectionError("no route"), 1, "vt jobs list: no route.\n"),
        ("jobs list", ModuleNotFoundError("x", name="psutil"), 1, "vertex-training[cli]"),
        ("local up", ModuleNotFoundError("x", name="localgcp.home"), 1, "vertex-training[cli]"),
    ],
)  # fmt: skip
def test_what_a_person_can_act_on_is_a_line_and_a_code(capsys, verb, error, code, said):
    with pytest.raises(typer.Exit) as end, exit_codes(verb):
        raise error
    assert end.value.exit_code == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [KeyError("x"), ModuleNotFoundError("x", name="pandas"), BrokenPipeError()]
)
def test_an_error_of_the_program_passes(error):
    with pytest.raises(type(error)), exit_codes("jobs list"):
        raise error


def test_a_verb_may_have_another_code_for_a_part_of_it():
    with pytest.raises(typer.Exit) as end, exit_codes("import", FAILED):
        raise CommandError("pulumi up failed.")
    assert end.value.exit_code == 1


@pytest.mark.parametrize(
    ("missing", "line", "said"),
    [
        ("typer", "--help", "vt: typer is not installed. Hint: install vertex-training[cli]"),
        ("jinja2", "init x", "jinja2 is not installed. Hint: install vertex-training[cli]"),
        ("localgcp", "local up", "localgcp is not installed. Hint: install "
         "vertex-training[cli] from its wheels"),
    ],
)  # fmt: skip
def test_an_extra_that_is_missing_is_named_in_one_line(missing, line, said):
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv[0] = 'vt'\n"
        "from vertex_training_cli.cli import app\napp()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *line.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
