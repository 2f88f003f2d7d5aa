"""Bounds of the tests: how many lines they have, and that they use no internals of the product.

``test_bounds.yaml`` has today's figures, which may only fall. ``SHRINK=1 .venv/bin/python -m pytest
tests/unit/structure/test_tests.py`` lowers them to what the tree has.
"""

from __future__ import annotations

import ast
import functools
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import pytest
import yaml

from tests.unit.structure.tree import ROOT, SOURCES, modules

BOUNDS: Final = ROOT / "tests/unit/structure/test_bounds.yaml"
HEADER: Final = """\
# Written by SHRINK=1 (test_tests.py); figures may only fall.
# lines: of the unit tests of a product folder. internals: uses of private or patched names.
"""
#: Lines of tests for one line of product.
MOST_TEST_LINES: Final = 0.95
#: Folders of tests/unit and what they test; folders below follow the product's.
TESTED: Final = {
    "infra": "infra/vertex_training",
    "vt": "cli/vertex_training_cli",
    "localcloud": "localcloud/localgcp",
    "jobs": "jobs",
    "tools": "tools",
    "bootstrap": "infra/vertex_training/foundation",
    "components": "infra/vertex_training/components",
}
PACKAGES: Final = (*SOURCES.values(), "tools", "bootstrap", "bench")
#: What tests may replace: clocks, processes, terminals, connections to a cloud, the engine.
PORTS: Final = frozenset({
    *("monotonic", "now", "sleep", "time"),
    *("environ", "execve", "isatty", "kill", "Popen", "run", "stdin", "stdout", "which"),
    *("connect", "connect_clients", "session", "shared_client", "storage_client", "urlopen"),
    *("PulumiCli", "find_engine"),
})  # fmt: skip


def lines(path: Path) -> int:
    return (ROOT / path).read_bytes().count(b"\n")


def product_folder(path: PurePosixPath) -> str | None:
    """Return the product folder that a file of ``tests/unit`` tests, or None."""
    top, *below = path.relative_to("tests/unit").parts
    root = TESTED.get(top)
    inside = f"{root}/{below[0]}" if len(below) > 1 else ""
    return inside if inside and (ROOT / inside).is_dir() else root


def unit_test_lines() -> dict[str, int]:
    """Return the lines of unit tests by product folder."""
    counted: Counter[str] = Counter()
    for path in modules("tests/unit"):
        if folder := product_folder(PurePosixPath(path)):
            counted[folder] += lines(path)
    return dict(counted)


def product_lines() -> dict[str, int]:
    """Return the lines of the same product folders, without inner folders of the list."""
    counted: Counter[str] = Counter()
    for folder in sorted(unit_test_lines(), key=len, reverse=True):
        inner = tuple(f"{other}/" for other in counted if other.startswith(f"{folder}/"))
        counted[folder] = sum(
            lines(path) for path in modules(folder) if not str(path).startswith(inner)
        )
    return dict(counted)


def internals(source: str) -> Iterator[str]:
    """Yield private names of the product that a test uses, and those that it replaces."""
    tree, imported = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for alias in node.names:
                imported[alias.asname or alias.name] = alias.name
                if _is_private(alias.name):
                    yield alias.name
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() if _is_private(node.attr) and _origin(node.value) in imported:
                yield node.attr
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr"), args=[_, *_]):
                yield from _replaced(node, imported)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _origin(node: ast.AST) -> str:
    """Return the first name of an expression such as ``a.b().c``."""
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _replaced(call: ast.Call, imported: dict[str, str]) -> Iterator[str]:
    target, name = call.args[0], call.args[1] if len(call.args) > 1 else None
    if isinstance(target, ast.Constant) and isinstance(target.value, str):
        if target.value.split(".")[0] in PACKAGES and target.value.split(".")[-1] not in PORTS:
            yield target.value
    elif _origin(target) in imported:
        text = name.value if isinstance(name, ast.Constant) else "?"
        if text not in PORTS:
            yield f"{ast.unparse(target)}.{text}"


@functools.cache
def uses_of_internals() -> dict[str, int]:
    """Return the number of uses of internals by test file."""
    counted = {str(path): len([*internals((ROOT / path).read_text())]) for path in modules("tests")}
    return {path: count for path, count in counted.items() if count}


@pytest.fixture(scope="module")
def bounds() -> dict[str, dict[str, int]]:
    now = {"lines": unit_test_lines(), "internals": uses_of_internals()}
    before: dict[str, dict[str, int]] = yaml.safe_load(BOUNDS.read_text())
    if os.environ.get("SHRINK"):
        lower = {
            section: {key: min(figure, now[section][key]) for key, figure in figures.items()
                      if key in now[section]}
            for section, figures in before.items()
        }  # fmt: skip
        lower["lines"] = {**now["lines"], **lower["lines"]}
        BOUNDS.write_text(HEADER + yaml.safe_dump(lower))
        return lower
    return before


def test_unit_tests_of_a_folder_stay_smaller_than_the_folder(
    bounds: dict[str, dict[str, int]],
) -> None:
    product, known = product_lines(), bounds["lines"]
    larger = {
        folder: figure
        for folder, figure in unit_test_lines().items()
        if figure > max(known.get(folder, 0), MOST_TEST_LINES * product[folder])
    }
    assert larger == {}, "Hint: add an entry to a corpus (CONTRIBUTING.md, Tests)"


def test_no_further_test_uses_internals(bounds: dict[str, dict[str, int]]) -> None:
    known = bounds["internals"]
    more = {path: n for path, n in uses_of_internals().items() if n > known.get(path, 0)}
    assert more == {}, "Hint: call a public function, or replace a port (PORTS)"


def test_the_figures_are_those_of_the_tree(bounds: dict[str, dict[str, int]]) -> None:
    now = uses_of_internals()
    fallen = {path: n for path, n in bounds["internals"].items() if n > now.get(path, 0)}
    assert fallen == {}, f"Hint: SHRINK=1, {__doc__}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from localgcp.home import _find", ["_find"]),
        ("from localgcp import home\nhome._find()", ["_find"]),
        ("from localgcp.home import Home\nHome.of()._find", ["_find"]),
        ("self._mine = other._theirs", []),
        ("from localgcp import home\nm.setattr(home, 'find', 1)", ["home.find"]),
        ("m.setattr('localgcp.home.find', 1)", ["localgcp.home.find"]),
        ("from localgcp import home\nm.setattr(home.time, 'monotonic', 1)", []),
        ("m.setattr('localgcp.home.sleep', 1)\nm.setattr(os, 'fork', 1)", []),
    ],
)
def test_a_use_of_internals_is_recognized(source: str, expected: list[str]) -> None:
    assert [*internals(source)] == expected
