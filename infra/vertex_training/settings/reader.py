"""Config -> settings: every mistake at once, each with its place in the stack file. Pure.

Pulumi checks the type of a declared key and lets unknown keys pass. Here an unknown key is a
mistake with a hint. The training stacks and ``bootstrap/`` share this reader: a :class:`Schema` has
the namespace of a project's config and its model.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_args, get_origin

import pydantic
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from vertex_training.errors import ConfigError, Location, Path, Problem, did_you_mean, nearest
from vertex_training.naming import KEY_RULE
from vertex_training.settings.model import Settings
from vertex_training.settings.project_files import file_name
from vertex_training.settings.section import Section

#: Written in the stack file under ``gcp:`` and taken over; everything else is the project's own.
PROVIDER: Final = "gcp"
PROVIDER_KEYS: Final = ("project", "region")
#: Namespaces that may stand in a stack file beside the project's own: who reads their keys.
OTHER_NAMESPACES: Final = (PROVIDER, "pulumi")
#: Keys of the provider that change who acts. They would hold for resources and not for jobs.
IDENTITY_KEYS: Final = (
    *("accessToken", "credentials", "externalCredentials"),
    *("impersonateServiceAccount", "impersonateServiceAccountDelegates"),
)
#: Other keys of the provider, of ``pulumi-gcp`` 9.35.0. Further ones end in ``CustomEndpoint``.
OTHER_PROVIDER_KEYS: Final = (
    *("addPulumiAttributionLabel", "batching", "billingProject", "defaultLabels", "deletionPolicy"),
    *("disableGlobalProjectWarning", "disableGooglePartnerName", "googlePartnerName"),
    *(
        "pollInterval",
        "preferGlobalEndpoints",
        "preferRegionalEndpoints",
        "pulumiAttributionLabelAdditionStrategy",
        "requestReason",
        "requestTimeout",
    ),
    *("scopes", "skipRegionValidation", "universeDomain", "userProjectOverride", "zone"),
)
ENDPOINT: Final = "CustomEndpoint"

AnySection = TypeVar("AnySection", bound=Section)


@dataclass(frozen=True, slots=True)
class Schema(Generic[AnySection]):
    """The namespace and the model of the config of a project's stacks."""

    namespace: str
    """Keys are ``NAMESPACE:KEY``, whatever the name of the Pulumi project."""
    model: type[AnySection]
    """Has a field for each key, for those of the provider, and ``stack``."""

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """Key below the namespace -> field of the model."""
        names = _fields(self.model)
        return {key: names[key] for key in names if key not in ("stack", *PROVIDER_KEYS)}

    def is_text(self, key: str) -> bool:
        """Return whether the value of ``key`` is text, also if it looks like a number."""
        return key in self.fields and self.fields[key].annotation is str

    def full_path(self, path: Path) -> Path:
        """A path below the namespace as the stack file has it."""
        top = str(path[0])
        if top.startswith((f"{self.namespace}:", f"{PROVIDER}:")):
            return path
        namespace = PROVIDER if top in PROVIDER_KEYS else self.namespace
        return (f"{namespace}:{top}", *path[1:])

    def location(self, stack: str) -> Location:
        """Return the location of a stack's config."""
        return Location(file_name(stack))

    def spelled(self, key: str) -> str:
        """A key as who writes the config spells it."""
        return key

    def missing_hint(self, path: Path, stack: str) -> str:
        """Return the advice about a missing required key, by its full path."""
        if len(path) == 1:
            return f"pulumi config set {path[0]} VALUE"
        return f"add it to {file_name(stack)}"


class RawConfig(dict[str, Any]):
    """A config by key, before it is checked, and what was found wrong while it was read."""

    problems: tuple[Problem, ...] = ()


def merge(
    schema: Schema[AnySection],
    stack: str,
    values: Mapping[str, Any],
    problems: Iterable[Problem] = (),
    project: str = "",
) -> RawConfig:
    """The config as :func:`parse` takes it, from all of a stack's values by full key.

    ``problems`` are those of the file itself, ``project`` is the name of the Pulumi project.
    """
    location = Location(file_name(stack))
    merged, found = RawConfig(), list(problems)
    for full, value in values.items():
        namespace, _, key = full.partition(":")
        if namespace == PROVIDER and key in PROVIDER_KEYS:
            merged[key] = value
        elif problem := key_problem(schema, full, project):
            found.append(problem.at(location))
        elif namespace == schema.namespace:
            merged[key] = value
    merged["stack"] = stack
    merged.problems = tuple(found)
    return merged


