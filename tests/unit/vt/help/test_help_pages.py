"""Every command explains itself in a narrow terminal, with examples that its parser takes."""

import functools
import importlib
import inspect
import re

import pytest
import typer
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.help.table import GROUPS, PANELS, VERBS

ROOT = typer.main.get_command(app)
FRAME = re.compile("[─╭╮╰╯│]")


def commands(command=ROOT, path=()):
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = dict(commands())


def docstring(path):
    module, _, name = VERBS[path].partition(":")
    return inspect.getdoc(getattr(importlib.import_module(f"vertex_training_cli.{module}"), name))


@functools.cache
def shown(path, width):
    done = CliRunner().invoke(app, [*path.split(), "--help"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    assert not FRAME.search(done.output)  # as for any output that is no terminal
    return done.output.replace("`", "")


@pytest.mark.parametrize("path", VERBS)
def test_a_help_shows_every_word_of_its_docstring(path):
    text = docstring(path)
    assert set(text.replace("`", "").split()) - set(shown(path, 400).split()) == set()


@pytest.mark.parametrize("path", VERBS)
def test_examples_are_of_their_verb_and_its_options(path):
    paragraphs = [each for each in docstring(path).split("\n\n") if each.startswith("Example")]
    for line in re.findall("`([^`]+)`", " ".join(paragraphs)):
        words, _, _ = line.partition(" -- ")
        assert f"vt {path}" in words
        options = set(re.findall(r"(?<= )--[a-z-]+", re.sub("'[^']*'", "", words)))
        assert options <= set(shown(path, 400).split())


def test_table_has_every_verb_and_group():
    assert set(VERBS | GROUPS) == set(ALL)


def test_verbs_are_grouped_below_titles():
    text = shown("", 80)
    places = [text.index(f"\n{title}:\n") for title in PANELS]
    assert places == sorted(places)
    names = [line.split()[0] for line in text[places[0] :].splitlines() if line.startswith("  ")]
    assert names == [name for names in PANELS.values() for name in names]
