"""Bounds of the layout: what fills a module, a folder and a function; where a constant stands.

A module has 60 lines, or two others import it: else it belongs to the one that does. A folder has
three modules. ``small.txt`` lists those of today that do not; it only ever gets shorter:

``SHRINK=1 .venv/bin/python -m pytest tests/unit/structure/test_layout.py`` leaves out of it what
is mended. Where there is no such file, it writes one.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.unit.structure.tree import PRODUCT, ROOT, SOURCES, files, modules, packages

INFRA: Final = "infra/vertex_training"
FEWEST_LINES: Final = 60
FEWEST_IMPORTERS: Final = 2
FEWEST_MODULES: Final = 3
MOST_LINES: Final = 60
SMALL: Final = ROOT / "tests/unit/structure/small.txt"
#: Lower this when the list gets shorter.
MOST_SMALL: Final = 0

#: Beside them at the top; a repository of stack files adds its stacks and `extra`.
TOP: Final = re.compile(
    r"Pulumi(\.\w[\w-]*)?\.yaml|__main__\.py|extra(\.py)?|tests|README\.md|CHANGELOG\.md|LICENSE|"
    r"CONTRIBUTING\.md|SECURITY\.md|Makefile|pyproject\.toml|stack\.schema\.json|requirements|docs|"
    r"templates|bench|\.ci|\.github|\.gitignore|\.pre-commit-(config|hooks)\.yaml"
)
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


def long_functions() -> set[str]:
    return {
        f"{path}:{name}"
        for path in modules(*PRODUCT)
        for name, lines in contents(path).functions
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


def dotted(path: Path) -> str:
    """The name by which a module or package below a source root is imported."""
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names that an import statement may lead to, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class Contents(NamedTuple):
    """What the bounds are about, of one module: parsing all of them takes seconds."""

    functions: tuple[tuple[str, int], ...]
    prefixes: tuple[int, ...]
    imported: tuple[str, ...]


@functools.cache
def contents(path: Path) -> Contents:
    tree = ast.parse((ROOT / path).read_text())
    return Contents(tuple(functions(tree)), tuple(local_prefixes(tree)), tuple(imported(tree)))


@functools.cache
def importers() -> dict[str, frozenset[Path]]:
    """Dotted name -> modules of the product, scripts among them, that import it."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for path in modules(*PRODUCT, "bench"):
        for name in contents(path).imported:
            found[name].add(path)
    return {name: frozenset(paths) for name, paths in found.items()}


def small_modules() -> set[str]:
    return {
        str(path)
        for path in modules(*SOURCES)
        if not path.name.startswith("__")
        and len((ROOT / path).read_text().splitlines()) < FEWEST_LINES
        and len(importers().get(dotted(path), ())) < FEWEST_IMPORTERS
    }


def small_folders() -> set[str]:
    inside = {path for path in modules(*SOURCES) if not path.name.startswith("__")}
    inside |= set(packages(*SOURCES))
    sizes = {folder: 0 for folder in packages(*SOURCES)}
    for path in inside:
        if path.parent in sizes:
            sizes[path.parent] += 1
    return {f"{folder}/" for folder, size in sizes.items() if size < FEWEST_MODULES}


@pytest.fixture(scope="module")
def listed() -> set[str]:
    """The exceptions: modules, and folders with a slash at the end."""
    small = small_modules() | small_folders()
    before = set(SMALL.read_text().split()) if SMALL.is_file() else small
    if os.environ.get("SHRINK"):
        SMALL.write_text("".join(f"{name}\n" for name in sorted(before & small)))
    return set(SMALL.read_text().split())


def test_the_top_of_the_repository_has_its_parts_and_nothing_else() -> None:
    top = {name.partition("/")[0] for name in files()} - {*PRODUCT}
    assert sorted(name for name in top if not TOP.fullmatch(name)) == []


def test_no_other_module_is_too_small_to_stand_alone(listed: set[str]) -> None:
    hint = "Hint: put it into the module that imports it"
    assert small_modules() - listed == set(), hint


def test_no_other_folder_has_too_few_modules(listed: set[str]) -> None:
    hint = "Hint: make it a module, or put its modules into the folder above"
    assert small_folders() - listed == set(), hint


def test_the_list_of_small_ones_only_gets_shorter(listed: set[str]) -> None:
    assert listed - small_modules() - small_folders() == set(), f"Hint: SHRINK=1, {__doc__}"
    assert len(listed) <= MOST_SMALL


def test_no_function_is_too_long_but_tables_of_declarations() -> None:
    assert long_functions() == set()


def test_only_two_modules_spell_the_prefix_of_local_projects() -> None:
    """One of the program and one of the local cloud, which imports nothing of ours."""
    found = {str(path) for path in modules(*PRODUCT) if contents(path).prefixes}
    assert found == {
        "infra/vertex_training/naming.py",
        "localcloud/localgcp/inventory/resource_paths.py",
    }


def test_infra_defines_the_exit_code_of_a_shown_message_once() -> None:
    definition = re.compile(r"^MESSAGE_SHOWN\b.*=", re.MULTILINE)
    defined = [path for path in modules(INFRA) if definition.search((ROOT / path).read_text())]
    assert defined == [Path("infra/vertex_training/engine.py")]
