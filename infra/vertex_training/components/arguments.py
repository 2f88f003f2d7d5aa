"""Arguments of a component -> the config of a stack: awaited, spelled as in a file, checked.

A component has the rules and the messages of a stack file. What differs is told here: an argument
may be an output of another resource, and a problem is at the path of a property.

An output is awaited, since a request, a name or a limit can only be judged when it is known. In a
``pulumi up`` it always is. In a preview it is known if it does not depend on what is yet to be
made: names that a program gives are, ids that the service gives are not.
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
from vertex_training.errors import ConfigError, Location, Problem, did_you_mean, dotted
from vertex_training.errors import Path as ProblemPath
from vertex_training.located_yaml.values import MAX_DEPTH
from vertex_training.pulumi_internals import UNKNOWN, Unknown, awaited, is_mocked, names_of_run
from vertex_training.settings import reader
from vertex_training.settings.model import Settings
from vertex_training.settings.reader import STAND_INS, AnySection, Schema, section_in
from vertex_training.settings.section import Section
from vertex_training.stack import Stack


class ArgumentsError(pulumi.RunError):
    """Arguments of a component that cannot be used; has every problem found.

    A ``RunError``: the program ends with this text and without a traceback.
    """

    def __init__(self, component: str, problems: Iterable[Problem]) -> None:
        """``component`` is its type and name. Paths of ``problems`` are as they were given."""
        self.component, self.problems = component, tuple(problems)
        count = "1 mistake" if len(self.problems) == 1 else f"{len(self.problems)} mistakes"
        lines = [f"{component}: {count}; nothing of it was declared.", *map(str, self.problems)]
        super().__init__("\n".join(lines))


class _Schema(Schema[AnySection]):
    """The schema of a stack file for values that no file has."""

    def full_path(self, path: ProblemPath) -> ProblemPath:
        return path

    def location(self, stack: str) -> Location:  # noqa: ARG002 - there is no file
        return Location()

    def missing_hint(self, path: ProblemPath, stack: str) -> str:  # noqa: ARG002
        return f"give {_spelled(dotted(path[-1:]))}"

    def spelled(self, key: str) -> str:
        return _spelled(key)


T = TypeVar("T")

#: Levels of mappings and lists that are read: twice as many as a job file may have.
_LEVELS: Final = 2 * MAX_DEPTH
#: Of an environment's name, which ends names and is a label.
_ENVIRONMENT: Final = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_ENVIRONMENT_RULE: Final = "1 to 40 lowercase letters, digits and hyphens, the first a letter"
#: How arguments are read.
SCHEMA: Final[Schema[Settings]] = _Schema(stacks.SCHEMA.namespace, Settings)


#: As every resource takes them. ``X | None`` is no type to Pulumi's host.
Opts = Optional[pulumi.ResourceOptions]  # noqa: UP045
#: Stands for arguments that are given as keywords.
KEYWORDS: Final[Any] = {}
#: Text that may be unknown in a preview, by the key it is at -> what stands for it meanwhile.
STAND_INS_OF_UNKNOWN: Final = {"imageUri": f"image.invalid/not-known-yet@sha256:{'0' * 64}"}


@dataclass
class Arguments:
    """The arguments of one component, while they are read.

    ``component`` is its type and name, as messages show it.
    """

    component: str
    opts: pulumi.ResourceOptions | None = None
    problems: list[Problem] = field(default_factory=list)
    unknown: list[Problem] = field(default_factory=list)
    """Those of the problems that are about a value which is not known yet."""
    dependencies: dict[pulumi.Resource, None] = field(default_factory=dict)
    """Resources that the values come from, each once; what is declared waits for them."""
    inputs: dict[str, Any] = field(default_factory=dict)
    """The values read, as the schema spells them: the registered inputs of the component."""
    stood_in: list[ProblemPath] = field(default_factory=list)
    """Paths of values that may be unknown and have a stand-in."""
    _given: dict[ProblemPath, ProblemPath] = field(default_factory=dict)
    """Path in the config -> path as it was given."""
    _is_too_deep: bool = False
    """True if a value was too deep: the rest is not read."""
    _name: str = "name"
    """The argument that says what it is called, as messages show it."""

    def section(
        self,
        model: type[Section],
        given: Mapping[str, Any],
        only: Collection[str],
        *,
        at: ProblemPath = (),
    ) -> dict[str, Any]:
        """Those arguments that are fields ``only`` of a section, as its config.

        ``given`` is by names in Python; ``at`` is the path of the section in the config.
        """
        wanted = {key: value for key, value in given.items() if key in only}
        self._given[at] = ()
        mapping = self._mapping(model, self.plain(wanted, ()), at, ())
        self.inputs |= mapping
        return mapping

    def named(
        self, args: Mapping[str, Any], keywords: Mapping[str, Any], known: Collection[str]
    ) -> dict[str, Any]:
        """The arguments that are given, by their names in Python; unknown ones are problems.

        Project and region are else those of the provider of the component.
        """
        given: Any = keywords if args is KEYWORDS else args
        if args is not KEYWORDS and keywords:
            hint = "give all arguments in one way"
            self.problems.append(Problem("are keywords, too", hint=hint, path=(*keywords,)[:1]))
        if not isinstance(given, Mapping):
            what = f"the arguments are a {type(given).__name__}"
            self.problems.append(Problem(what, hint="give a dict by names of arguments"))
            return {}
        names = {_spelled(name): name for name in known}
        result: dict[str, Any] = {}
        for key, value in given.items():
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
        """The argument ``base_name``, or the component's own name: the key in a stack file."""
        if "base_name" not in given:
            return name
        self._name = _spelled("base_name")
        self.inputs["baseName"] = asked = self.plain(given["base_name"], ("base_name",))
        return "" if asked is None else str(asked)

    def flag(self, given: Mapping[str, Any], key: str) -> bool:
        """The argument ``key``, true without it."""
        if key not in given:
            return True
        self.inputs[to_camel(key)] = found = self.plain(given[key], (key,))
        if found is not None and not isinstance(found, bool):
            self._problem("must be true or false", "", (key,))
        return found is not False

    def mapping(self, given: Mapping[str, Any], key: str) -> dict[str, Any]:
        """The argument ``key``, entries by names; entries may be outputs, all of it may not."""
        value = given.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            hint = "name each entry, like {data: …}"
            self._problem(f"is a {type(value).__name__} and no map of names", hint, (key,))
            return {}
        return {str(name): each for name, each in value.items() if each is not None}

    def plain(self, value: Any, path: ProblemPath) -> Any:
        """``value`` without outputs; what cannot be plain is a problem at ``path``, and None."""
        if self._is_too_deep:
            return None
        if len(path) > _LEVELS:
            self._is_too_deep = True
            what = f"is nested more than {_LEVELS} levels deep, or holds itself"
            self._problem(what, "give fewer levels", path[:1])
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
            hint = "give what is known in a preview, like a name that the program chooses"
            self._problem("is not known before another resource was made", hint, path)
            self.unknown.append(self.problems[-1])
            return None
        if isinstance(value, float) and value.is_integer() and HOSTED.get():
            return int(value)  # the wire between languages has no integers
        if value is None or isinstance(value, str | int | float | bool):
            return value
        self._problem(f"has the type {type(value).__name__}", "give its name, as text", path)
        return None

    def alias(self, given: ProblemPath, at: ProblemPath) -> None:
        """Show problems at the path ``at`` of the config as those of the argument ``given``."""
        self._given[at] = (_spelled(str(given[0])), *given[1:])

    def known(self, value: pulumi.Input[Any], path: ProblemPath) -> Any:
        """``value`` if it is known, else None, and no problem: for what is safe to be unknown."""
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
        """The argument ``environment``, or the Pulumi stack's name; another one if it is wrong."""
        asked = self.plain(given.get("environment"), ("environment",))
        name = pulumi.get_stack() if asked is None else asked
        if asked is not None:
            self.inputs["environment"] = asked
        if isinstance(name, str) and _ENVIRONMENT.fullmatch(name):
            return name
        what, hint = "must be a name like staging", _ENVIRONMENT_RULE
        if asked is None:
            what = "is the stack's name, and must be one like staging"
            hint = f"{hint}: rename the stack, or give environment"
        self.problems.append(Problem(what, str(name), hint, ("environment",)))
        return str(STAND_INS["stack"])

    def stack(self, raw: Mapping[str, Any], environment: str) -> Stack:
        """The config as a stack, with all rules of a stack file.

        Raises:
            ArgumentsError: with every problem, also those found before.
        """
        result = self.stack_or_none(raw, environment)
        self.check()
        assert result is not None  # a problem would have been raised
        return result

    def stack_or_none(self, raw: Mapping[str, Any], environment: str) -> Stack | None:
        """The same, but problems are kept; None if there are some."""
        whole = {"projectNumber": _stand_in_number(raw), **raw, "stack": environment}
        try:
            return stacks.from_raw(whole, Path.cwd(), SCHEMA)
        except ConfigError as failed:
            self.add(failed.problems)
            return None

    def parse(self, model: type[AnySection], raw: Mapping[str, Any]) -> AnySection | None:
        """``raw`` as ``model``; None if there are problems, which are kept."""
        try:
            return reader.parse(_Schema(SCHEMA.namespace, model), raw)
        except ConfigError as failed:
            self.add(failed.problems)
            return None

    def add(self, problems: Iterable[Problem]) -> None:
        """More problems; their paths are those of the config, or of a file that they name."""
        # A value that could not be had is reported as such already, and not also as missing.
        lost = {problem.path for problem in self.problems}
        for problem in problems:
            if problem.location.file:
                self.problems.append(problem)
                continue
            path = self.given_path(problem.path)
            if not path and len(problem.path) > 1 and problem.value:
                path = (self._name,)  # the value of an entry as a whole is its key
            if path not in lost:
                self.problems.append(dataclasses.replace(problem, path=path))

    def given_path(self, path: ProblemPath) -> ProblemPath:
        """A path in the config as it was given to the component, or would have been."""
        ends = range(len(path), 0, -1)
        end = next((end for end in ends if path[:end] in self._given), 0)
        rest = (_spelled(part) if isinstance(part, str) else part for part in path[end:])
        return (*self._given.get(path[:end], ()), *rest)

    def check(self) -> None:
        """Refuse the arguments if there are problems.

        Raises:
            ArgumentsError: there are some.
        """
        if self.problems:
            raise ArgumentsError(self.component, self.problems)

    def prerequisites(self) -> list[pulumi.Resource]:
        """Return its prerequisites: its own ``depends_on`` and the sources of its values."""
        given: Any = self.opts.depends_on if self.opts else None
        if isinstance(given, pulumi.Output):
            given = awaited(given.future())
        own = [given] if isinstance(given, pulumi.Resource) else list(given or [])
        return [*own, *self.dependencies]

    def claim(self, *, jobs: Sequence[Submission] = (), buckets: Sequence[str] = ()) -> None:
        """Take the names of jobs and buckets for this component of the program.

        Two components with one job's name would share the job, and one would cancel it for both.

        Raises:
            ArgumentsError: another component of the program has one of them.
        """
        if is_mocked():
            return  # a company's unit tests may declare a component once a test
        claims = [
            (f"job {job.job} of {job.stack} in {job.project}, {job.region}", "name it otherwise")
            for job in jobs
        ]
        claims += [(f"bucket {name}", "give another environment or name") for name in buckets]
        claimed = names_of_run()
        for what, hint in claims:
            if other := claimed.get(what):
                self.problems.append(Problem(f"{other} declares {what}", hint=hint))
        self.check()
        claimed.update({what: self.component for what, _ in claims})

    def _mapping(
        self, model: type[Section], given: Mapping[str, Any], at: ProblemPath, path: ProblemPath
    ) -> dict[str, Any]:
        """A section's fields, as a stack file spells them; what it does not have stays as it is."""
        fields = {to_camel(name): info for name, info in model.model_fields.items()}
        config: dict[str, Any] = {}
        for key, value in given.items():
            camel = to_camel(key) if key in model.model_fields else key
            if camel in config:
                self.problems.append(Problem("is given twice", hint=f"{camel}", path=(*path, key)))
            here, there = (*path, _spelled(key) if camel != key else key), (*at, camel)
            self._given[there] = here
            inner, is_several = section_in(fields[camel].annotation if camel in fields else None)
            if inner is Section:
                found = value
            elif is_several:
                found = self._entries(inner, value, there, here)
            else:
                found = self._entry(inner, value, there, here)
            if found is not None:
                config[camel] = found
        return config

    def _entries(self, model: type[Section], given: Any, at: ProblemPath, path: ProblemPath) -> Any:
        """Sections in a list, or by their keys, which become names and keep their spelling."""
        if isinstance(given, list):
            places = enumerate(given)
            return [self._entry(model, each, (*at, n), (*path, n)) for n, each in places]
        if isinstance(given, dict):
            entries = given.items()
            return {
                key: self._entry(model, each, (*at, key), (*path, key)) for key, each in entries
            }
        return given

    def _entry(self, model: type[Section], given: Any, at: ProblemPath, path: ProblemPath) -> Any:
        """One section, if it is one."""
        self._given[at] = path
        return self._mapping(model, given, at, path) if isinstance(given, dict) else given

    def _awaited(self, output: pulumi.Output[Any], path: ProblemPath) -> Any:
        value, known, secret, resources = awaited(_state(output))
        self.dependencies |= dict.fromkeys(resources)
        if secret:
            # Not shown, nor is what it holds.
            hint = "secrets belong in Secret Manager, which jobs read by name"
            what = "is secret, and would stand in names, requests and the state in clear"
            self._problem(what, hint, path)
            return None
        return self.plain(UNKNOWN if value is None and not known else value, path)

    def _problem(self, what: str, hint: str, path: ProblemPath) -> None:
        path = (_spelled(str(path[0])), *path[1:])
        self.problems.append(Problem(what, hint=hint, path=path))