def key_problem(schema: Schema[Any], full: str, project: str = "") -> Problem | None:
    """Return the mistake in a full key, whatever its value; None for keys that the model judges.

    Keys in the namespace of the Pulumi ``project`` are its own program's.
    """
    namespace, _, key = full.partition(":")
    if namespace == schema.namespace:
        if key not in ("stack", *PROVIDER_KEYS):
            return None
        hint = f"{PROVIDER}:{key} sets it" if key in PROVIDER_KEYS else "remove it"
        return Problem("unknown key", hint=hint, path=(full,))
    if namespace not in OTHER_NAMESPACES:
        hint = f"nothing here reads '{namespace}:'"
        if key in schema.fields:
            hint = f"did you mean '{schema.namespace}:{key}'?"
        elif key in PROVIDER_KEYS:
            hint = f"did you mean '{PROVIDER}:{key}'?"
        elif namespace == project:
            return None
        return Problem("wrong namespace", hint=hint, path=(full,))
    if namespace != PROVIDER:
        return None
    if key in IDENTITY_KEYS:
        what = "changes who makes resources, and not who submits jobs"
        hint = "gcloud auth application-default login --impersonate-service-account=ACCOUNT"
        return Problem(what, hint=f"for both, {hint}", path=(full,))
    if key == "universeDomain":
        what = "is another cloud's, and names, rights and jobs here are those of googleapis.com"
        return Problem(what, hint="remove it", path=(full,))
    if near := next((known for known in PROVIDER_KEYS if key.lower().startswith(known)), None):
        return Problem("unknown key", hint=f"did you mean '{PROVIDER}:{near}'?", path=(full,))
    if key in schema.fields:
        hint = f"did you mean '{schema.namespace}:{key}'?"
        return Problem("wrong namespace", hint=hint, path=(full,))
    if key in OTHER_PROVIDER_KEYS or key.endswith(ENDPOINT):
        return None
    meant = nearest(key, (*PROVIDER_KEYS, *OTHER_PROVIDER_KEYS))
    hint = f"did you mean '{PROVIDER}:{meant}'?" if meant else "the provider reads no such key"
    return Problem("unknown key", hint=hint, path=(full,))


def encrypted_problem(full: str, stack: str) -> Problem:
    """An encrypted value of the key ``full``.

    Report it before any other problem: their messages show values.
    """
    return Problem(
        "is encrypted, and everything here goes into names, requests and the state in clear",
        hint=f"pulumi config rm {full}; secrets belong in Secret Manager",
        path=(full,),
        location=Location(file_name(stack)),
    )


def parse(schema: Schema[AnySection], raw: Mapping[str, Any]) -> AnySection:
    """Check the form of a config. ``raw`` has the keys below the namespace, and ``stack``.

    Raises:
        ConfigError: with every mistake found, at the stack file, without lines.
    """
    found = getattr(raw, "problems", ())
    try:
        settings = schema.model.model_validate(raw)
    except pydantic.ValidationError as failed:
        raise ConfigError([*found, *form_problems(schema, raw, failed)]) from None
    if found:
        raise ConfigError(found)
    return settings


def form_problems(
    schema: Schema[Any], raw: Mapping[str, Any], failed: pydantic.ValidationError
) -> list[Problem]:
    """The mistakes that a model found, at the stack file, without lines."""
    stack = str(raw.get("stack", ""))
    problems = [_problem(schema, error, stack) for error in failed.errors()]
    return [problem.at(schema.location(stack)) for problem in problems]


def _problem(schema: Schema[Any], error: ErrorDetails, stack: str) -> Problem:
    """One of pydantic's errors in our words."""
    found = tuple(part for part in error["loc"] if part != "[key]") or ("",)
    path = schema.full_path(found)
    if error["type"] == "extra_forbidden":
        known = map(schema.spelled, _keys_at(schema, found[:-1]))
        hint = did_you_mean(schema.spelled(str(found[-1])), known)
        if found[-1] in schema.fields:
            hint = f"did you mean '{schema.spelled(str(schema.full_path(found[-1:])[0]))}'?"
        return Problem("unknown key", hint=hint, path=path)
    if error["type"] == "missing":
        return Problem("missing", hint=schema.missing_hint(path, stack), path=path)
    is_tree = isinstance(error["input"], dict | list)
    value = "" if is_tree else json.dumps(error["input"], default=str)
    what = _in_words(error)
    if error["type"] == "string_pattern_mismatch" and "[key]" in error["loc"]:
        what = f"a name here must be {KEY_RULE}"
    return Problem(what[0].lower() + what[1:], value, path=path)


def _in_words(error: ErrorDetails) -> str:
    """Return pydantic's message without the words of Python."""
    known = {
        "dict_type": "must be a mapping, like {name: value}",
        "model_type": "must be a mapping, like {name: value}",
        "list_type": "must be a list, like [a, b]",
        "float_parsing": "must be a number",
        "int_parsing": "must be a whole number",
        "bool_parsing": "must be true or false",
        "string_type": "must be text: put it in quotes",
    }
    return known.get(error["type"], error["msg"].removeprefix("Value error, "))


