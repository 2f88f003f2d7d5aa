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
    UnknownNameError,
    UnknownStackError,
)
from vertex_training_cli.failures import FAILED, exit_codes
from vertex_training_cli.toolchain.layout import SetupError

IN_A_FILE = Problem("is wrong", location=Location("Pulumi.dev.yaml", 3))


@pytest.mark.parametrize(
    ("verb", "error", "code", "said"),
    [
        ("jobs list", CommandError("no stack.", "name one"), 1, "no stack. Hint: name one"),
        *((verb, CommandError("no source."), 2, "no source.") for verb in (
            "data snapshots diff", "diff", "import", "init", "jobs rerun", "new job", "review",
            "upgrade")),
        ("data snapshots", CommandError("no source."), 1, "no source."),
        ("jobs list", UnknownStackError("no stack"), 2, "no stack"),
        ("jobs list", UnknownNameError("no accelerator"), 2, "no accelerator"),
        ("render", CheckUnavailableError("no job"), 2, "no job"),
        ("iam", ConfigError([IN_A_FILE, Problem("is odd")]), 1,
         "2 mistakes; nothing was changed.\n"
         "Pulumi.dev.yaml:3: is wrong.\nis odd."),
        ("init", ConfigError([Problem("--a: x"), Problem("--b: y")]), 2,
         "--a: x.\nvt init: --b: y."),
        ("images build", ImageBuildError("failed.", ["\x1b[1mred", "b"]), 1,
         "failed.\n  | \ufffd[1mred\n  | b"),
        ("local up", LocalCloudError("no port."), 1, "no port."),
        ("setup", SetupError("no Go", (), "install it"), 1,
         "setup: no Go\n  Hint: install it"),
        ("local up", sqlite3.DatabaseError("full"), 1,
         (
             "cannot use the local cloud's database cloud.sqlite: full. Hint: `vt local down "
             "--clean` deletes the local cloud and its database"
         )),
        ("jobs list", OSError(28, "No space left", "a.log"), 1,
         "cannot use a.log: No space left."),
        ("jobs list", OSError(28, "No space left"), 1, "No space left."),
        ("jobs list", ConnectionError("no route"), 1, "no route."),
        ("jobs list", ModuleNotFoundError("x", name="psutil"), 1,
         "psutil is not installed. Hint: install vertex-training[cli] from its wheels"),
        ("local up", ModuleNotFoundError("x", name="localgcp.home"), 1,
         "localgcp.home is not installed. Hint: install vertex-training[cli] from its wheels"),
    ],
)  # fmt: skip
def test_what_a_person_can_act_on_is_a_line_and_a_code(capsys, verb, error, code, said):
    with pytest.raises(typer.Exit) as end, exit_codes(verb):
        raise error
    assert (end.value.exit_code, capsys.readouterr().err) == (code, f"vt {verb}: {said}\n")


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
