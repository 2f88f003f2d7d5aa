"""The `vt` commands on all pages: each is one, and has the options it is shown with."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from vertex_training_cli.cli import app

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
#: Up to what a shell reads as the end of the command.
COMMAND = re.compile(
    r"""(?:^|[\s(])(?:\.venv/bin/)?vt ((?:'[^']*'|"[^"]*"|[^|&;)>\n])*)""", re.MULTILINE
)


def commands() -> list[tuple[str, str]]:
    """(page, command without `vt`) of every block; an id that a shell puts in is 1."""
    return [
        (page.name, command.strip().replace("$id", "1"))
        for page in PAGES
        for block in BLOCK.findall(page.read_text())
        for command in COMMAND.findall(COMMENT.sub("", block))
        if "…" not in command
    ]


def refused(command: str) -> str:
    """Why the line of a command is wrong, as its user would be told; empty if it is right."""
    words, found = shlex.split(command), get_command(app)
    while isinstance(found, TyperGroup):
        name = words.pop(0) if words else ""
        if name not in found.commands:
            return f"no such verb: {name!r}"
        found = found.commands[name]
    try:
        found.make_context("vt", words)
    except Exception as error:  # of the parser that typer brings along
        return f"{type(error).__name__}: {error}"
    return ""


def test_the_search_finds_commands_and_tells_wrong_ones() -> None:
    assert len(commands()) > 40
    for wrong in ("chekc x", "local fault", "jobs list --stat failed", "jobs show", "drift says"):
        assert refused(wrong)


@pytest.mark.parametrize(("page", "command"), commands())
def test_a_command_is_one_and_has_these_options(page: str, command: str) -> None:
    assert refused(command) == "", page


@pytest.mark.parametrize(
    "command", [text for _, text in commands() if text.startswith("local fault add")]
)
def test_a_fault_of_the_guide_is_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(tmp_path / "home"))
    done = CliRunner().invoke(app, shlex.split(command))
    assert (done.exit_code, done.output) == (0, "1\n")
