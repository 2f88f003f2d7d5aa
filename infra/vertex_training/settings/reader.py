"""Convert config to settings, and report all mistakes with their position.

Pulumi accepts unknown keys; this reader reports them with a hint. The training stacks and
``bootstrap/`` share the reader: a :class:`Schema` has namespace and model of a project's config.

Renamed keys (``formerly``): names, state and the identity of a job keep the first key. Only the
stack file and references have the new key, so that a rename recreates nothing
(docs/adr/0029-a-renamed-entry-keeps-its-first-name.md).
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
from vertex_training.settings.model import BY_OWN_KEY, REFERENCES, SECTIONS, Settings
from vertex_training.settings.project_files import file_name
from vertex_training.settings.section import NamedSection, Section

#: Namespace and keys of the provider that are part of the settings.
PROVIDER: Final = "gcp"
PROVIDER_KEYS: Final = ("project", "region")
#: Allowed namespaces beside the project's own.
OTHER_NAMESPACES: Final = (PROVIDER, "pulumi")
#: Keys of the provider that change its identity. They would apply to resources, not to jobs.
IDENTITY_KEYS: Final = (
    *("accessToken", "credentials", "externalCredentials"),
    *("impersonateServiceAccount", "impersonateServiceAccountDelegates"),
)
#: Other keys of the provider (``pulumi-gcp`` 9.35.0), beside those that end in ``CustomEndpoint``.
OTHER_PROVIDER_KEYS: Final = (
    *("addPulumiAttributionLabel", "batching", "billingProject", "defaultLabels", "deletionPolicy"),
    *("disableGlobalProjectWarning", "disableGooglePartnerName", "googlePartnerName"),
    *("pollInterval", "preferGlobalEndpoints", "preferRegionalEndpoints", "requestReason"),
    *("pulumiAttributionLabelAdditionStrategy", "requestTimeout", "scopes", "universeDomain"),
    *("skipRegionValidation", "userProjectOverride", "zone"),
)
ENDPOINT: Final = "CustomEndpoint"

AnySection = TypeVar("AnySection", bound=Section)


@dataclass(frozen=True, slots=True)
class Schema(Generic[AnySection]):
    """Namespace and model of the config of a project."""

    namespace: str
    """Namespace of keys (``NAMESPACE:KEY``), independent of the Pulumi project's name."""
    model: type[AnySection]
    """Model with a field for each key, for keys of the provider, and ``stack``."""

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """Return the fields of the model by key below the namespace."""
        names = _fields(self.model)
        return {key: names[key] for key in names if key not in ("stack", *PROVIDER_KEYS)}

    def is_text(self, key: str) -> bool:
        """Return True if the value of ``key`` is text, even if it looks like a number."""
        return key in self.fields and self.fields[key].annotation is str

    def full_path(self, path: Path) -> Path:
        """Return the path in the stack file for a path below the namespace."""
        top = str(path[0])
        if top.startswith((f"{self.namespace}:", f"{PROVIDER}:")):
            return path
        namespace = PROVIDER if top in PROVIDER_KEYS else self.namespace
        return (f"{namespace}:{top}", *path[1:])

    def location(self, stack: str) -> Location:
        """Return the location of the config in the stack file."""
        return Location(file_name(stack))

    def spelled(self, key: str) -> str:
        """Return a key in the spelling of the user's file or program."""
        return key

    def missing_hint(self, path: Path, stack: str) -> str:
        """Return the hint about a missing required key with this full path."""
        if len(path) == 1:
            return f"pulumi config set {path[0]} VALUE"
        return f"add the key to {file_name(stack)}"


class RawConfig(dict[str, Any]):
    """Unvalidated config by key, with the problems found while reading it."""

    problems: tuple[Problem, ...] = ()


