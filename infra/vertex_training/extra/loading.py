"""Finds a team's ``extra.py``, imports it and checks it, before anything is declared."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from vertex_training.components.environment import Environment
from vertex_training.errors import Location, Problem
from vertex_training.extra.faults import problem_of

#: Name of the module, and of its one function.
MODULE: Final = "extra"
FUNCTION: Final = "declare"
_HINT: Final = "write `def declare(environment: Environment) -> None:`; docs/components.md"


@dataclass(frozen=True, slots=True)
class Extra:
    """A team's own resources: where they are declared, and what keeps them from being used."""

    root: Path
    """The folder with the stack files."""
    declare: Callable[[Environment], object] | None = None
    """None if there is no ``extra.py``, or if it has mistakes."""
    problems: tuple[Problem, ...] = ()


def load(root: Path) -> Extra:
    """``extra.py`` or the package ``extra/`` in ``root``, imported; nothing if there is neither.

    Exceptions of the imported code become problems.
    """
    file, package = root / f"{MODULE}.py", root / MODULE / "__init__.py"
    if problem := _unusable(file, root / MODULE, package):
        return Extra(root, problems=(problem,))
    if not file.is_file() and not package.is_file():
        return Extra(root, problems=tuple(_without_package(root / MODULE)))
    if file.is_file() and package.is_file():
        what, hint = "extra.py and extra/__init__.py: there may be one of them", "keep one"
        return Extra(root, problems=(Problem(what, "", hint, location=Location("extra.py")),))
    found = file if file.is_file() else package
    try:
        module = _import(found, root)
    except (Exception, SystemExit) as error:  # any code may stand there
        return Extra(root, problems=(problem_of(error, f"import of {MODULE}", root),))
    shown = found.relative_to(root).as_posix()
    if problem := _problem_with(module, shown):
        return Extra(root, problems=(problem,))
    return Extra(root, getattr(module, FUNCTION))


def _unusable(file: Path, folder: Path, package: Path) -> Problem | None:
    """What stands there and cannot be imported: as nothing, it would take all of it away."""
    for path in (file, folder, package):
        if path.is_symlink() and not path.exists():
            name = path.relative_to(folder.parent).as_posix()
            what = "is a link that leads nowhere"
            return Problem(f"{name} {what}", "", "mend or remove it", location=Location(name))
    if file.is_dir():
        hint = f"a package is {MODULE}/__init__.py"
        return Problem(f"{file.name} is a folder", "", hint, location=Location(file.name))
    return None


def _without_package(folder: Path) -> list[Problem]:
    """A folder of modules that nothing would import."""
    if not any(folder.glob("*.py")):
        return []
    hint = "add __init__.py with `def declare(environment)`, or rename the folder"
    return [Problem("extra/ has modules, but no __init__.py", "", hint, location=Location("extra"))]


def _import(file: Path, root: Path) -> ModuleType:
    """Import ``file`` by its path: another module of that name may be installed."""
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(MODULE, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    if str(root) not in sys.path:  # the modules beside it
        sys.path.insert(0, str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[name]
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _problem_with(module: ModuleType, shown: str) -> Problem | None:
    declare = getattr(module, FUNCTION, None)
    if declare is None:
        what = f"it has no function {FUNCTION}"
        return Problem(what, "", _HINT, location=Location(shown))
    if not callable(declare):
        what = f"{FUNCTION} is no function"
        return Problem(what, type(declare).__name__, _HINT, location=Location(shown))
    code = getattr(declare, "__code__", None)
    place = Location(shown, code.co_firstlineno if code else 0)
    if inspect.iscoroutinefunction(declare) or inspect.isgeneratorfunction(declare):
        return Problem(f"{FUNCTION} is async or a generator", "", _HINT, location=place)
    try:
        inspect.signature(declare).bind(None)
    except TypeError:
        got = f"{FUNCTION}{inspect.signature(declare)}"
        return Problem(f"{FUNCTION} takes one argument", got, _HINT, location=place)
    except ValueError:  # no signature to read, as of a builtin: the call shows it
        return None
    return None
