"""Exit codes: a wrong call is one message and 2, and codes of a command's own are in the table."""

import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from vertex_training_cli.cli import app

PAGE = Path(__file__).parents[4] / "docs" / "operations.md"


def leaves(command, path=()):
    for name, below in getattr(command, "commands", {}).items():
        yield from leaves(below, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = {name: verb.load() for name, verb in leaves(get_command(app))}
#: Those that pass options on to another program.
PASSING = {n for n, c in COMMANDS.items() if c.context_settings.get("ignore_unknown_options")}


def table():
    section = PAGE.read_text().partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    return {row[1]: row[2] for row in re.finditer(r"^\| `vt (.+?)` \| (.+) \|$", section, re.M)}


def test_those_that_pass_options_on_are_known():
    assert {"up", "destroy"} == PASSING


def test_codes_of_a_commands_own_are_in_the_table_and_in_its_help():
    own = {}
    for name, command in COMMANDS.items():
        stated = re.search(r"Exit codes?\b(?:(?!Example)[^\0])*", command.help or "")
        found = set(re.findall(r"\b([3-9]|1[0-9]{2})\b", stated[0])) - {"130"} if stated else set()
        if found:
            own[name] = found
    assert own
    for name, codes in own.items():
        assert codes <= set(re.findall(r"\b[0-9]+\b", table().get(name, ""))), name
    assert set(table()) <= set(COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        "check", "render x --stack local", "import x.py", "new job x", "diff dev prod",
        "iam", "jobs list", "images list", "data ls data", "catalogue --region nowhere",
    ],
)  # fmt: skip
def test_nothing_to_work_on_is_told_once_and_without_a_traceback(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code in (1, 2)
    lines = [line for line in done.output.splitlines() if line.strip()]
    assert lines
    assert len(lines) == len(set(lines))
    assert "Traceback" not in done.output
    assert isinstance(done.exception, SystemExit)