def merge(
    schema: Schema[AnySection],
    stack: str,
    values: Mapping[str, Any],
    problems: Iterable[Problem] = (),
    project: str = "",
) -> RawConfig:
    """Build the input of :func:`parse` from values by full key and problems of the file."""
    location = Location(file_name(stack))
    merged, collected = RawConfig(), list(problems)
    for full, value in values.items():
        namespace, _, key = full.partition(":")
        if namespace == PROVIDER and key in PROVIDER_KEYS:
            merged[key] = value
        elif problem := key_problem(schema, full, project):
            collected.append(problem.at(location))
        elif namespace == schema.namespace:
            merged[key] = value
    merged["stack"] = stack
    merged.problems = tuple(collected)
    return merged


def key_problem(schema: Schema[Any], full: str, project: str = "") -> Problem | None:
    """Return the mistake in a full key; None for keys of the model and of the project."""
    namespace, _, key = full.partition(":")
    if namespace == schema.namespace:
        if key not in ("stack", *PROVIDER_KEYS):
            return None
        hint = f"set {PROVIDER}:{key} instead" if key in PROVIDER_KEYS else "remove the key"
        return Problem("unknown key", hint=hint, path=(full,))
    if namespace not in OTHER_NAMESPACES:
        hint = f"remove the key: this program does not read namespace '{namespace}:'"
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
        what = "this key changes the identity for resources, but not for jobs"
        hint = "gcloud auth application-default login --impersonate-service-account=ACCOUNT"
        return Problem(what, hint=f"to change both identities, run {hint}", path=(full,))
    if key == "universeDomain":
        what = "only the cloud of googleapis.com is supported"
        return Problem(what, hint="remove the key", path=(full,))
    if near := next((known for known in PROVIDER_KEYS if key.lower().startswith(known)), None):
        return Problem("unknown key", hint=f"did you mean '{PROVIDER}:{near}'?", path=(full,))
    if key in schema.fields:
        hint = f"did you mean '{schema.namespace}:{key}'?"
        return Problem("wrong namespace", hint=hint, path=(full,))
    if key in OTHER_PROVIDER_KEYS or key.endswith(ENDPOINT):
        return None
    meant = nearest(key, (*PROVIDER_KEYS, *OTHER_PROVIDER_KEYS))
    hint = "remove the key: the provider does not read this key"
    hint = f"did you mean '{PROVIDER}:{meant}'?" if meant else hint
    return Problem("unknown key", hint=hint, path=(full,))


def encrypted_problem(full: str, stack: str) -> Problem:
    """Return the problem of an encrypted value. Report it first: other messages show values."""
    return Problem(
        "this value is encrypted, but names, requests and the state would contain it in plain text",
        hint=f"pulumi config rm {full}; store secrets in Secret Manager",
        path=(full,),
        location=Location(file_name(stack)),
    )


def parse(schema: Schema[AnySection], raw: Mapping[str, Any]) -> AnySection:
    """Validate a config by key; raise ConfigError with all mistakes, without lines."""
    partial = read(schema, raw)
    if partial.problems or partial.settings is None:
        raise ConfigError(partial.problems)
    return partial.settings


def form_problems(
    schema: Schema[Any], raw: Mapping[str, Any], failed: pydantic.ValidationError
) -> list[Problem]:
    """Convert a model's validation errors to problems with paths in the stack file."""
    stack = str(raw.get("stack", ""))
    problems = [_problem(schema, error, stack) for error in failed.errors()]
    return [problem.at(schema.location(stack)) for problem in problems]


