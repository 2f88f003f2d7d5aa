"""Verbs are loaded when they are called, and a list of verbs says what their help says."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.help.table import GROUPS, VERBS

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


@pytest.mark.parametrize(
    ("line", "loaded"),
    [("--help", ""), ("jobs --help", ""), ("deploy --help", "deploy"), ("statuss", "")],
)
def test_only_the_verb_that_is_called_is_loaded(line, loaded):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *line.split()], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1].split() == ["loaded", *loaded.split()]


def test_a_verb_like_no_other_gets_no_hint():
    done = CliRunner().invoke(app, ["xyzzy"])
    assert done.exit_code == 2
    assert "No such command 'xyzzy'." in done.stderr
    assert "Did you mean" not in done.stderr


def test_every_verb_stands_in_a_group_that_has_a_help():
    above = {path.rpartition(" ")[0] for path in (*VERBS, *GROUPS)}
    assert above == set(GROUPS)
