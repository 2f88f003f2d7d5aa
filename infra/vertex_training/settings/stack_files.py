"""Read a stack's config from its file, ``Pulumi.yaml`` and included files.

A program gets the values from the engine. ``read_raw`` merges the two files like the engine, for
tools that run without an engine. Both continue with :func:`complete`.

``include`` names files that several stack files share. A map of names (``buckets``, ``jobs``,
``labels``, …) has the entries of all files; any other key is allowed in one file only (decision
37). ``overrides`` lists a stack's exceptions by path, like ``buckets.data.protect: false``; null
removes a value (decision 52).
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import pathlib
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, get_origin

import yaml

from vertex_training.errors import ConfigError, Location, Path, Problem, did_you_mean
from vertex_training.located_yaml import document
from vertex_training.located_yaml.document import Document
from vertex_training.located_yaml.values import Loader, location_of
from vertex_training.settings import project_files, reader
from vertex_training.settings.project_files import file_name
from vertex_training.settings.reader import PROVIDER, RawConfig, Schema
from vertex_training.settings.section import INCLUDE, INCLUDE_FORM

#: Top-level keys of a stack file: https://www.pulumi.com/docs/iac/concepts/projects/stack-settings-file/
TOP_KEYS: Final = ("config", "secretsprovider", "encryptedkey", "encryptionsalt", "environment")


def read_raw(schema: Schema[Any], root: pathlib.Path, stack: str) -> RawConfig:
    """Return the config of ``stack`` by key, as input of ``reader.parse``."""
    project = project_files.project_name(root) or schema.namespace
    own, config = _merged_files(project, root, stack)
    values: dict[str, Any] = {}
    encrypted: list[str] = []
    for full, value in config.items():
        namespace, _, key = full.partition(":")
        if namespace in (PROVIDER, schema.namespace) and _is_encrypted(value):
            encrypted.append(full)
        is_text = namespace != schema.namespace or schema.is_text(key)
        values[full] = _text(value) if is_text else _with_text_keys(value)
    return complete(schema, root, stack, project, values, own, encrypted)


def complete(
    schema: Schema[Any],
    root: pathlib.Path,
    stack: str,
    project: str,
    values: Mapping[str, Any],
    own: Collection[str],
    encrypted: Iterable[str],
) -> RawConfig:
    """Merge ``values`` and included files into the input of ``reader.parse``. Keys are full keys.

    ``own`` are keys of the stack's file, without defaults. ``encrypted`` are keys with an encrypted
    value. Raises ConfigError for encrypted values, and if the stack's file is not valid.
    """
    if refused := project_files.refusal(root, stack):
        raise ConfigError([refused])
    file = _document(root / file_name(stack), file_name(stack))
    if file and (outside := _outside_of_config(file)):
        raise ConfigError([outside])
    if problems := [reader.encrypted_problem(key, stack) for key in encrypted]:
        raise ConfigError(locate(problems, root))
    merged = _include(schema, stack, root, values, own)
    of_file = [*_duplicate_keys(file), *_unknown_keys(file)] if file else []
    problems = [*of_file, *merged.problems]
    return reader.merge(schema, stack, merged, problems, project)


def _document(file: pathlib.Path, shown: str) -> Document | None:
    """Parse a file; return None if it cannot be read, which ``read_config`` reports."""
    try:
        return document.read(file.read_bytes(), shown)
    except (OSError, ConfigError):
        return None


def _outside_of_config(read: Document) -> Problem | None:
    misplaced = [key for key in read.root.content if ":" in key]
    if not misplaced or "config" in read.root.content:
        return None
    count = len(misplaced)
    what = f"{count} config keys are at the top level of the file, where Pulumi ignores them"
    hint = "write a line 'config:' above these keys, and indent them by two spaces"
    return Problem(what, "", hint, (misplaced[0],), read.location((misplaced[0],), key=True))


def _duplicate_keys(file: Document) -> list[Problem]:
    twice = [problem for problem in file.problems if problem.rule == "duplicate-key"]
    return [dataclasses.replace(problem, rule="") for problem in twice]


def _unknown_keys(file: Document) -> Iterator[Problem]:
    for key in file.root.content:
        if key not in TOP_KEYS:
            hint = did_you_mean(key, TOP_KEYS)
            yield Problem("unknown key", "", hint, (key,), file.location((key,), key=True))


def unread(file: pathlib.Path) -> list[Problem]:
    """Return a warning if the stack uses Pulumi ESC, whose values only the engine can read."""
    if (read := _document(file, file.name)) is None:
        return []
    named = read.root.content.get("environment")
    if named is None or not named.content:
        return []
    # https://www.pulumi.com/docs/esc/integrations/infrastructure/pulumi-iac/
    what = "values from Pulumi ESC environments were not checked, since only the engine reads them"
    hint = "write values of jobs and resources below config"
    path = ("environment",)
    return [Problem(what, "", hint, path, read.location(path, key=True), level="warning")]


def _full(project: str, key: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _merged_files(
    project: str, root: pathlib.Path, stack: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the config of the stack's file, and this config with defaults of ``Pulumi.yaml``."""
    file = project_files.file_of(root, stack)
    own = {_full(project, key): value for key, value in read_config(file).items()}
    defaults: dict[str, Any] = {}
    if (root / project_files.PROJECT_FILE).is_file():
        for key, declared in read_config(root / project_files.PROJECT_FILE).items():
            for word in ("value", "default"):
                if isinstance(declared, dict) and word in declared:
                    defaults[_full(project, key)] = declared[word]
    return own, defaults | own


