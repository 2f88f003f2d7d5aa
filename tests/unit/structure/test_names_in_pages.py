"""Pages and docstrings name only files and modules that are there."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

import pytest

from tests.fixture_project import is_removed_sample
from tests.unit.structure.tree import PRODUCT, ROOT, files, modules
from vertex_training_cli.init import answers
from vertex_training_cli.init.rendering import render

#: Pages about earlier states of the tree.
HISTORY: Final = ("CHANGELOG.md",)
#: A page about the files that ``vt init`` writes.
NEW_REPOSITORY: Final = "docs/new-repository.md"
#: A path below a folder of this project, in backticks.
NAMED_PATH: Final = re.compile(
    r"`{1,2}((?:infra|vt|localcloud|tools|bootstrap|policy|jobs|tests|bench|docs)/[\w./-]+)`"
)
#: A dotted name of a module of this project, in backticks.
NAMED_MODULE: Final = re.compile(r"`{1,2}((?:infra|vt|localcloud)(?:\.[a-z_]+)+)(?:\(\))?`")
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
    given = {"name": "acme", "project": "acme-ml-dev", "projectNumber": "210987654321"}
    nothing = dict.fromkeys(answers.OPTIONS, "")
    made = answers.of_options({**nothing, **given}, "acme")
    added = answers.environment_of_options("staging", nothing, made.environments[0])
    paths = [PurePosixPath(path) for path in render(made.with_environment(added), "1.0")]
    return frozenset(str(each) for path in paths for each in (path, *path.parents))


def test_every_path_that_is_named_exists() -> None:
    missing = {
        (where, name)
        for where, text in texts()
        for name in NAMED_PATH.findall(text)
        if not list(ROOT.glob(name.rstrip("./")))
        and not is_removed_sample(name)
        and not (where == NEW_REPOSITORY and name.rstrip("/") in written_by_init())
    }
    assert missing == set()


def test_every_module_that_is_named_exists() -> None:
    def exists(name: str) -> bool:
        *parents, last = name.split(".")
        place, outer = ROOT.joinpath(*parents, last), ROOT.joinpath(*parents)
        module = outer.with_suffix(".py")
        inside = module if module.is_file() else outer / "__init__.py"
        defined = inside.is_file() and re.search(rf"\b{last}\b", inside.read_text())
        return place.is_dir() or place.with_suffix(".py").is_file() or bool(defined)

    missing = {
        (where, name)
        for where, text in texts()
        for name in NAMED_MODULE.findall(text)
        if not exists(name)
    }
    assert missing == set()


@pytest.mark.parametrize("package", PRODUCT)
def test_every_exception_that_a_docstring_names_exists(package: str) -> None:
    defined = {
        name for path in modules(*PRODUCT) for name in EXCEPTION.findall((ROOT / path).read_text())
    }
    known = defined | set(dir(builtins)) | FOREIGN
    named = {
        (where, name)
        for where, text in texts()
        if where.startswith(f"{package}/")
        for name in RAISED.findall(text)
    }
    assert {(where, name) for where, name in named if name not in known} == set()