def _problem(schema: Schema[Any], error: ErrorDetails, stack: str) -> Problem:
    location = tuple(part for part in error["loc"] if part != "[key]") or ("",)
    path = schema.full_path(location)
    if error["type"] == "extra_forbidden":
        known = map(schema.spelled, _keys_at(schema, location[:-1]))
        hint = did_you_mean(schema.spelled(str(location[-1])), known)
        if location[-1] in schema.fields:
            hint = f"did you mean '{schema.spelled(str(schema.full_path(location[-1:])[0]))}'?"
        return Problem("unknown key", hint=hint, path=path)
    if error["type"] == "missing":
        hint = schema.missing_hint(path, stack)
        return Problem("this required key is missing", hint=hint, path=path)
    is_tree = isinstance(error["input"], dict | list)
    value = "" if is_tree else json.dumps(error["input"], default=str)
    what = _in_words(error)
    if error["type"] == "string_pattern_mismatch" and "[key]" in error["loc"]:
        what = f"the name must be {KEY_RULE}"
    return Problem(what[0].lower() + what[1:], value, path=path)


def _in_words(error: ErrorDetails) -> str:
    known = {
        "dict_type": "the value must be a mapping, like {name: value}",
        "model_type": "the value must be a mapping, like {name: value}",
        "list_type": "the value must be a list, like [a, b]",
        "float_parsing": "the value must be a number",
        "int_parsing": "the value must be a whole number",
        "bool_parsing": "the value must be true or false",
        "string_type": "the value must be text: put the value in quotes",
    }
    return known.get(error["type"], error["msg"].removeprefix("Value error, "))


def _keys_at(schema: Schema[Any], parents: Path) -> list[str]:
    section: type[Section] = schema.model
    steps = iter(parents)
    for step in steps:
        fields = schema.fields if section is schema.model else _fields(section)
        field = fields.get(str(step))
        section, is_several = section_in(field.annotation if field else None)
        if is_several:
            next(steps, None)  # skip the key or index of the entry
    return list(schema.fields if section is schema.model else _fields(section))


def _fields(section: type[Section]) -> dict[str, FieldInfo]:
    return {to_camel(name): field for name, field in section.model_fields.items()}


def section_in(annotation: Any) -> tuple[type[Section], bool]:
    """Return the section type of a field, and True if the field has several such sections."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Section):
            return candidate, get_origin(annotation) in (dict, list)
    return Section, False


#: Placeholders of required keys that are missing or invalid.
STAND_INS: Final = {
    "project": "placeholder",
    "region": "us-central1",
    "projectNumber": "100000000000",
    "stack": "placeholder",
}
#: Sections whose rules compare all of their keys with each other.
JOINED: Final = ("network", "sharedVpc")
#: Sections that rules compare with the project and the region.
REGIONAL: Final = (*JOINED, "reservations", "encryption")
#: Key of an entry -> section that its value refers to.
NAMED_BY: Final = {"team": "teams", "channel": "channels", "channels": "channels"} | {
    field: section for fields in REFERENCES.values() for field, section in fields.items()
}


@dataclass(frozen=True)
class PartialSettings(Generic[AnySection]):
    """The settings without their invalid parts."""

    settings: AnySection | None
    """Settings; None if no part is valid."""
    problems: tuple[Problem, ...]
    """Validation problems, at the stack file, without lines."""
    removed: frozenset[Path] = frozenset()
    """Paths of removed parts, below the namespace."""

    def concerns_removed(self, problem: Problem) -> bool:
        """Return True if the problem concerns a section that was removed because it is invalid."""
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
                return True  # rules compare all keys of a reservation
            names = next((part for part in problem.path if part in NAMED_BY), "")
            if NAMED_BY.get(str(names)) == section and path[1:2] in ((), (problem.value,)):
                return True
        return False


def read(schema: Schema[AnySection], raw: Mapping[str, Any]) -> PartialSettings[AnySection]:
    """Return the valid part of the settings, and all validation problems."""
    problems: list[Problem] = list(getattr(raw, "problems", ()))
    rest, removed = copy.deepcopy(dict(raw)), _misplaced(schema, problems)
    # A removal may make the parent invalid; ten exceeds the depth of settings.
    for attempt in range(10):
        try:
            valid = schema.model.model_validate(rest)
            return PartialSettings(valid, tuple(problems), frozenset(removed))
        except pydantic.ValidationError as failed:
            if attempt == 0:
                problems += form_problems(schema, raw, failed)
            for path, meant in _refused(schema, failed):
                _remove(rest, path)
                removed |= {path, *meant}
    return PartialSettings(None, tuple(problems))


def _misplaced(schema: Schema[Any], problems: list[Problem]) -> set[Path]:
    """Return the sections with misplaced or duplicate keys, which the config therefore lacks."""
    keys = (str(problem.path[0]) if problem.path else problem.value for problem in problems)
    sections = (key.rpartition(":")[2] for key in keys if ":" in key)
    return {(section,) for section in sections if section in schema.fields}


def _refused(
    schema: Schema[Any], failed: pydantic.ValidationError
) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the path of each invalid part, with the section that a misspelled key may mean."""
    for error in failed.errors():
        path = tuple(part for part in error["loc"] if part != "[key]")
        if error["type"] == "missing" and len(path) > 1:
            path = path[:-1]
        # Removing an entry of a list would move the others: remove the whole list.
        index = next((i for i, part in enumerate(path) if isinstance(part, int)), len(path))
        path = path[:index]
        is_unknown = error["type"] == "extra_forbidden"
        meant = nearest(str(path[0]), schema.fields) if is_unknown and len(path) == 1 else None
        yield path, [(meant,)] if meant else []


