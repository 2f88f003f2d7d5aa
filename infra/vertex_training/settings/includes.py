"""Files that several stack files share, by the key ``include``: one config of all of them. Pure.

A mapping of names (``buckets``, ``jobs``, ``labels``, …) has the entries of all files; any other
key stands in one of them. What stands in two places is a mistake: a stack's exceptions are named
as such (``overrides``; docs/adr/0037-stacks-share-files-by-include.md).
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_origin

import yaml

from vertex_training.errors import ConfigError, Location, Path, Problem
from vertex_training.located_yaml import document
from vertex_training.located_yaml.loader import Loader
from vertex_training.located_yaml.values import location_of
from vertex_training.settings import overrides, reader
from vertex_training.settings.project_files import file_name
from vertex_training.settings.reader import RawConfig, Schema
from vertex_training.settings.section import form

#: The key that names the files.
INCLUDE: Final = "include"
#: Relative, with ``/``, without ``.`` and ``..``, to a YAML file.
FORM: Final = r"(?!\.\.?/)(?!.*/\.\.?/)(?!.*//)[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*\.ya?ml"
IncludePath = Annotated[
    str, form(FORM, "stacks/shared.yaml: a YAML file of the checkout, from its top")
]
_PATH: Final = re.compile(rf"(?:{FORM})\Z")
#: Keys of the project that stand in the file of one stack: why.
OF_ONE_STACK: Final[Mapping[str, str]] = {
    INCLUDE: "an included file includes nothing",
    overrides.OVERRIDES: "an included file has no exceptions from others",
    "images": "each stack pins digests of its own repository",
    "projectNumber": "it stands beside gcp:project",
}


def numbered_paths(config: Mapping[str, Any], namespace: str) -> list[tuple[int, str]]:
    """Paths of the files that a config includes, with their places in its list.

    Those that have not the form of one are left out: the model reports them.
    """
    given = config.get(f"{namespace}:{INCLUDE}")
    paths = enumerate(given if isinstance(given, list) else [])
    return [(index, path) for index, path in paths if isinstance(path, str) and _PATH.match(path)]


def read_config(file: pathlib.Path, shown: str = "") -> dict[str, Any]:
    """The section by key, as the file has it. Messages call the file ``shown``, or by its name.

    Raises:
        ConfigError: the file is no YAML, or has no mapping where one belongs.
        OSError: it cannot be read.
    """
    name = shown or file.name
    start = Location(name, 1, 1)
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        what, location = f"not YAML: {bad.problem}", location_of(name, bad.problem_mark)
        raise ConfigError([Problem(what, location=location)]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as bad:
        what = f"not YAML: {str(bad).splitlines()[0]}"
        raise ConfigError([Problem(what, location=start)]) from None
    config = content.get("config") if isinstance(content, dict) else None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ConfigError([Problem("config must be a mapping", location=start)])
    return {str(key): value for key, value in config.items()}


def is_encrypted(value: Any) -> bool:
    """Whether the engine would have to decrypt a part of the value: ``{secure: …}``."""
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(map(is_encrypted, value.values()))
    return isinstance(value, list) and any(map(is_encrypted, value))


def with_text_keys(value: Any) -> Any:
    """The value as the engine passes it on, in JSON: keys are text."""
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Included:
    """One included file."""

    name: str
    config: Mapping[str, Any]
    document: document.Document

    def at(self, full: str, *entry: str) -> Location:
        """Where a key stands, or an entry of it."""
        return self.document.location(("config", full, *entry), key=True)


def merge(
    schema: Schema[Any],
    stack: str,
    root: pathlib.Path,
    values: Mapping[str, Any],
    given: Container[str],
) -> RawConfig:
    """``values`` and what the files add that they include; the problems of those files.

    ``values`` are by full key; ``given`` has those that the stack's own file gives, and are no
    defaults. Paths start at ``root``.

    Raises:
        ConfigError: an included file has an encrypted value.
    """
    merged = RawConfig(values)
    if INCLUDE not in schema.fields:
        return merged
    problems: list[Problem] = []
    places: dict[tuple[str, ...], str] = {}
    seen = set[str]()
    for index, path in numbered_paths(values, schema.namespace):
        place = (f"{schema.namespace}:{INCLUDE}", index)
        try:
            if path in seen:
                raise ConfigError([Problem("is included twice", path, "remove it")])
            seen.add(path)
            file = _read(root, path)
        except ConfigError as failed:
            problems += [_at_stack(problem, stack, place) for problem in failed.problems]
            continue
        _refuse_encrypted(file, stack)
        problems += file.document.problems
        for full, value in file.config.items():
            problems += _add(schema, stack, merged, given, places, (file, full, value))
    own = {full: value for full, value in values.items() if full in given}
    exceptions = overrides.apply(schema.namespace, merged, own, places)
    problems += [_at_stack(each, stack, each.path) for each in exceptions]
    merged.problems = tuple(problems)
    return merged


def _add(
    schema: Schema[Any],
    stack: str,
    merged: RawConfig,
    given: Container[str],
    places: dict[tuple[str, ...], str],
    found: tuple[_Included, str, Any],
) -> Iterator[Problem]:
    """Add one key of a file, and report what cannot be added."""
    file, full, value = found
    if problem := _misplaced(schema, full):
        yield problem.at(file.at(full))
        return
    key = full.partition(":")[2]
    own, value = merged.get(full), with_text_keys(value)
    if not (_is_mapping(schema, key) and isinstance(value, dict)):
        if full in given or (full,) in places:
            other = places.get((full,), file_name(stack))
            what = f"stands in {other}, too, and is no mapping of names"
            yield Problem(what, "", "keep one of them", (full,)).at(file.at(full))
        else:
            merged[full], places[full,] = value, file.name
        return
    entries = dict(own) if isinstance(own, dict) else {}
    for name, entry in value.items():
        if name in entries:
            other = places.get((full, name), file_name(stack))
            what = f"stands in {other}, too"
            yield Problem(what, "", "keep one of them", (full, name)).at(file.at(full, name))
        else:
            entries[name], places[full, name] = entry, file.name
    if own is None or isinstance(own, dict):
        merged[full] = entries


def _is_mapping(schema: Schema[Any], key: str) -> bool:
    """Whether a key of the config has entries by name."""
    field = schema.fields.get(key)
    return field is not None and get_origin(field.annotation) is dict


def _misplaced(schema: Schema[Any], full: str) -> Problem | None:
    """Why a key may not stand in an included file."""
    namespace, colon, key = full.partition(":")
    if not colon:
        return Problem("has no namespace", "", f"write {schema.namespace}:{full}", (full,))
    if namespace in reader.OTHER_NAMESPACES:
        what = "is of one stack: the engine reads it from the stack file"
        return Problem(what, "", "move it there", (full,))
    if namespace == schema.namespace and key in OF_ONE_STACK:
        return Problem(f"is of one stack: {OF_ONE_STACK[key]}", "", "move it there", (full,))
    return reader.key_problem(schema, full)


def _read(root: pathlib.Path, path: str) -> _Included:
    """The file at ``path``.

    Raises:
        ConfigError: it is not there, outside of the checkout, a link, or no file of config.
    """
    file = root / path
    if file.resolve() != root.resolve() / path:
        raise ConfigError([Problem("is a link, or has one on its way", path, "a file")])
    if path.rpartition("/")[2].startswith("Pulumi."):
        hint = "a file of another name, like stacks/shared.yaml"
        raise ConfigError([Problem("is the file of a project or a stack", path, hint)])
    try:
        read = document.read(file.read_bytes(), path)
        config = read_config(file, path)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise ConfigError([Problem(what, path, "a path from the checkout's top")]) from None
    problems = [dataclasses.replace(p, rule="") for p in read.problems if p.rule == "duplicate-key"]
    content = read.root.content
    for key in content if isinstance(content, dict) else ():
        if key != "config":
            place = read.location((key,), key=True)
            what = "an included file has config, and nothing else"
            problems.append(Problem(what, "", "remove it", (key,), place))
    return _Included(path, config, document.Document(path, read.root, tuple(problems)))


def _refuse_encrypted(file: _Included, stack: str) -> None:
    found = [full for full, value in file.config.items() if is_encrypted(value)]
    if found:
        raise ConfigError(reader.encrypted_problem(full, stack).at(file.at(full)) for full in found)


def _at_stack(problem: Problem, stack: str, place: Path) -> Problem:
    """A problem of a whole file, at the line that includes it; one inside of it stays there."""
    if problem.location.file:
        return problem
    return dataclasses.replace(problem, path=place, location=Location(file_name(stack)))
