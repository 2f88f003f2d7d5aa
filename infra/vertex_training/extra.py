"""A team's own resources in a repository of stack files: ``extra.py`` next to ``__main__.py``.

The module is imported and checked before any declaration. Its ``declare(environment)`` is called
after all other declarations. Resources are registered after the program's last line: a program that
ends earlier, by ``engine.abandon_with_message``, registers no resource.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pulumi

from vertex_training.components.environment import Environment
from vertex_training.customjob.resource import CustomJob
from vertex_training.errors import ConfigError, Location, Problem, abbreviate
from vertex_training.pulumi_internals import get_root_resource

#: Names of the module and its function.
MODULE: Final = "extra"
FUNCTION: Final = "declare"
_HINT: Final = "write `def declare(environment: Environment) -> None:` (docs/components.md)"


@dataclass(frozen=True, slots=True)
class Extra:
    """A team's own resources: the function that declares them, or the problems of ``extra.py``."""

    root: Path
    """Folder with the stack files."""
    declare: Callable[[Environment], object] | None = None
    """Function ``declare``; None without ``extra.py``, or if ``extra.py`` has mistakes."""
    problems: tuple[Problem, ...] = ()


def load(root: Path) -> Extra:
    """Import ``extra.py`` or the package ``extra/`` in ``root``, if either exists.

    Exceptions of the imported code become problems.
    """
    file, package = root / f"{MODULE}.py", root / MODULE / "__init__.py"
    if problem := _unusable(file, root / MODULE, package):
        return Extra(root, problems=(problem,))
    if not file.is_file() and not package.is_file():
        return Extra(root, problems=tuple(_without_package(root / MODULE)))
    if file.is_file() and package.is_file():
        what, hint = "extra.py and extra/__init__.py both exist", "remove one of them"
        return Extra(root, problems=(Problem(what, "", hint, location=Location("extra.py")),))
    module_path = file if file.is_file() else package
    try:
        module = _import(module_path, root)
    except (Exception, SystemExit) as error:  # any exception of the team's code
        return Extra(root, problems=(problem_of(error, f"import of {MODULE}", root),))
    shown = module_path.relative_to(root).as_posix()
    if problem := _problem_with(module, shown):
        return Extra(root, problems=(problem,))
    return Extra(root, getattr(module, FUNCTION))


def _unusable(file: Path, folder: Path, package: Path) -> Problem | None:
    """Return a problem if an existing file cannot be imported: ``up`` would delete resources."""
    for path in (file, folder, package):
        if path.is_symlink() and not path.exists():
            name = path.relative_to(folder.parent).as_posix()
            what = f"{name} is a symbolic link without a target"
            return Problem(
                what, "", "restore the target or remove the link", location=Location(name)
            )
    if file.is_dir():
        hint = f"rename the folder; a package is {MODULE}/__init__.py"
        return Problem(f"{file.name} is a folder", "", hint, location=Location(file.name))
    return None


def _without_package(folder: Path) -> list[Problem]:
    """Return a problem if ``extra/`` has modules but is not a package."""
    if not any(folder.glob("*.py")):
        return []
    hint = "add extra/__init__.py with `def declare(environment)`, or rename the folder"
    return [Problem("extra/ has modules, but no __init__.py", "", hint, location=Location("extra"))]


