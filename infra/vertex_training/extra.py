"""A team's own resources in ``extra.py`` next to ``__main__.py``, and the outputs they can use.

``extra.py`` is imported and checked before any declaration; its ``declare(environment)`` is called
after all other declarations.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pulumi

from vertex_training.components.capacity import Capacity
from vertex_training.components.identities import JobIdentity
from vertex_training.components.network import Network
from vertex_training.components.serving import Serving
from vertex_training.components.storage import Registry, Secrets, Snapshots, Storage
from vertex_training.components.training import Training
from vertex_training.customjob.resource import CustomJob
from vertex_training.errors import ConfigError, Location, Problem, abbreviate
from vertex_training.pulumi_internals import get_root_resource
from vertex_training.schedules.provider import JobSchedule
from vertex_training.settings.model import Settings
from vertex_training.snapshots.provider import Snapshot
from vertex_training.stack import Stack

#: Names of the module and its function.
MODULE: Final = "extra"
FUNCTION: Final = "declare"
_HINT: Final = "write `def declare(environment: Environment) -> None:` (docs/components.md)"


class Environment:
    """Resources of a stack, by the keys of its stack file. All outputs are known in previews."""

    settings: Settings
    """Settings of the stack file, by first keys (see ``formerly``)."""
    stack: str
    """Name of the stack, which is part of the names of its resources."""
    project: str
    """Id of the stack's project."""
    project_number: str
    region: str
    labels: Mapping[str, str]
    """Labels of resources that belong to no team."""
    apis: pulumi.Resource
    """Enabled APIs. Resources that need an API set ``depends_on=[environment.apis]``."""
    buckets: Mapping[str, pulumi.Output[str]]
    """Names of buckets, without ``gs://``, including ``control`` and ``staging``."""
    service_accounts: Mapping[str, pulumi.Output[str]]
    """Addresses of the service accounts that jobs run as."""
    secrets: Mapping[str, pulumi.Output[str]]
    """Full names of secrets: ``projects/P/secrets/S``."""
    registry: pulumi.Output[str]
    """Prefix of images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    network: pulumi.Output[str] | None
    """Full name of the network (``projects/P/global/networks/N``); None if jobs use none."""
    reservations: Mapping[str, pulumi.Output[str]]
    """Full names of reservations: ``projects/P/zones/Z/reservations/R``."""
    snapshots: Mapping[str, Snapshot]
    """Snapshots of query results."""
    jobs: Mapping[str, CustomJob]
    """Jobs and tuning jobs without a schedule."""
    schedules: Mapping[str, JobSchedule]
    """Schedules, by the key of their job or tuning job."""
    serving: Sequence[Serving]
    """Component of models and endpoints; empty without models and endpoints."""

    def __init__(
        self,
        stack: Stack,
        *,
        apis: pulumi.Resource,
        storage: Storage,
        registry: Registry,
        secrets: Secrets,
        identities: Mapping[str, JobIdentity],
        network: Sequence[Network],
        capacity: Sequence[Capacity],
        snapshots: Sequence[Snapshots],
        training: Training,
        serving: Sequence[Serving] = (),
    ) -> None:
        """Collect the outputs of all components; unused components have empty sequences."""
        settings = stack.declared
        self.settings, self.stack, self.region = settings, settings.stack, settings.region
        self.project, self.project_number = settings.project, settings.project_number
        self.labels = settings.names.labels(settings.labels)
        self.apis, self.registry, self.serving = apis, registry.url, serving
        addresses = {key: account.address for key, account in identities.items()}
        paths = {key: path for part in capacity for key, path in part.paths.items()}
        self.buckets = stack.by_new_keys(("buckets",), storage.bucket_names)
        self.service_accounts = stack.by_new_keys(("serviceAccounts",), addresses)
        self.secrets = stack.by_new_keys(("secrets",), secrets.paths)
        self.network = network[0].path if network else None
        self.reservations = stack.by_new_keys(("reservations",), paths)
        by_first_key = {key: made for part in snapshots for key, made in part.snapshots.items()}
        self.snapshots = stack.by_new_keys(("snapshots",), by_first_key)
        first_keys = stack.first_job_keys.items()
        self.jobs = {k: training.jobs[first] for k, first in first_keys if first in training.jobs}
        schedules = training.schedules
        self.schedules = {k: schedules[first] for k, first in first_keys if first in schedules}


@dataclass(frozen=True, slots=True)
class Extra:
    """A team's own resources: the function that declares them, or the problems of ``extra.py``."""

    root: Path
    """Folder with the stack files."""
    declare: Callable[[Environment], object] | None = None
    """Function ``declare``; None without ``extra.py``, or if ``extra.py`` has mistakes."""
    problems: tuple[Problem, ...] = ()


def load(root: Path) -> Extra:
    """Import ``extra.py`` or ``extra/``. Exceptions of the imported code become problems."""
    file, package = root / f"{MODULE}.py", root / MODULE / "__init__.py"
    problem = _problem_of_files(file, root / MODULE, package)
    if problem or not (file.is_file() or package.is_file()):
        return Extra(root, problems=(problem,) if problem else ())
    module_path = file if file.is_file() else package
    try:
        module = _import(module_path, root)
    except (Exception, SystemExit) as error:  # code of the team can raise any exception
        return Extra(root, problems=(problem_of(error, f"import of {MODULE}", root),))
    shown = module_path.relative_to(root).as_posix()
    if problem := _problem_with(module, shown):
        return Extra(root, problems=(problem,))
    return Extra(root, getattr(module, FUNCTION))


