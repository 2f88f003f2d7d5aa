"""The commands in the product's messages and on its pages: verb, options and arguments exist."""

from __future__ import annotations

import ast
import functools
import os
import re
import runpy
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.docs.test_commands import BLOCK, COMMENT, PAGES, refused
from vertex_training_cli.engine.pulumi_cli import find_pulumi

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("infra", "cli", "localcloud")
PROGRAMS = "vt|make|pulumi|gcloud"
QUOTED = re.compile(rf"`((?:{PROGRAMS}) [^`]+)`")
#: Without backquotes, up to the end of the command or the rest of its sentence.
BARE = re.compile(
    rf"(?<![\w./-])((?:{PROGRAMS}) [a-z](?:'[^']*'|\"[^\"]*\"|[^'\"`,;&|)<\n])*?)"
    r"(?=[`,;&|)<\n]|[.:](?:\s|$)|'?\s*$"
    r"|\s(?:as|ended|for|has|lists|on|or|shows|which|with|writes)\b)",
    re.MULTILINE,
)
#: Sentences about a program, and `make` as a verb.
PROSE = re.compile(
    r"make (?!setup|local|preview|test)|vt runs"
    r"|gcloud (?:accepts|also|alone|and|builds an|command|flag|ignores|leaves|makes|reads|would) "
    r"|pulumi (?:and|are|comes|into|is|on|or|outside|printed|runs|starts|through|was)\b|pulumi 1$"
)
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


def commands() -> list[tuple[str, str, bool]]:
    """(location, command, whether to type it as it is) of every message."""
    found: list[tuple[str, str, bool]] = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for line, text in strings(ast.parse(file.read_bytes())):
                where, bare = f"{file.relative_to(ROOT)}:{line}", QUOTED.sub("", text)
                typed = re.match(r"`([^`]+)`(?:[,;.)]|$)", text)  # a hint begins with it
                found += [
                    (where, each, bool(typed and typed[1] == each)) for each in QUOTED.findall(text)
                ]
                found += [(where, each, False) for each in BARE.findall(bare)]
    unclear = re.compile(r"…|[a-z]\|[a-z]")
    return [each for each in found if not (unclear.search(each[1]) or PROSE.match(each[1]))]


def on_pages() -> Iterator[tuple[str, str]]:
    """(page, command of another program) in blocks of code."""
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            for text in BARE.findall(COMMENT.sub("", block.replace("\\\n", " "))):
                if not text.startswith(("vt ", "make ")) and "$(" not in text:
                    yield page.name, text


def wrong(words: str, *, is_typed: bool = False) -> str:
    """Why `vt` refuses a command. A mention of a verb needs no arguments, of a group no verb."""
    why = refused(words.replace("{}", HOLE))
    if why.startswith("Exit: 0") or (why == "no such verb: ''" and not is_typed):
        return ""
    has_values = is_typed or HOLE in words.split() or "-" in words.split()[-1]
    return "" if why.startswith("MissingParameter") and not has_values else why


@functools.cache
def help_of(*verbs: str) -> str:
    """What the engine prints of a verb."""
    pulumi = find_pulumi(os.environ)
    assert pulumi
    done = subprocess.run(
        [pulumi, *verbs, "--help"], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def wrong_of_pulumi(words: list[str]) -> str:
    """The first verb or option that the installed engine does not have."""
    verbs: list[str] = []
    while words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        listed = re.search(rf"^ +{re.escape(words[0])} ", help_of(*verbs), re.MULTILINE)
        aliases = re.search(r"^Aliases:\n(.*)", help_of(*verbs, words[0]), re.MULTILINE)
        if not (listed or (aliases and words[0] in aliases[1].split(", "))):
            break
        verbs.append(words.pop(0))
    if not verbs:
        return " ".join(words[:1])
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", help_of(*verbs).rpartition("Usage:")[2]))
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return next((each for each in options if each not in known), "")


@functools.cache
def tree_of_gcloud() -> dict[str, Any]:
    """Verbs and options of the installed gcloud; empty without one."""
    program = shutil.which("gcloud")
    root = Path(program).resolve().parents[1] if program else Path()
    file = root / "data" / "cli" / "gcloud_completions.py"
    return runpy.run_path(str(file))["STATIC_COMPLETION_CLI_TREE"] if file.is_file() else {}


def wrong_of_gcloud(words: list[str]) -> str:
    """The first verb or option that the installed gcloud does not have."""
    tree = tree_of_gcloud()
    options = {*tree["flags"], "--filter"}
    while words and tree.get("commands"):
        if words[0] not in tree["commands"]:
            return words[0]
        tree = tree["commands"][words.pop(0)]
        options |= set(tree.get("flags") or ())
    used = [word.partition("=")[0] for word in words if word.startswith("--")]
    return next((each for each in used if each not in options), "")


def test_the_search_finds_commands_and_refuses_wrong_ones() -> None:
    assert len(commands()) > 250
    assert len([*on_pages()]) > 30
    for words in ("jobs tensorboard", "new image", "jobs show 1 --al", "jobs show 1 2"):
        assert wrong(words)
    assert wrong("jobs show", is_typed=True)
    assert wrong_of_pulumi(["up", "--skip-preveiw"])
    assert wrong_of_pulumi(["stack", "list"]) == ""
    assert wrong_of_pulumi(["upp"])


VT_AND_MAKE = [each for each in commands() if each[1].startswith(("vt ", "make "))]
OTHERS = [*(each[:2] for each in commands() if each not in VT_AND_MAKE), *on_pages()]


@pytest.mark.parametrize(("location", "command", "is_typed"), VT_AND_MAKE)
def test_a_printed_command_exists_with_its_options(
    location: str, command: str, is_typed: bool
) -> None:
    program, _, words = command.partition(" ")
    if program == "make":
        targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
        assert {word for word in words.split() if "=" not in word} <= targets, location
    else:
        assert wrong(words, is_typed=is_typed) == "", location


@pytest.mark.parametrize(("location", "command"), OTHERS)
def test_a_printed_command_of_another_program_exists_with_its_options(
    location: str, command: str
) -> None:
    program, *words = shlex.split(command.replace("'", "").replace('"', ""))
    if program == "pulumi":
        assert wrong_of_pulumi(words) == "", location
    elif not tree_of_gcloud():
        pytest.skip("gcloud is not installed")
    else:
        assert wrong_of_gcloud(words) == "", location