def _keys_at(schema: Schema[Any], parents: Path) -> list[str]:
    """Keys that may stand in the section a path leads to."""
    section: type[Section] = schema.model
    steps = iter(parents)
    for step in steps:
        fields = schema.fields if section is schema.model else _fields(section)
        field = fields.get(str(step))
        section, is_several = section_in(field.annotation if field else None)
        if is_several:
            next(steps, None)  # the key or the index of one of them
    return list(schema.fields if section is schema.model else _fields(section))


def _fields(section: type[Section]) -> dict[str, FieldInfo]:
    return {to_camel(name): field for name, field in section.model_fields.items()}


def section_in(annotation: Any) -> tuple[type[Section], bool]:
    """The section a field holds, and whether in a map or a list of them; ``Section`` if none.

    ``annotation`` is that of the field, as pydantic has it.
    """
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate, get_origin(annotation) in (dict, list)
    return Section, False


#: Stand for keys that every name needs, where the file has none that can be used.
STAND_INS: Final = {
    "project": "placeholder",
    "region": "us-central1",
    "projectNumber": "100000000000",
    "stack": "placeholder",
}
#: Sections that rules judge by all of their keys and by each other.
JOINED: Final = ("network", "sharedVpc")
#: Sections that rules compare with the project and the region.
REGIONAL: Final = (*JOINED, "reservations", "encryption")
#: Key of an entry -> section that it names.
NAMED_BY: Final = {
    **{"reads": "buckets", "writes": "buckets", "secrets": "secrets", "team": "teams"},
    **{"job": "jobs", "model": "models", "account": "serviceAccounts", "bucket": "buckets"},
    **{"channel": "channels", "channels": "channels"},
}


@dataclass(frozen=True)
class PartialSettings:
    """Settings without the parts that are wrong."""

    settings: Settings | None
    """None if nothing could be saved."""
    problems: tuple[Problem, ...]
    """Mistakes of form, at the stack file, without lines."""
    removed: frozenset[Path] = frozenset()
    """Missing parts of the settings, by path below the namespace."""

    def concerns_removed(self, problem: Problem) -> bool:
        """Return whether a rule's problem is about a removed part, or follows from its removal."""
        top = problem.path[0] if problem.path else ""
        for path in self.removed:
            section = path[0]
            if problem.path[: len(path)] == path or (top == section and top in JOINED):
                return True
            if section in JOINED and top in JOINED:
                return True
            if section in STAND_INS and (top in REGIONAL or top in STAND_INS):
                return True
            if section == "reservations" and problem.path[:2] == path[:2]:
                return True  # an entry is judged by all of its keys
            names = next((part for part in problem.path if part in NAMED_BY), "")
            if NAMED_BY.get(str(names)) == section and path[1:2] in ((), (problem.value,)):
                return True
        return False


def read(schema: Schema[Settings], raw: Mapping[str, Any]) -> PartialSettings:
    """The settings of ``raw`` as far as they are valid, and every mistake of form."""
    problems: list[Problem] = list(getattr(raw, "problems", ()))
    rest, removed = copy.deepcopy(dict(raw)), _misplaced(schema, problems)
    for attempt in range(10):  # a removal may break its parent: nesting is less deep than this
        try:
            return PartialSettings(
                schema.model.model_validate(rest), tuple(problems), frozenset(removed)
            )
        except pydantic.ValidationError as failed:
            if attempt == 0:
                problems += form_problems(schema, raw, failed)
            for path, meant in _refused(schema, failed):
                _remove(rest, path)
                removed |= {path, *meant}
    return PartialSettings(None, tuple(problems))


def _misplaced(schema: Schema[Settings], problems: list[Problem]) -> set[Path]:
    """Sections that stand in another namespace, or twice: what they have is not in the config."""
    keys = (str(problem.path[0]) if problem.path else problem.value for problem in problems)
    sections = (key.rpartition(":")[2] for key in keys if ":" in key)
    return {(section,) for section in sections if section in schema.fields}


def _refused(
    schema: Schema[Settings], failed: pydantic.ValidationError
) -> Iterator[tuple[Path, list[Path]]]:
    """Return the part to remove, and what else is thereby missing: the key that was misspelled."""
    for error in failed.errors():
        path = tuple(part for part in error["loc"] if part != "[key]")
        if error["type"] == "missing" and len(path) > 1:
            path = path[:-1]
        # An entry of a list would change the places of the others: the list goes as a whole.
        index = next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))
        path = path[:index]
        meant = nearest(str(path[0]), schema.fields) if len(path) == 1 else None
        is_unknown = error["type"] == "extra_forbidden" and meant
        yield path, [(meant,)] if is_unknown and meant else []


def _remove(rest: dict[str, Any], path: Path) -> None:
    """Remove the value at ``path``; a key that must be there gets its stand-in."""
    *parents, last = path
    inside: Any = rest
    for part in parents:
        inside = inside.get(part) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        inside.pop(last, None)
    if not parents and last in STAND_INS:
        rest[str(last)] = STAND_INS[str(last)]
