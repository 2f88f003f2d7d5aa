"""Every command explains itself in a narrow terminal, with examples that its parser takes."""

import functools
import importlib
import inspect
import re

import pytest
import typer
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.help.table import GROUPS, VERBS

ROOT = typer.main.get_command(app)
FRAME = re.compile("[─╭╮╰╯│]")


def commands(command=ROOT, path=()):
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = dict(commands())
EXAMPLES = {path: row.examples for path, row in (GROUPS | VERBS).items()}


@functools.cache
def shown(path, width):
    done = CliRunner().invoke(app, [*path.split(), "--help"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return FRAME.sub(" ", done.output)


@pytest.mark.parametrize("path", VERBS)
def test_a_help_shows_every_word_of_its_docstring(path):
    module, _, name = VERBS[path].function.partition(":")
    text = inspect.getdoc(getattr(importlib.import_module(module), name))
    assert set(text.replace("`", "").split()) - set(shown(path, 400).split()) == set()


@pytest.mark.parametrize("path", ALL)
def test_every_help_has_examples_of_its_own(path):
    for line in EXAMPLES[path]:
        assert len(line) <= 56
        assert " ".join(line.split()) in " ".join(shown(path, 60).split())
        assert f"vt {path}".strip() in line


def test_no_example_is_of_a_command_that_is_gone():
    assert set(EXAMPLES) == set(ALL)
