"""The maps of this repository name every folder and module there is, and no other.

The map in CONTRIBUTING.md is short: what it leaves out stands in the docstring of the package
above.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixture_project import is_removed_sample
from tests.unit.structure.tree import PRODUCT, ROOT, SOURCES, files, modules, packages

CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text()
MOST_ROWS: Final = 30
#: The packages of the source roots.
ROOTS: Final = tuple(f"{root}/{package}" for root, package in SOURCES.items())
#: A row of a table in a docstring: the module at its beginning.
ROW: Final = re.compile(r"^``([\w./]+)``  ", re.MULTILINE)
#: Packages whose docstring must have a table, beside those that have one.
WITH_A_TABLE: Final = (
    *ROOTS,
    "infra/vertex_training/components",
    "infra/vertex_training/plan",
    "infra/vertex_training/settings",
    "cli/vertex_training_cli/engine",
)
#: A row of the map in CONTRIBUTING.md; its first cell names folders and files.
MAP_ROW: Final = re.compile(r"^\| (`[^|]*`) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)


def docstring(package: Path) -> str:
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    return ast.get_docstring(tree) or ""


def members(package: Path) -> set[str]:
    """Modules and packages directly inside of a package."""
    inside = {path.stem for path in modules(package.parts[0]) if path.parent == package}
    inside |= {path.name for path in packages(package.parts[0]) if path.parent == package}
    return {name for name in inside if not name.startswith("__")}


def with_a_table() -> list[str]:
    return [str(path) for path in packages(*PRODUCT) if ROW.search(docstring(path))]


def mapped() -> set[str]:
    """Folders and files that the map in CONTRIBUTING.md names, without a slash at the end."""
    cells = MAP_ROW.findall(CONTRIBUTING)
    return {name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_packages_with_many_modules_have_a_table() -> None:
    assert set(WITH_A_TABLE) <= set(with_a_table())


@pytest.mark.parametrize("package", with_a_table())
def test_a_table_in_a_docstring_names_only_what_is_there(package: str) -> None:
    rows = {row for row in ROW.findall(docstring(Path(package))) if not row.startswith("__")}
    data = {Path(name).name for name in files() if Path(name).parent == Path(package)}
    assert rows - members(Path(package)) - data == set()


@pytest.mark.parametrize("package", with_a_table())
def test_a_table_in_a_docstring_names_every_module(package: str) -> None:
    named = set(re.findall(r"``([\w./]+)``", docstring(Path(package))))
    assert members(Path(package)) - named == set()


def test_the_docstring_of_the_tests_names_only_what_is_there() -> None:
    rows = ROW.findall(docstring(Path("tests")))
    assert len(rows) > 10
    places = [ROOT / "tests" / name for name in rows]
    assert not [
        path for path in places if not path.is_dir() and not path.with_suffix(".py").exists()
    ]


def test_the_map_names_only_what_is_there() -> None:
    there = set(files()) | {str(parent) for name in files() for parent in Path(name).parents}
    assert {name for name in mapped() - there if not is_removed_sample(name)} == set()


def test_the_map_names_every_folder_at_the_top() -> None:
    top = {name.partition("/")[0] for name in files() if "/" in name}
    named = {name.partition("/")[0] for name in mapped()}
    assert {name for name in top if not name.startswith(".")} - named == set()


def test_the_map_is_short() -> None:
    rows = MAP_ROW.findall(CONTRIBUTING)
    assert 20 <= len(rows) <= MOST_ROWS


def test_the_map_names_every_source_root() -> None:
    assert set(ROOTS) - mapped() == set()


@pytest.mark.parametrize("root", [*ROOTS, "tools", "bench", "tests"])
def test_every_folder_is_in_the_map_or_in_the_docstring_above_it(root: str) -> None:
    code = {str(Path(name).parent) for name in files() if name.endswith(".py")}
    inside = {name for name in code if name.startswith(f"{root}/") and is_near(name, root)}
    assert {name for name in inside - mapped() if not is_named_above(Path(name))} == set()


def is_near(name: str, root: str) -> bool:
    """Whether a map has to name a folder; packages name theirs at any depth, tests mirror code."""
    return root in ROOTS or name.count("/") == root.count("/") + 1


def is_named_above(folder: Path) -> bool:
    if not (ROOT / folder.parent / "__init__.py").is_file():
        return False
    return folder.name in re.findall(r"``([\w.]+)[\w./]*``", docstring(folder.parent))