async def _state(output: pulumi.Output[Any]) -> tuple[Any, bool, bool, set[pulumi.Resource]]:
    """The value, whether it is known as a whole, whether it is secret, and what it comes from."""
    return (
        await output.future(with_unknowns=True),
        await output.is_known(),
        await output.is_secret(),
        await output.resources(),
    )


def _spelled(name: str) -> str:
    """The name of a field as the caller's language spells it."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda upper: f"_{upper[1].lower()}", name)
    return to_camel(snake) if HOSTED.get() else snake


def _stand_in_number(raw: Mapping[str, Any]) -> str:
    """A number where none is asked for: no name of what is made has it."""
    project = str(raw.get("project", ""))
    is_local = naming.is_local(project)
    return naming.local_project_number(project) if is_local else str(STAND_INS["projectNumber"])


def set_outputs(component: pulumi.ComponentResource, values: Mapping[str, Any]) -> None:
    """Set and register the outputs of a component, and so end it.

    What is no output yet is known, also in a preview, and waits for all of ``component``: an output
    of one resource would let a job start before the grants beside it are made.
    """
    outputs = {key: _output_of(component, value) for key, value in values.items()}
    for key, output in outputs.items():
        setattr(component, key, output)
    component.register_outputs({to_camel(key): output for key, output in outputs.items()})


def _output_of(component: pulumi.Resource, value: Any) -> pulumi.Output[Any]:
    is_output = isinstance(value, pulumi.Output)
    return value if is_output else pulumi.Output({component}, _of(value), _of(True))


async def _of(value: T) -> T:
    return value
