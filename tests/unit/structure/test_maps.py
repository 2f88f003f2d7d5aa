"""The maps of this repository name every folder and module there is, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixture_project import is_removed_sample
from tests.unit.structure.tree import ROOT, files, modules, packages

CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text()
MAPPED: Final = ("bootstrap", "policy", "vertex_training")
#: A row of a table in a docstring: the module at its beginning.
ROW: Final = re.compile(r"^``([\w./]+)``  ", re.MULTILINE)
#: Packages whose docstring must have a table, beside those that have one.
WITH_A_TABLE: Final = (
    "vertex_training",
    "infra/vertex_training",
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
    return [str(path) for path in packages(*MAPPED) if ROW.search(docstring(path))]


def mapped() -> set[str]:
    """Folders and files that the map in CONTRIBUTING.md names, without a slash at the end."""
    cells = MAP_ROW.findall(CONTRIBUTING)
    return {name.rstrip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_packages_with_many_modules_have_a_table() -> None:
    assert set(WITH_A_TABLE) <= set(with_a_table())


@pytest.mark.parametrize("package", with_a_table())
def test_a_table_in_a_docstring_names_only_what_is_there(package: str) -> None:
    rows = ROW.findall(docstring(Path(package)))
    data = {Path(name).name for name in files() if Path(name).parent == Path(package)}
    assert set(rows) - members(Path(package)) - data == set()


@pytest.mark.parametrize("package", with_a_table())
def test_a_table_in_a_docstring_names_every_module(package: str) -> None:
    named = set(re.findall(r"``([\w./]+)``", docstring(Path(package))))
    assert members(Path(package)) - named == set()


def test_the_map_names_only_what_is_there() -> None:
    there = set(files()) | {str(parent) for name in files() for parent in Path(name).parents}
    assert {name for name in mapped() - there if not is_removed_sample(name)} == set()


def test_the_map_names_every_folder_at_the_top() -> None:
    top = {name.partition("/")[0] for name in files() if "/" in name}
    named = {name.partition("/")[0] for name in mapped()}
    assert {name for name in top if not name.startswith(".")} - named == set()


@pytest.mark.parametrize(
    "folder",
    ["infra/vertex_training", "localcloud/localgcp", "cli/vertex_training_cli", "tools", "tests"],
)
def test_the_map_names_every_folder_of_the_larger_ones(folder: str) -> None:
    inside = {
        "/".join(Path(name).parts[: folder.count("/") + 2])
        for name in files()
        if name.startswith(f"{folder}/")
        and name.endswith(".py")
        and name.count("/") > folder.count("/") + 1
    }
    assert inside - mapped() == set()