def _text(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _engine_text(value: Any) -> str:
    if isinstance(value, bytes | date):
        return _as_text(value)
    is_text = isinstance(value, str)
    return value if is_text else json.dumps(_with_text_keys(value), default=_as_json)


def _as_json(value: Any) -> Any:
    return dict.fromkeys(sorted(map(str, value))) if isinstance(value, set) else _as_text(value)


def _as_text(value: Any) -> str:
    """Format a date or time like the engine (Go), without offset or fraction; or decode bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC" if isinstance(value, date) else str(value)


def given_keys(schema: Schema[Any], root: pathlib.Path, stack: str) -> set[str]:
    """Return the full keys in the stack's own file; empty if the file cannot be read."""
    project = project_files.project_name(root) or schema.namespace
    return {_full(project, key) for key in readable_config(root / file_name(stack))}


def engine_config(
    project: str, root: pathlib.Path, stack: str, hidden: str
) -> tuple[dict[str, str], list[str]]:
    """Return the config as the engine passes it to a program, and the encrypted keys."""
    _, config = _merged_files(project, root, stack)
    secret = [key for key, value in config.items() if _is_encrypted(value)]
    texts = {key: _engine_text(_text(raw)) for key, raw in config.items()}
    return texts | dict.fromkeys(secret, hidden), secret


def shown_config(raw: RawConfig, schema: Schema[Any]) -> dict[str, str]:
    """Return merged keys as the engine prints config; empty without included files."""
    if not raw.get(INCLUDE):
        return {}
    return {
        f"{schema.namespace}:{key}": json.dumps(raw[key], sort_keys=True)
        for key in schema.fields
        if isinstance(raw.get(key), dict | list)
    }


#: Key of the stack's values that replace values of included files.
OVERRIDES: Final = "overrides"
_PATH: Final = re.compile(rf"(?:{INCLUDE_FORM})\Z")
#: Keys that included files must not have -> reason.
OF_ONE_STACK: Final[Mapping[str, str]] = {
    INCLUDE: "included files cannot include others",
    OVERRIDES: "included files cannot override others",
    "images": "each stack pins images of its own repository",
    "projectNumber": "each stack has its own project",
}


def _numbered_paths(config: Mapping[str, Any], namespace: str) -> list[tuple[int, str]]:
    listed = config.get(f"{namespace}:{INCLUDE}")
    paths = enumerate(listed if isinstance(listed, list) else [])
    return [(index, path) for index, path in paths if isinstance(path, str) and _PATH.match(path)]


def read_config(file: pathlib.Path, shown: str = "") -> dict[str, Any]:
    """Return section ``config`` of a file. Messages name the file ``shown``, if not empty."""
    name = shown or file.name
    start = Location(name, 1, 1)
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        what = f"the file is not valid YAML: {bad.problem}"
        location = location_of(name, bad.problem_mark)
        raise ConfigError([Problem(what, location=location)]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as bad:
        what = f"the file is not valid YAML: {str(bad).splitlines()[0]}"
        raise ConfigError([Problem(what, location=start)]) from None
    config = content.get("config") if isinstance(content, dict) else None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ConfigError([Problem("config must be a mapping", location=start)])
    return {str(key): value for key, value in config.items()}


def readable_config(file: pathlib.Path) -> dict[str, Any]:
    """Return section ``config``; empty for an unreadable file, which another check reports."""
    try:
        return read_config(file)
    except (OSError, ConfigError):
        return {}


def _is_encrypted(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(map(_is_encrypted, value.values()))
    return isinstance(value, list) and any(map(_is_encrypted, value))


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _with_text_keys(item) for key, item in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Included:
    """An included file."""

    name: str
    config: Mapping[str, Any]
    document: Document

    def at(self, full: str, *entry: str) -> Location:
        """Return the location of a key, or of one of its entries."""
        return self.document.location(("config", full, *entry), key=True)


def _include(
    schema: Schema[Any],
    stack: str,
    root: pathlib.Path,
    values: Mapping[str, Any],
    own_keys: Container[str],
) -> RawConfig:
    merged = RawConfig(values)
    if INCLUDE not in schema.fields:
        return merged
    problems: list[Problem] = []
    places: dict[tuple[str, ...], str] = {}
    seen = set[str]()
    for index, path in _numbered_paths(values, schema.namespace):
        place = (f"{schema.namespace}:{INCLUDE}", index)
        try:
            if path in seen:
                what, hint = "this file is included twice", "remove one of the two entries"
                raise ConfigError([Problem(what, path, hint)])
            seen.add(path)
            file = _read_included(root, path)
        except ConfigError as failed:
            problems += [_at_stack(problem, stack, place) for problem in failed.problems]
            continue
        if encrypted := [full for full, value in file.config.items() if _is_encrypted(value)]:
            raise ConfigError(
                reader.encrypted_problem(full, stack).at(file.at(full)) for full in encrypted
            )
        problems += file.document.problems
        for full, value in file.config.items():
            problems += _add(schema, stack, merged, own_keys, places, (file, full, value))
    own = {full: value for full, value in values.items() if full in own_keys}
    exceptions = _override(schema.namespace, merged, own, places)
    problems += [_at_stack(exception, stack, exception.path) for exception in exceptions]
    merged.problems = tuple(problems)
    return merged


def _add(
    schema: Schema[Any],
    stack: str,
    merged: RawConfig,
    own_keys: Container[str],
    places: dict[tuple[str, ...], str],
    item: tuple[_Included, str, Any],
) -> Iterator[Problem]:
    file, full, value = item
    if problem := _misplaced(schema, full):
        yield problem.at(file.at(full))
        return
    field = schema.fields.get(full.partition(":")[2])
    is_map_of_names = field is not None and get_origin(field.annotation) is dict
    own, value, here = merged.get(full), _with_text_keys(value), file_name(stack)
    if not (is_map_of_names and isinstance(value, dict)):
        if full in own_keys or (full,) in places:
            other = places.get((full,), here)
            what = (
                f"this key is already set in {other}, and included files merge only maps of names"
            )
            yield Problem(what, "", "remove one of the two keys", (full,)).at(file.at(full))
        else:
            merged[full], places[full,] = value, file.name
        return
    entries = dict(own) if isinstance(own, dict) else {}
    for name, entry in value.items():
        path = full, name
        if name in entries:
            what = f"this entry already exists in {places.get(path, here)}"
            yield Problem(what, "", "remove one of the two entries", path).at(file.at(*path))
        else:
            entries[name], places[path] = entry, file.name
    if own is None or isinstance(own, dict):
        merged[full] = entries


def _misplaced(schema: Schema[Any], full: str) -> Problem | None:
    namespace, colon, key = full.partition(":")
    if not colon:
        return Problem("the key has no namespace", "", f"write {schema.namespace}:{full}", (full,))
    if namespace in reader.OTHER_NAMESPACES:
        what = "included files must not have this key, which the engine reads from the stack file"
        return Problem(what, "", "move the key to the stack file", (full,))
    if namespace == schema.namespace and key in OF_ONE_STACK:
        what = f"included files must not have this key: {OF_ONE_STACK[key]}"
        return Problem(what, "", "move the key to the stack file", (full,))
    return reader.key_problem(schema, full)


def _read_included(root: pathlib.Path, path: str) -> _Included:
    file = root / path
    if file.resolve() != root.resolve() / path:
        what, hint = "the path contains a symbolic link", "write the path of the file itself"
        raise ConfigError([Problem(what, path, hint)])
    if path.rpartition("/")[2].startswith("Pulumi."):
        hint = "include a file with another name, like stacks/shared.yaml"
        what = "files of projects and stacks cannot be included"
        raise ConfigError([Problem(what, path, hint)])
    try:
        read = document.read(file.read_bytes(), path)
        config = read_config(file, path)
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}"
        hint = "write the path relative to the top of the checkout"
        raise ConfigError([Problem(what, path, hint)]) from None
    problems = _duplicate_keys(read)
    content = read.root.content
    for key in content if isinstance(content, dict) else ():
        if key != "config":
            place = read.location((key,), key=True)
            what = "included files may have only the key config"
            problems.append(Problem(what, "", "remove this key", (key,), place))
    return _Included(path, config, Document(path, read.root, tuple(problems)))


def _at_stack(problem: Problem, stack: str, place: Path) -> Problem:
    if problem.location.file:
        return problem
    return dataclasses.replace(problem, path=place, location=Location(file_name(stack)))


def _override(
    namespace: str,
    merged: dict[str, Any],
    own: Mapping[str, Any],
    included: Collection[tuple[str, ...]],
) -> Iterator[Problem]:
    """Apply ``overrides`` to ``merged``; yield invalid overrides."""
    overrides = own.get(f"{namespace}:{OVERRIDES}")
    overrides = overrides if isinstance(overrides, dict) else {}
    paths = {str(key): value for key, value in overrides.items()}
    known = {(full.partition(":")[2], *entry): (full, *entry) for full, *entry in included}
    for text, value in paths.items():
        path = tuple(text.split("."))
        if whole := next((other for other in paths if text.startswith(f"{other}.")), None):
            what = f"this path is a part of {whole}, which is overridden too"
            problem = what, "remove one of the two overrides"
        else:
            problem = _unknown(path, known, own, namespace) or _set(merged, namespace, path, value)
        if problem:
            yield Problem(problem[0], "", problem[1], (f"{namespace}:{OVERRIDES}", text))


def _unknown(
    path: tuple[str, ...],
    known: Mapping[tuple[str, ...], tuple[str, ...]],
    own: Mapping[str, Any],
    namespace: str,
) -> tuple[str, str] | None:
    """Return problem and hint if no included file has the path; otherwise None."""
    if path[:1] in known or path[:2] in known:
        return None
    names = sorted(".".join(key) for key in known)
    entries = [name for name in names if name.startswith(f"{path[0]}.")]
    if entries and len(path) == 1:
        return "an override cannot replace all entries", f"override an entry, like {entries[0]}"
    mine = own.get(f"{namespace}:{path[0]}")
    if mine is not None and (not entries or (isinstance(mine, dict) and path[1] in mine)):
        return "this file sets the value itself", "change the value, and remove the override"
    target = ".".join(path[:2] if entries else path[:1])
    return f"no included file has {target}", did_you_mean(target, names)


def _set(
    merged: dict[str, Any], namespace: str, path: tuple[str, ...], value: Any
) -> tuple[str, str] | None:
    """Set or remove the value at the path; return problem and hint if that is impossible."""
    first = f"{namespace}:{path[0]}"
    merged[first] = copy.deepcopy(merged[first])
    inside, parents = merged, (first, *path[1:-1])[: len(path) - 1]
    for index, part in enumerate(parents):
        inside = inside.setdefault(part, {})
        if not isinstance(inside, dict):
            return f"{'.'.join(path[: index + 1])} is not a mapping", "shorten the path"
    last = path[-1] if len(path) > 1 else first
    if value is not None:
        inside[last] = value
    elif last in inside:
        del inside[last]
    else:
        return "null has no effect: no included file has this value", "remove the override"
    return None


def _overriding_place(file: Document, path: Path) -> Path:
    """Return the path of the override that sets the value at ``path``; empty without one."""
    config = _inside(file.root.content, "config")
    values = config.content if config and isinstance(config.content, dict) else {}
    for full, overrides in values.items():
        namespace, _, key = str(full).partition(":")
        is_overrides = key == OVERRIDES and isinstance(overrides.content, dict)
        for text in overrides.content if is_overrides else ():
            first, *rest = str(text).split(".")
            overridden = (f"{namespace}:{first}", *rest)
            if path[: len(overridden)] == overridden:
                return ("config", full, text, *path[len(overridden) :])
    return ()


def locate(problems: Iterable[Problem], folder: pathlib.Path) -> list[Problem]:
    """Add line and column from files in ``folder`` to problems, by their paths."""
    parsed = functools.cache(lambda name: _parse(folder, name))
    return [
        problem
        if problem.location.line or not problem.path
        else _located(problem, parsed(problem.location.file))
        for problem in problems
    ]


def _parse(folder: pathlib.Path, name: str) -> list[Document]:
    if (own := _document(folder / name, name)) is None:
        return []
    included = (_document(folder / path, path) for path in _included(own))
    return [own, *filter(None, included)]


def _included(file: Document) -> list[str]:
    section = _inside(file.root.content, "config")
    config = section.plain() if section and isinstance(section.content, dict) else {}
    spaces = sorted({str(key).rpartition(":")[0] for key in config})
    return [path for space in spaces for _, path in _numbered_paths(config, space)]


def _located(problem: Problem, parsed: list[Document]) -> Problem:
    if not parsed:
        return problem
    file, path = parsed[0], _overriding_place(parsed[0], problem.path)
    if not path:
        path = ("config", *problem.path)
        file = max(parsed, key=lambda document: len(_longest(document, path)))
    place = _longest(file, path)
    if len(place) < 2:
        return problem
    return problem.at(file.location(place, key=not isinstance(place[-1], int)))


def _longest(parsed: Document, path: Path) -> Path:
    """Return the longest beginning of ``path`` that exists in the document."""
    value: document.Value | None = parsed.root
    for index, part in enumerate(path):
        value = _inside(value.content, part)
        if value is None:
            return path[:index]
    return path


def _inside(content: Any, part: str | int) -> document.Value | None:
    if isinstance(content, dict):
        return content.get(part)
    if isinstance(content, list) and isinstance(part, int) and part < len(content):
        return content[part]
    return None
