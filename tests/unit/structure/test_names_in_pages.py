"""Pages and docstrings name only files and modules that are there."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

import pytest

from tests.fixture_project import is_removed_sample
from tests.unit.structure.tree import PRODUCT, ROOT, SOURCES, files, modules
from vertex_training_cli.init import answers
from vertex_training_cli.init.answers import render


def folders_at_the_top() -> list[str]:
    return sorted({name.partition("/")[0] for name in files() if "/" in name and name[0] != "."})


#: Pages about earlier states of the tree.
HISTORY: Final = ("CHANGELOG.md",)
#: A page about the files that ``vt init`` writes.
NEW_REPOSITORY: Final = "docs/maintainers.md"
FENCED: Final = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
#: Code in backticks: a path or a module stands in it, with other words or alone.
CODE: Final = re.compile(r"(`{1,2})([^`]+)\1")
#: First parts of a path: from the top of the checkout, or from a source root.
TOPS: Final = "|".join([*folders_at_the_top(), *SOURCES.values()])
NAMED_PATH: Final = re.compile(rf"(?<![\w./:$}}-])((?:{TOPS})/[\w./-]*\w/?)(?!\w|[\w.]*[*<{{…])")
#: First parts of a dotted name; ``vt`` was a package once.
PACKAGES: Final = "|".join([*SOURCES, *SOURCES.values(), "bench", "tools", "vt"])
NAMED_MODULE: Final = re.compile(rf"(?<![\w./:@-])((?:{PACKAGES})(?:\.[A-Za-z_]\w*)+)(?![\w/*<-])")
#: Groups of entry points, which look like modules.
ENTRY_POINTS: Final = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("entry-points", ())
)
#: Names that stand for any other in an example, such as ``jobs/x.yaml``.
PLACEHOLDERS: Final = ("x", "NAME")
#: What a docstring says is raised, when it looks like one of our exceptions.
RAISED: Final = re.compile(r"\bRaises:?\s+([A-Z]\w+)\b")
#: Exceptions of libraries.
FOREIGN: Final = frozenset({"CalledProcessError", "NotFound", "ValidationError"})
EXCEPTION: Final = re.compile(r"^class (\w+)\(", re.MULTILINE)


@functools.cache
def texts() -> tuple[tuple[str, str], ...]:
    """(Name, text) of each page, and of each docstring of a module, class or function."""
    return tuple(read_texts())


def read_texts() -> Iterator[tuple[str, str]]:
    for name in files():
        if name.endswith(".md") and name not in HISTORY and not name.startswith("tests/"):
            yield name, (ROOT / name).read_text()
    for path in modules(*PRODUCT):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield str(path), ast.get_docstring(node) or ""


@functools.cache
def written_by_init() -> frozenset[str]:
    """Files and folders of a new repository with a second environment."""
    given = {"project": "acme-ml-dev", "projectNumber": "210987654321"}
    made = answers.of_options({"name": "acme"}, given, "acme")
    added = answers.environment_of_options("staging", {}, made.environments[0])
    paths = [PurePosixPath(path) for path in render(made.with_environment(added), "1.0")]
    return frozenset(str(each) for path in paths for each in (path, *path.parents))


def named(pattern: re.Pattern[str], text: str) -> list[str]:
    """What a pattern finds in the code of a text."""
    spans = [code for _, code in CODE.findall(FENCED.sub("", text))]
    return [name for code in spans for name in pattern.findall(code)]


def is_path(name: str) -> bool:
    """Whether a file or folder is there, from the top or from a source root."""
    return any((ROOT / root / name.rstrip("./")).exists() for root in ("", *SOURCES))


def is_module(name: str) -> bool:
    """Whether a dotted name leads to a module, or to what a module defines."""
    top, *rest = name.split(".")
    place = next((ROOT / root / top for root, package in SOURCES.items() if package == top), None)
    place = place or ROOT / top
    while rest and (place / rest[0]).is_dir():
        place /= rest.pop(0)
    if rest and (place / f"{rest[0]}.py").is_file():
        place /= f"{rest.pop(0)}.py"
    inside = place if place.is_file() else place / "__init__.py"
    if not rest:
        return place.is_dir() or place.is_file()
    return inside.is_file() and bool(re.search(rf"\b{rest[0]}\b", inside.read_text()))


def missing_paths(texts: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """(Page or module, path) of each path that is named and is not there."""
    return {
        (where, name)
        for where, text in texts
        for name in named(NAMED_PATH, text)
        if not is_path(name)
        and PurePosixPath(name).stem not in PLACEHOLDERS
        and not is_removed_sample(name)
        and not (where == NEW_REPOSITORY and name.rstrip("/") in written_by_init())
    }


def missing_modules(texts: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """(Page or module, dotted name) of each name that leads to nothing."""
    return {
        (where, name)
        for where, text in texts
        for name in named(NAMED_MODULE, text)
        if not is_module(name)
        and name not in ENTRY_POINTS
        and name.rpartition(".")[2] not in PLACEHOLDERS
    }


def test_only_a_name_that_leads_nowhere_is_reported() -> None:
    for name in ("infra/vertex_training/no/x1.py", "vertex_training/infra/plan.py", "docs/no.md"):
        assert missing_paths([("page", f"Run ``python {name} -x``.")]) == {("page", name)}
    for name in ("vertex_training.infra.plan", "localgcp.faults.model.Nothing", "vt.engine"):
        assert missing_modules([("page", f"Call `{name}(x)`.")]) == {("page", name)}
    page = """`infra/vertex_training/stack.py`, ``localgcp/faults/``, `cli/vertex_training_cli/*/x`,
    `tests/unit/<name>`, `vertex_training.TrainingJob`, `localgcp.faults.model.Fault.parse`,
    `python -m tools.generate.stack_file`, docs/nothing.md outside of code"""
    assert missing_paths([("page", page)]) == set()
    assert missing_modules([("page", page)]) == set()


def test_every_path_that_is_named_exists() -> None:
    assert len([name for _, text in texts() for name in named(NAMED_PATH, text)]) > 100
    assert missing_paths(texts()) == set()


def test_every_module_that_is_named_exists() -> None:
    assert len([name for _, text in texts() for name in named(NAMED_MODULE, text)]) > 20
    assert missing_modules(texts()) == set()


@pytest.mark.parametrize("package", PRODUCT)
def test_every_exception_that_a_docstring_names_exists(package: str) -> None:
    defined = {
        name for path in modules(*PRODUCT) for name in EXCEPTION.findall((ROOT / path).read_text())
    }
    known = defined | set(dir(builtins)) | FOREIGN
    unknown = {
        (where, name)
        for where, text in texts()
        if where.startswith(f"{package}/")
        for name in RAISED.findall(text)
        if name not in known
    }
    assert unknown == set()
