"""Bounds of the layout: modules in a folder, lines of a function, where a constant stands."""

from __future__ import annotations

import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.unit.structure.tree import PRODUCT, ROOT, modules

INFRA: Final = "infra/vertex_training"
MOST_AT_THE_ROOT: Final = 6
MOST_IN_A_FOLDER: Final = 15
MOST_LINES: Final = 40

#: The prefix of local projects, alone or at the end of a path. Texts for people have spaces.
LOCAL_PREFIX: Final = re.compile(r"\S*\blocal-")


def functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, int]]:
    """(Qualified name, lines) of each function, without its decorators."""
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{inside}.{node.name}".removeprefix(".")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield name, node.end_lineno - node.lineno + 1
        yield from functions(node, name)


def parsed(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def long_functions() -> set[str]:
    return {
        f"{path}:{name}"
        for path in modules(*PRODUCT)
        for name, lines in functions(parsed(path))
        if lines > MOST_LINES
    }


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the nodes that are texts beside the code, such as docstrings."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def local_prefixes(tree: ast.Module) -> list[int]:
    """Lines on which code spells the prefix of local projects."""
    beside = docstrings(tree)
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in beside
        and LOCAL_PREFIX.fullmatch(node.value)
    ]


def test_the_root_of_infra_has_few_modules() -> None:
    at_the_root = [path.stem for path in modules(INFRA) if str(path.parent) == INFRA]
    assert len([name for name in at_the_root if name != "__init__"]) <= MOST_AT_THE_ROOT


def test_no_folder_has_too_many_modules() -> None:
    sizes = collections.Counter(
        str(path.parent) for path in modules(*PRODUCT) if path.name != "__init__.py"
    )
    assert {name: size for name, size in sizes.items() if size > MOST_IN_A_FOLDER} == {}


def test_no_function_is_too_long_but_tables_of_declarations() -> None:
    assert long_functions() == set()


def test_lines_are_counted_from_def_to_the_last_of_the_body() -> None:
    tree = ast.parse(
        "class A:\n    @property\n    def b(self):\n        def c(): ...\n        return 1"
    )
    assert dict(functions(tree)) == {"A.b": 3, "A.b.c": 1}


@pytest.mark.parametrize(
    "code", ["x = 'local-'", "x.startswith('local-')", "f'local-{x}'", "'projects/local-' in x"]
)
def test_the_prefix_of_local_projects_is_found_in_code(code: str) -> None:
    assert local_prefixes(ast.parse(code)) == [1]


@pytest.mark.parametrize("code", ["'a local- b'", "x = \"id begins with 'local-'\"", "# 'local-'"])
def test_the_prefix_of_local_projects_may_stand_in_texts(code: str) -> None:
    assert local_prefixes(ast.parse(f"'''local-'''\n{code}")) == []


def test_only_the_naming_module_spells_the_prefix_of_local_projects() -> None:
    found = {str(path): local_prefixes(parsed(path)) for path in modules(*PRODUCT)}
    assert {name for name, lines in found.items() if lines} == {"infra/vertex_training/naming.py"}


def test_infra_defines_the_exit_code_of_a_shown_message_once() -> None:
    definition = re.compile(r"^MESSAGE_SHOWN\b.*=", re.MULTILINE)
    defined = [path for path in modules(INFRA) if definition.search((ROOT / path).read_text())]
    assert defined == [Path("infra/vertex_training/engine.py")]