def _import(file: Path, root: Path) -> ModuleType:
    """Import ``file`` by path, since another module of this name may be installed."""
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(MODULE, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
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
        what = f"module {MODULE} has no function {FUNCTION}"
        return Problem(what, "", _HINT, location=Location(shown))
    if not callable(declare):
        what = f"{FUNCTION} is not a function"
        return Problem(what, type(declare).__name__, _HINT, location=Location(shown))
    code = getattr(declare, "__code__", None)
    place = Location(shown, code.co_firstlineno if code else 0)
    if inspect.iscoroutinefunction(declare) or inspect.isgeneratorfunction(declare):
        return Problem(f"{FUNCTION} must not be async or a generator", "", _HINT, location=place)
    try:
        inspect.signature(declare).bind(None)
    except TypeError:
        got = f"{FUNCTION}{inspect.signature(declare)}"
        return Problem(f"{FUNCTION} must accept one argument", got, _HINT, location=place)
    except ValueError:  # no signature, as for builtins: the call reports mistakes
        return None
    return None


#: Folders of the standard library and installed packages.
_INSTALLED: Final = tuple(Path(path).resolve() for path in set(sysconfig.get_paths().values()))


def problem_of(error: BaseException, doing: str, root: Path) -> Problem:
    """Convert ``error`` to a problem at the innermost line below ``root``. The hint lists callers.

    ``doing`` is the failed step: ``import`` or ``declare(environment)``.
    """
    where = [*_own_frames(error, root)]
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg
        where.append(Location(_shown(Path(error.filename), root), error.lineno or 0))
    else:
        text = abbreviate(str(error))
    what = f"{doing} raised {type(error).__name__}" + (f": {text}" if text else "")
    if isinstance(error, pulumi.RunError):  # written for the user, like mistakes in arguments
        what = f"{doing}: {error}".rstrip(".")
    if isinstance(error, SystemExit):
        what = f"{doing} ended the program: sys.exit({error.code!r})"
    return Problem(what, "", _hint(error, where), location=where[-1] if where else Location())


def _hint(error: BaseException, where: list[Location]) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"install the package with module {error.name}, and add it to requirements.txt"
    if isinstance(error, SystemExit):
        return "raise an exception with a message instead"
    if isinstance(error, SyntaxError):
        return ""
    callers = list(dict.fromkeys(str(location) for location in where[:-1]))
    return f"called at {', '.join(callers)}" if callers else ""


def _own_frames(error: BaseException, root: Path) -> Iterator[Location]:
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if _is_own(path, root):
            yield Location(_shown(path, root), frame.lineno or 0)


def _is_own(path: Path, root: Path) -> bool:
    """Return True if a file is the team's: below ``root``, but not installed or this package's."""
    path = path.resolve()
    ours = Path(__file__).resolve().parent
    apart = (ours, root.resolve() / ".venv", *(p for p in _INSTALLED if p != root.resolve()))
    return path.is_relative_to(root.resolve()) and not any(map(path.is_relative_to, apart))


def _shown(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


#: Packages whose resources a state may have; see ``vertex_training_cli.deploy.command``.
DEPLOYED: Final = ("gcp", "pulumi")


def declare_extra(extra: Extra, environment: Environment) -> None:
    """Declare a team's own resources, and log warnings about them.

    Raises:
        ConfigError: the code raised an exception, or replaced an output of the program.
    """
    if extra.declare is None:
        return
    types = _watch_types()
    before = _outputs()
    try:
        extra.declare(environment)
    except (Exception, SystemExit) as error:  # any exception of the team's code
        problem = problem_of(error, "declare(environment)", extra.root)
        raise ConfigError([problem]) from error
    if problems := [*_overwritten(before, _outputs(), extra.root)]:
        raise ConfigError(problems)
    for line in refused_by_deploy(types):
        pulumi.log.warn(line)


def refused_by_deploy(types: Iterable[str]) -> list[str]:
    """Return a warning for each type of resource whose state ``vt deploy`` refuses."""
    hint = "use resources of gcp, or a separate Pulumi project (docs/components.md)"
    return [
        f"extra: {type_}: `vt deploy` will refuse a state with this resource, whose provider is "
        "not "
        f"part of the program. Hint: {hint}"
        for type_ in sorted(set(types))
        if type_.removeprefix("pulumi:providers:").partition(":")[0] not in DEPLOYED
    ]


def _watch_types() -> list[str]:
    """Return a list that collects the types of custom resources declared from now on."""
    types: list[str] = []

    def watch(args: pulumi.ResourceTransformationArgs) -> None:
        if isinstance(args.resource, pulumi.CustomResource) and not _is_job(args.resource):
            types.append(args.type_)

    if get_root_resource() is not None:
        pulumi.runtime.register_stack_transformation(watch)
    return types


def _is_job(resource: pulumi.Resource) -> bool:
    """Return True if a resource is a job, whose provider is part of the program."""
    return isinstance(resource, CustomJob)


def _outputs() -> Mapping[str, Any]:
    stack = get_root_resource()
    return dict(getattr(stack, "outputs", None) or {})


def _overwritten(
    before: Mapping[str, Any], after: Mapping[str, Any], root: Path
) -> Iterator[Problem]:
    file = "extra.py" if (root / "extra.py").is_file() else "extra/__init__.py"
    for name, value in before.items():
        if after.get(name) is not value:
            hint = "export the value by another name: other stacks and vt read the program's output"
            yield Problem(f"{file} replaces an output of the program", name, hint)
