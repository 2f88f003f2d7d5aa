"""Words of the product's code that say nothing about what they name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from tests.unit.structure.tree import PRODUCT, ROOT, modules

#: Heads of docstrings begin with a verb or a noun.
QUESTIONS: Final = ("How", "What", "When", "Where", "Whether", "Which", "Who", "Why")
#: Names without a content.
EMPTY: Final = frozenset({"each", "found", "given"})
#: Uses of these names in the product today. The figure may only fall.
MOST: Final = 102
Documented = ast.AsyncFunctionDef | ast.ClassDef | ast.FunctionDef | ast.Module


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in modules(*PRODUCT):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            yield str(path), node


def test_docstrings_begin_with_a_verb_or_a_noun_and_names_have_a_content() -> None:
    heads, empty = [], 0
    for path, node in nodes():
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            heads += [f"{path}: {text}"] if text.split()[0] in QUESTIONS else []
        empty += isinstance(node, ast.Name) and node.id in EMPTY
        empty += isinstance(node, ast.arg) and node.arg in EMPTY
    assert heads == []
    assert empty <= MOST
