"""The commands between backquotes in the product's messages: verb, options and arguments exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.docs.test_commands import refused

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("infra", "cli", "localcloud")
COMMAND = re.compile(r"`((?:vt|make) [^`]+)`")
#: What a message has in the place of a value.
HOLE = "1"
TARGET = re.compile(r"^([a-z][a-z-]*)(?: [a-z-]+)*:(?!=)", re.MULTILINE)


def text_of(node: ast.AST) -> str | None:
    """A string as it is printed, with ``HOLE`` for each value; None if ``node`` is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or HOLE for part in node.values)
    return None


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and texts of strings that are no docstrings; the parts of an f-string are one."""
    for child in ast.iter_child_nodes(node):
        text = text_of(child)
        if text is not None and not isinstance(node, ast.Expr):
            yield child.lineno, text  # type: ignore[attr-defined]
        elif text is None:
            yield from strings(child)


def commands() -> list[tuple[str, str]]:
    """(location, command) of every message."""
    return [
        (f"{file.relative_to(ROOT)}:{line}", command)
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, text in strings(ast.parse(file.read_bytes()))
        for command in COMMAND.findall(text)
        if "…" not in command
    ]


def wrong(words: str) -> str:
    """Why a command is refused. A mention of a verb needs no arguments, one of a group no verb."""
    why = refused(words.replace("{}", HOLE))
    if why.startswith("Exit: 0") or why == "no such verb: ''":
        return ""
    is_mention = HOLE not in words.split() and why.startswith("MissingParameter")
    return "" if is_mention else why


def test_the_search_finds_commands_and_refuses_wrong_ones() -> None:
    assert len(commands()) > 100
    for words in ("jobs tensorboard", "new image", "jobs show 1 --al", "jobs show 1 2"):
        assert wrong(words)


@pytest.mark.parametrize(("location", "command"), commands())
def test_a_printed_command_exists_with_its_options(location: str, command: str) -> None:
    program, _, words = command.partition(" ")
    if program == "make":
        targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
        assert {word for word in words.split() if "=" not in word} <= targets, location
    else:
        assert wrong(words) == "", location
