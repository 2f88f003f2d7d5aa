"""Convert a component's arguments to the config of a stack, and check the config.

A component has the rules and messages of a stack file. Outputs are awaited, since rules need known
values: in a preview, an output is unknown only if it depends on a resource to be created.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Optional, TypeVar

import pulumi
from pydantic.alias_generators import to_camel

from vertex_training import naming
from vertex_training import stack as stacks
from vertex_training.components import ordering
from vertex_training.customjob.request.job_file import Submission
from vertex_training.engine import HOSTED
from vertex_training.errors import ConfigError, Location, Problem, counted, did_you_mean, dotted
from vertex_training.errors import Path as ProblemPath
from vertex_training.located_yaml.values import MAX_DEPTH
from vertex_training.pulumi_internals import UNKNOWN, Unknown, awaited, is_mocked, names_of_run
from vertex_training.settings import reader
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import STAND_INS, AnySection, Schema, section_in
from vertex_training.settings.section import Section
from vertex_training.stack import Stack


class ArgumentsError(pulumi.RunError):
    """Invalid arguments of a component. The program ends with this text, without traceback."""

    def __init__(self, component: str, problems: Iterable[Problem]) -> None:
        """Store the problems of ``component`` (type and name), with argument paths."""
        self.component, self.problems = component, tuple(problems)
        count = counted(len(self.problems), "mistake")
        head = f"{component}: {count}; the component declared no resource."
        super().__init__("\n".join([head, *map(str, self.problems)]))


class _Schema(Schema[AnySection]):
    """Schema of a stack file whose values are a component's arguments."""

    def full_path(self, path: ProblemPath) -> ProblemPath:
        return path

    def location(self, stack: str) -> Location:  # noqa: ARG002 - there is no file
        return Location()

    def missing_hint(self, path: ProblemPath, stack: str) -> str:  # noqa: ARG002
        return f"pass the argument {_spelled(dotted(path[-1:]))}"

    def spelled(self, key: str) -> str:
        return _spelled(key)


T = TypeVar("T")

#: Maximum nesting of mappings and lists: twice the maximum of a job file.
_LEVELS: Final = 2 * MAX_DEPTH
#: Name of an environment, used as a suffix of names and as a label.
_ENVIRONMENT: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_ENVIRONMENT_RULE: Final = (
    "use 1 to 40 lowercase letters, digits and hyphens, starting with a letter"
)
#: Schema of arguments.
SCHEMA: Final[Schema[Settings]] = _Schema(stacks.SCHEMA.namespace, Settings)


#: Resource options. Pulumi's host does not support ``X | None`` as a type.
Opts = Optional[pulumi.ResourceOptions]  # noqa: UP045
#: Default of ``args``, if arguments are passed as keywords.
KEYWORDS: Final[Any] = {}
#: Key of a text that may be unknown in a preview -> placeholder.
STAND_INS_OF_UNKNOWN: Final = {"imageUri": f"image.invalid/not-known-yet@sha256:{'0' * 64}"}


