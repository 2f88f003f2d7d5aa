"""Verbs are loaded when they are called, and a list of verbs says what their help says."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.help.table import GROUPS, VERBS
from vertex_training_cli.help.verbs import Verb

#: Prints the modules of commands that a line has loaded.
LOADED = """\
import sys
from vertex_training_cli.cli import app
sys.argv = ["vt", *sys.argv[1:]]
try:
    app()
finally:
    parts = [name.split(".") for name in sys.modules]
    print("loaded", *sorted(part[1] for part in parts if part[2:] in (["command"], ["commands"])))
"""


@pytest.mark.parametrize("path", VERBS)
def test_a_list_shows_the_first_paragraph_of_a_verbs_help(path):
    shown = Verb(path).help
    assert shown
    assert (Verb(path).load().help or "").partition("\n\n")[0] == shown


@pytest.mark.parametrize(
    ("line", "loaded"),
    [("--help", ""), ("jobs --help", ""), ("deploy --help", "deploy"), ("statuss", "")],
)
def test_only_the_verb_that_is_called_is_loaded(line, loaded):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *line.split()], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1].split() == ["loaded", *loaded.split()]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("statuss", "Did you mean 'local status'?"),
        ("chek", "Did you mean 'check'?"),
        ("logs", "Did you mean 'jobs logs', 'local logs'?"),
        ("jobs statu", "Did you mean 'local status'?"),
        ("jobs lst", "Did you mean 'list'?"),
    ],
)
def test_an_unknown_verb_is_told_which_one_was_meant(line, hint):
    done = CliRunner().invoke(app, line.split(), env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert hint in done.stderr


def test_a_verb_like_no_other_gets_no_hint():
    done = CliRunner().invoke(app, ["xyzzy"])
    assert done.exit_code == 2
    assert "No such command 'xyzzy'." in done.stderr
    assert "Did you mean" not in done.stderr


def test_every_verb_stands_in_a_group_that_has_a_help():
    above = {path.rpartition(" ")[0] for path in (*VERBS, *GROUPS)}
    assert above == set(GROUPS)


@pytest.mark.parametrize("group", [path for path in GROUPS if path])
def test_a_group_alone_shows_its_verbs(group):
    done = CliRunner().invoke(app, group.split(), env={"COLUMNS": "200"})
    below = [path for path in VERBS if path.rpartition(" ")[0] == group]
    assert done.exit_code == 2
    assert f"Usage: vt {group}" in done.output
    assert all(path.rpartition(" ")[2] in done.output for path in below)
    assert "Missing command" not in done.output