def _problem_of_files(file: Path, folder: Path, package: Path) -> Problem | None:
    """Return a problem if ``extra`` cannot be imported. Without it, ``up`` deletes resources."""
    for path in (file, folder, package):
        if path.is_symlink() and not path.exists():
            name = path.relative_to(folder.parent).as_posix()
            what = f"{name} is a symbolic link without a target"
            return _problem(name, what, "restore the target or remove the link")
    if file.is_dir():
        hint = f"rename the folder; a package is {MODULE}/__init__.py"
        return _problem(file.name, f"{file.name} is a folder", hint)
    if file.is_file() and package.is_file():
        what = "extra.py and extra/__init__.py both exist"
        return _problem(file.name, what, "remove extra.py or extra/__init__.py")
    if not file.is_file() and not package.is_file() and any(folder.glob("*.py")):
        hint = "add extra/__init__.py with `def declare(environment)`, or rename the folder"
        return _problem(folder.name, "extra/ has modules, but no __init__.py", hint)
    return None


def _problem(shown: str, what: str, hint: str, value: str = "", line: int = 0) -> Problem:
    return Problem(what, value, hint, location=Location(shown, line))


def _import(file: Path, root: Path) -> ModuleType:
    """Import ``file`` by its path, since another module may have the same name."""
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(MODULE, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python module")
    if str(root) not in sys.path:  # for imports of modules in the same folder
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
        return _problem(shown, f"module {MODULE} has no function {FUNCTION}", _HINT)
    if not callable(declare):
        return _problem(shown, f"{FUNCTION} is not a function", _HINT, type(declare).__name__)
    code = getattr(declare, "__code__", None)
    line = code.co_firstlineno if code else 0
    if inspect.iscoroutinefunction(declare) or inspect.isgeneratorfunction(declare):
        return _problem(shown, f"{FUNCTION} must not be async or a generator", _HINT, line=line)
    with contextlib.suppress(ValueError):  # builtins have no signature: the call reports mistakes
        signature = inspect.signature(declare)
        try:
            signature.bind(None)
        except TypeError:
            what, got = f"{FUNCTION} must accept one argument", f"{FUNCTION}{signature}"
            return _problem(shown, what, _HINT, got, line)
    return None


#: Folders of the standard library and installed packages.
_INSTALLED: Final = tuple(Path(path).resolve() for path in set(sysconfig.get_paths().values()))


def problem_of(error: BaseException, doing: str, root: Path) -> Problem:
    """Convert an exception of the team's code to a problem. ``doing`` is the failed step."""
    frames = ((Path(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__))
    where = [
        Location(_shown(path, root), line or 0) for path, line in frames if _is_own(path, root)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg
        where.append(Location(_shown(Path(error.filename), root), error.lineno or 0))
    else:
        text = abbreviate(str(error))
    what = f"{doing} raised {type(error).__name__}" + (f": {text}" if text else "")
    if isinstance(error, pulumi.RunError):  # its text is for users, like mistakes in arguments
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


def _is_own(path: Path, root: Path) -> bool:
    """Return True if a file is the team's, and not an installed file or part of this package."""
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
    """Declare a team's own resources, and log warnings about them."""
    if extra.declare is None:
        return
    types = _watch_types()
    before = _outputs()
    try:
        extra.declare(environment)
    except (Exception, SystemExit) as error:  # code of the team can raise any exception
        problem = problem_of(error, "declare(environment)", extra.root)
        raise ConfigError([problem]) from error
    if problems := [*_overwritten(before, _outputs(), extra.root)]:
        raise ConfigError(problems)
    for line in refused_by_deploy(types):
        pulumi.log.warn(line)


def refused_by_deploy(types: Iterable[str]) -> list[str]:
    """Return a warning for each resource type that ``vt deploy`` refuses in a state."""
    hint = "use resources of gcp, or a separate Pulumi project (docs/components.md)"
    return [
        f"extra: {type_}: `vt deploy` will refuse a state with this resource, whose provider is "
        f"not part of the program. Hint: {hint}"
        for type_ in sorted(set(types))
        if type_.removeprefix("pulumi:providers:").partition(":")[0] not in DEPLOYED
    ]


def _watch_types() -> list[str]:
    """Return a list that collects the types of custom resources that are declared later.

    Jobs are not collected, because their provider is part of the program.
    """
    types: list[str] = []

    def watch(args: pulumi.ResourceTransformationArgs) -> None:
        if isinstance(args.resource, pulumi.CustomResource) and not isinstance(
            args.resource, CustomJob
        ):
            types.append(args.type_)

    if get_root_resource() is not None:
        pulumi.runtime.register_stack_transformation(watch)
    return types


def _outputs() -> Mapping[str, Any]:
    stack = get_root_resource()
    return dict(getattr(stack, "outputs", None) or {})


def _overwritten(
    before: Mapping[str, Any], after: Mapping[str, Any], root: Path
) -> Iterator[Problem]:
    file = "extra.py" if (root / "extra.py").is_file() else "extra/__init__.py"
    for name, value in before.items():
        if after.get(name) is not value:
            hint = "use another name, since other stacks and vt read the program's output"
            yield Problem(f"{file} replaces an output of the program", name, hint)