@dataclass
class Arguments:
    """Reader of the arguments of one component."""

    component: str
    """Type and name of the component, for messages."""
    opts: pulumi.ResourceOptions | None = None
    problems: list[Problem] = field(default_factory=list)
    unknown: list[Problem] = field(default_factory=list)
    """Problems about values that are unknown in a preview."""
    dependencies: dict[pulumi.Resource, None] = field(default_factory=dict)
    """Resources whose outputs are arguments. All declared resources depend on them."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """Registered inputs of the component: name in the schema -> value."""
    stood_in: list[ProblemPath] = field(default_factory=list)
    """Paths of unknown values that were replaced by a placeholder."""
    _given: dict[ProblemPath, ProblemPath] = field(default_factory=dict)
    """Path in the config -> path of the argument."""
    _is_too_deep: bool = False
    """True after a value with too many levels: further values are not read."""
    _name: str = "name"
    """Argument with the name of the component, for messages."""

    def section(
        self,
        model: type[Section],
        given: Mapping[str, Any],
        only: Collection[str],
        *,
        at: ProblemPath = (),
    ) -> dict[str, Any]:
        """Return the config of a section at path ``at``, from the arguments named in ``only``."""
        selected = {key: value for key, value in given.items() if key in only}
        self._given[at] = ()
        mapping = self._mapping(model, self.plain(selected, ()), at, ())
        self.inputs |= mapping
        return mapping

    def named(
        self, args: Mapping[str, Any], keywords: Mapping[str, Any], known: Collection[str]
    ) -> dict[str, Any]:
        """Return the arguments by Python name; collect a problem for each unknown argument."""
        passed: Any = keywords if args is KEYWORDS else args
        if args is not KEYWORDS and keywords:
            hint = "pass all arguments in args, or all as keywords"
            what = "this argument is a keyword, but args is passed too"
            self.problems.append(Problem(what, hint=hint, path=(*keywords,)[:1]))
        if not isinstance(passed, Mapping):
            what = f"args has the type {type(passed).__name__}, and must be a dict"
            self.problems.append(Problem(what, hint="pass a dict of argument names to values"))
            return {}
        names = {_spelled(name): name for name in known}
        result: dict[str, Any] = {}
        for key, value in passed.items():
            name = key if key in known else names.get(key)
            if name is None:
                hint = did_you_mean(_spelled(str(key)), names)
                self.problems.append(Problem("unknown argument", hint=hint, path=(str(key),)))
            elif value is not None:
                result[name] = value
        for name in ordering.PLACE:
            if name in known and name not in result and (value := ordering.value(self.opts, name)):
                result[name] = value
        return result

    def base_name(self, given: Mapping[str, Any], name: str) -> str:
        """Return argument ``base_name``, by default the component's name."""
        if "base_name" not in given:
            return name
        self._name = _spelled("base_name")
        self.inputs["baseName"] = value = self.plain(given["base_name"], ("base_name",))
        return "" if value is None else str(value)

    def flag(self, given: Mapping[str, Any], key: str) -> bool:
        """Return the boolean argument ``key``, by default True."""
        if key not in given:
            return True
        self.inputs[to_camel(key)] = value = self.plain(given[key], (key,))
        if value is not None and not isinstance(value, bool):
            self._problem("the value must be true or false", "", (key,))
        return value is not False

    def mapping(self, given: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return the map argument ``key``; its entries may be outputs, but not the map itself."""
        value = given.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            hint = "pass entries by name, like {data: …}"
            what = f"the value has the type {type(value).__name__}, and must be a map of names"
            self._problem(what, hint, (key,))
            return {}
        return {str(name): entry for name, entry in value.items() if entry is not None}

    def plain(self, value: Any, path: ProblemPath) -> Any:
        """Replace outputs in ``value`` by their values; unusable outputs become problems."""
        if self._is_too_deep:
            return None
        if len(path) > _LEVELS:
            self._is_too_deep = True
            what = f"the value is nested more than {_LEVELS} levels deep, or contains itself"
            self._problem(what, "pass a value with fewer levels", path[:1])
            return None
        if isinstance(value, pulumi.Output) or inspect.isawaitable(value):
            return self._awaited(pulumi.Output.from_input(value), path)
        if isinstance(value, Mapping):
            items = ((str(key), item) for key, item in value.items() if item is not None)
            return {key: self.plain(item, (*path, key)) for key, item in items}
        if isinstance(value, list | tuple):
            return [self.plain(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, Unknown) and path and path[-1] in STAND_INS_OF_UNKNOWN:
            self.stood_in.append(path)
            return STAND_INS_OF_UNKNOWN[str(path[-1])]
        if isinstance(value, Unknown):
            hint = "pass a value that is known in a preview, like a name from the program"
            what = "the value is unknown until another resource is created"
            self._problem(what, hint, path)
            self.unknown.append(self.problems[-1])
            return None
        if isinstance(value, float) and value.is_integer() and HOSTED.get():
            return int(value)  # the protocol between languages has no integers
        if value is None or isinstance(value, str | int | float | bool):
            return value
        what = f"values of type {type(value).__name__} are not supported"
        self._problem(what, "pass the name of the resource, as text", path)
        return None

    def alias(self, given: ProblemPath, at: ProblemPath) -> None:
        """Report problems at config path ``at`` with the argument path ``given`` instead."""
        self._given[at] = (_spelled(str(given[0])), *given[1:])

    def known(self, value: pulumi.Input[Any], path: ProblemPath) -> Any:
        """Return ``value``; None for an unknown output, which is no problem here."""
        apart = Arguments(self.component)
        plain = apart.plain(value, path)
        self.dependencies |= apart.dependencies
        self.problems += [problem for problem in apart.problems if problem not in apart.unknown]
        *outer, last = path
        inside = self.inputs
        for part in outer:
            inside = inside.setdefault(to_camel(str(part)), {})
        inside[str(last) if outer else to_camel(str(last))] = value if apart.unknown else plain
        return None if apart.problems else plain

    def environment(self, given: Mapping[str, Any]) -> str:
        """Return argument ``environment``, by default the stack's name."""
        value = self.plain(given.get("environment"), ("environment",))
        name = pulumi.get_stack() if value is None else value
        if value is not None:
            self.inputs["environment"] = value
        if isinstance(name, str) and _ENVIRONMENT.fullmatch(name):
            return name
        what, hint = "the environment must be a name like staging", _ENVIRONMENT_RULE
        if value is None:
            what = "the stack's name is the default, and must be a name like staging"
            hint = f"rename the stack, or pass environment; {hint}"
        self.problems.append(Problem(what, str(name), hint, ("environment",)))
        return str(STAND_INS["stack"])

    def stack(self, raw: Mapping[str, Any], environment: str) -> Stack:
        """Return the stack of a config; raise ArgumentsError with all problems."""
        result = self.stack_or_none(raw, environment)
        self.check()
        assert result is not None  # `check` raises problems
        return result

    def stack_or_none(self, raw: Mapping[str, Any], environment: str) -> Stack | None:
        """Return the stack of a config, or collect its problems and return None."""
        whole = {"projectNumber": _stand_in_number(raw), **raw, "stack": environment}
        try:
            return stacks.from_raw(whole, Path.cwd(), SCHEMA)
        except ConfigError as failed:
            self.add(failed.problems)
            return None

    def parse(self, model: type[AnySection], raw: Mapping[str, Any]) -> AnySection | None:
        """Return ``raw`` as ``model``, or collect its problems and return None."""
        try:
            return reader.parse(_Schema(SCHEMA.namespace, model), raw)
        except ConfigError as failed:
            self.add(failed.problems)
            return None

    def add(self, problems: Iterable[Problem]) -> None:
        """Collect problems whose paths are paths in the config or in a file."""
        # An unreadable value is already reported: do not report it as missing.
        lost = {problem.path for problem in self.problems}
        for problem in problems:
            if problem.location.file:
                self.problems.append(problem)
                continue
            path = self.given_path(problem.path)
            if not path and len(problem.path) > 1 and problem.value:
                path = (self._name,)  # a problem about an entry as a whole shows its key
            if path not in lost:
                self.problems.append(dataclasses.replace(problem, path=path))

    def given_path(self, path: ProblemPath) -> ProblemPath:
        """Convert a path in the config to the path of the argument."""
        ends = range(len(path), 0, -1)
        end = next((end for end in ends if path[:end] in self._given), 0)
        rest = (_spelled(part) if isinstance(part, str) else part for part in path[end:])
        return (*self._given.get(path[:end], ()), *rest)

    def check(self) -> None:
        """Raise ArgumentsError if problems were collected."""
        if self.problems:
            raise ArgumentsError(self.component, self.problems)

    def prerequisites(self) -> list[pulumi.Resource]:
        """Return the ``depends_on`` of the component, and resources whose outputs are arguments."""
        depends_on: Any = self.opts.depends_on if self.opts else None
        if isinstance(depends_on, pulumi.Output):
            depends_on = awaited(depends_on.future())
        own = [depends_on] if isinstance(depends_on, pulumi.Resource) else list(depends_on or [])
        return [*own, *self.dependencies]

    def claim(self, *, jobs: Sequence[Submission] = (), buckets: Sequence[str] = ()) -> None:
        """Reserve names of jobs and buckets, which no other component of the program can use."""
        if is_mocked():
            return  # each unit test of a program may declare the same component
        claims = [
            (f"job {job.job} of {job.stack} in {job.project}, {job.region}", "choose another name")
            for job in jobs
        ]
        claims += [(f"bucket {name}", "choose another environment or name") for name in buckets]
        claimed = names_of_run()
        for what, hint in claims:
            if other := claimed.get(what):
                self.problems.append(Problem(f"{other} declares {what}", hint=hint))
        self.check()
        claimed.update({what: self.component for what, _ in claims})

    def _mapping(
        self, model: type[Section], values: Mapping[str, Any], at: ProblemPath, path: ProblemPath
    ) -> dict[str, Any]:
        """Convert the keys of a section to keys of a stack file; unknown keys are unchanged."""
        fields = {to_camel(name): info for name, info in model.model_fields.items()}
        config: dict[str, Any] = {}
        for key, value in values.items():
            camel = to_camel(key) if key in model.model_fields else key
            if camel in config:
                what = "this argument is passed twice, in two spellings"
                self.problems.append(Problem(what, hint=f"pass only {camel}", path=(*path, key)))
            here, config_path = (*path, _spelled(key) if camel != key else key), (*at, camel)
            self._given[config_path] = here
            inner, is_several = section_in(fields[camel].annotation if camel in fields else None)
            if inner is Section:
                converted = value
            elif is_several:
                converted = self._entries(inner, value, config_path, here)
            else:
                converted = self._entry(inner, value, config_path, here)
            if converted is not None:
                config[camel] = converted
        return config

    def _entries(self, model: type[Section], value: Any, at: ProblemPath, path: ProblemPath) -> Any:
        if isinstance(value, list):
            return [self._entry(model, v, (*at, n), (*path, n)) for n, v in enumerate(value)]
        if isinstance(value, dict):
            return {k: self._entry(model, v, (*at, k), (*path, k)) for k, v in value.items()}
        return value

    def _entry(self, model: type[Section], value: Any, at: ProblemPath, path: ProblemPath) -> Any:
        self._given[at] = path
        return self._mapping(model, value, at, path) if isinstance(value, dict) else value

    def _awaited(self, output: pulumi.Output[Any], path: ProblemPath) -> Any:
        value, known, secret, resources = awaited(_state(output))
        self.dependencies |= dict.fromkeys(resources)
        if secret:
            hint = "store the secret in Secret Manager, and let jobs read it by name"
            what = "this value is secret, but names, requests and the state would show it"
            self._problem(what, hint, path)
            return None
        return self.plain(UNKNOWN if value is None and not known else value, path)

    def _problem(self, what: str, hint: str, path: ProblemPath) -> None:
        path = (_spelled(str(path[0])), *path[1:])
        self.problems.append(Problem(what, hint=hint, path=path))


async def _state(output: pulumi.Output[Any]) -> tuple[Any, bool, bool, set[pulumi.Resource]]:
    return (
        await output.future(with_unknowns=True),
        await output.is_known(),
        await output.is_secret(),
        await output.resources(),
    )


def _spelled(name: str) -> str:
    """Return the name of a field in the spelling of the program's language."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f"_{upper[1].lower()}", name)
    return to_camel(snake) if HOSTED.get() else snake


def _stand_in_number(raw: Mapping[str, Any]) -> str:
    """Return a placeholder for the project number that no name of the component contains."""
    project = str(raw.get("project", ""))
    if naming.is_local(project):
        return naming.local_project_number(project)
    return str(STAND_INS["projectNumber"])


def set_outputs(component: pulumi.ComponentResource, values: Mapping[str, Any]) -> None:
    """Set and register the outputs of a component.

    A plain value depends on the whole component, so that a job that uses the value starts after
    the component's grants.
    """
    outputs = {
        key: value
        if isinstance(value, pulumi.Output)
        else pulumi.Output({component}, _of(value), _of(True))
        for key, value in values.items()
    }
    for key, output in outputs.items():
        setattr(component, key, output)
    component.register_outputs({to_camel(key): output for key, output in outputs.items()})


async def _of(value: T) -> T:
    return value