def _remove(rest: dict[str, Any], path: Path) -> None:
    """Remove the value at ``path``; replace a required value by its placeholder."""
    *parents, last = path
    inside: Any = rest
    for part in parents:
        inside = inside.get(part) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        inside.pop(last, None)
    if not parents and last in STAND_INS:
        rest[str(last)] = STAND_INS[str(last)]


def first_key(key: str, entry: NamedSection) -> str:
    """Return the key with which an entry was created."""
    return entry.formerly or key


def first_keys(settings: Settings, section: tuple[str, ...]) -> dict[str, str]:
    """Return the first keys of a section's entries by their current keys."""
    return {key: first_key(key, entry) for key, entry in settings.entries(section).items()}


def with_first_keys(settings: Settings) -> Settings:
    """Return the settings with all entries and their references under first keys."""
    keys = {section: first_keys(settings, section) for section in SECTIONS}
    if all(key == first for of_section in keys.values() for key, first in of_section.items()):
        return settings
    changes, of_network = dict[str, Any](), dict[str, Any]()
    for section, fields in SECTIONS.items():
        named = REFERENCES.get(section[0], {}).items()
        references = {field: keys[(other,)] for field, other in named}
        renamed = {
            keys[section][key]: _with_first_references(key, entry, references)
            for key, entry in settings.entries(section).items()
        }
        (of_network if fields[0] == "network" else changes)[fields[-1]] = renamed
    network = settings.network.model_copy(update=of_network)
    return settings.model_copy(update={**changes, "network": network})


def _with_first_references(
    key: str, entry: NamedSection, references: Mapping[str, Mapping[str, str]]
) -> NamedSection:
    """Return an entry with first keys in its fields ``references``."""
    update: dict[str, Any] = {}
    for field, first in references.items():
        match getattr(entry, field):
            case list() as names:
                update[field] = [first.get(name, name) for name in names]
            case str() as name:
                update[field] = first.get(name, name)
            case None if field in BY_OWN_KEY:
                update[field] = first.get(key, key)
    return entry.model_copy(update=update)


def with_new_keys(settings: Settings, references: Mapping[str, Any]) -> dict[str, Any]:
    """Return references with the current keys, which job files use, instead of first keys."""
    new: dict[tuple[str, ...], str] = {
        (*section, first): key
        for section in SECTIONS
        for key, first in first_keys(settings, section).items()
    }
    result: dict[str, Any] = {}
    for name, value in references.items():
        parts = name.split(".")
        for length in (2, 3):
            if (key := new.get(tuple(parts[:length]))) is not None and len(parts) >= length:
                parts[length - 1] = key
                break
        result[".".join(parts)] = value
    return result
