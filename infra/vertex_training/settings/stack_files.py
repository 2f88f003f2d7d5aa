"""The config of a stack: values that Pulumi reads from two files, and included files. Pure.

A program gets the values from the engine. For tools that judge and render jobs without one,
``read_raw`` does what the engine does with the two files: ``Pulumi.<stack>.yaml`` wins over the
defaults in ``Pulumi.yaml``, whole values at a time. Both continue with :func:`complete`.

``include`` names files that several stack files share. A mapping of names (``buckets``, ``jobs``,
``labels``, …) has the entries of all files; any other key stands in one of them. A value that
stands in two places is a mistake (decision 37). ``overrides``
lists a stack's exceptions, one dotted path each, like ``buckets.data.protect: false``; null removes
a value (decision 52). Every problem gets the line
of the file that has its path (:func:`locate`).
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

#: What a stack file may have: https://www.pulumi.com/docs/iac/concepts/projects/stack-settings-file/
TOP_KEYS: Final = (
    "config",
    "secretsprovider",
    "encryptedkey",
    "encryptionsalt",
    "environment",
)


def read_raw(schema: Schema[Any], root: pathlib.Path, stack: str) -> RawConfig:
    """The config of ``stack`` by key, as ``reader.parse`` takes it.

    Raises:
        UnknownStackError: ``root`` has no such file.
        ConfigError: a file is no YAML, or has no mapping where one belongs; a value is encrypted,
            also in an included file.
    """
    file = project_files.file_of(root, stack)
    project = project_files.project_name(root) or schema.namespace
    own = {_full(project, key): value for key, value in read_config(file).items()}
    config = _defaults(project, root) | own
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
    """``values`` and what the stack's file includes, by key, as ``reader.parse`` takes it.

    All keys are full ones. ``own`` are those that the stack's file gives, and are no defaults,
    ``encrypted`` those with a value that the engine decrypted, or would.

    Raises:
        ConfigError: a value is encrypted, also in an included file; or the file is no stack's.
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
    """Return the file with places; None if it cannot be read, which ``read_config`` reports."""
    try:
        return document.read(file.read_bytes(), shown)
    except (OSError, ConfigError):
        return None


def _outside_of_config(read: Document) -> Problem | None:
    """Return a problem if the config stands at the top of the file, where nothing reads it."""
    found = [key for key in read.root.content if ":" in key]
    if not found or "config" in read.root.content:
        return None
    what = f"stands at the top of the file, as {len(found)} keys do, and nothing reads it there"
    hint = "write a line 'config:' before the first, and indent them by two spaces"
    return Problem(what, "", hint, (found[0],), read.location((found[0],), key=True))


def _duplicate_keys(file: Document) -> list[Problem]:
    twice = [problem for problem in file.problems if problem.rule == "duplicate-key"]
    return [dataclasses.replace(problem, rule="") for problem in twice]


def _unknown_keys(file: Document) -> Iterator[Problem]:
    """Yield keys beside ``config`` that Pulumi does not read."""
    for key in file.root.content:
        if key not in TOP_KEYS:
            hint = did_you_mean(key, TOP_KEYS)
            yield Problem("unknown key", "", hint, (key,), file.location((key,), key=True))


def unread(file: pathlib.Path) -> list[Problem]:
    """A warning of values that only the engine has: those of environments of Pulumi ESC.

    https://www.pulumi.com/docs/esc/integrations/infrastructure/pulumi-iac/
    """
    if (read := _document(file, file.name)) is None:
        return []
    named = read.root.content.get("environment")
    if named is None or not named.content:
        return []
    what = "an environment of Pulumi ESC is read by the engine alone: its values were not judged"
    hint = "write values that jobs and resources need below config"
    path = ("environment",)
    return [Problem(what, "", hint, path, read.location(path, key=True), level="warning")]


def _full(project: str, key: str) -> str:
    """The engine takes a key without a namespace for the project's own."""
    return key if ":" in key else f"{project}:{key}"


def _defaults(project: str, root: pathlib.Path) -> dict[str, Any]:
    """Values that ``Pulumi.yaml`` gives to all stacks."""
    defaults: dict[str, Any] = {}
    if (root / project_files.PROJECT_FILE).is_file():
        for key, declared in read_config(root / project_files.PROJECT_FILE).items():
            full = _full(project, key)
            for word in ("value", "default"):
                if isinstance(declared, dict) and word in declared:
                    defaults[full] = declared[word]
    return defaults


def _text(value: Any) -> Any:
    """Scalars of the config reach a program as text: 123 is "123"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _engine_text(value: Any) -> str:
    """A value of the config as a program gets it."""
    if isinstance(value, str | bytes | date):
        return value if isinstance(value, str) else _as_text(value)
    return json.dumps(_with_text_keys(value), default=_as_json)


def _as_json(value: Any) -> Any:
    """Return JSON's form of other values of YAML: a set is a mapping without values."""
    return dict.fromkeys(sorted(map(str, value))) if isinstance(value, set) else _as_text(value)


def _as_text(value: Any) -> str:
    """A date or time without offset or fraction as the engine's language writes it; or bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC" if isinstance(value, date) else str(value)


def given_keys(schema: Schema[Any], root: pathlib.Path, stack: str) -> set[str]:
    """Full keys that the stack's own file gives; none if it cannot be read."""
    project = project_files.project_name(root) or schema.namespace
    try:
        return {_full(project, key) for key in read_config(root / file_name(stack))}
    except (OSError, ConfigError):
        return set()


def engine_config(
    project: str, root: pathlib.Path, stack: str, hidden: str
) -> tuple[dict[str, str], list[str]]:
    """The config that the engine gives a program, and the keys of it that are encrypted.

    Those have the value ``hidden``.
    """
    file = project_files.file_of(root, stack)
    own = {_full(project, key): value for key, value in read_config(file).items()}
    config = _defaults(project, root) | own
    secret = [key for key, value in config.items() if _is_encrypted(value)]
    texts = {key: _engine_text(_text(raw)) for key, raw in config.items()}
    return texts | dict.fromkeys(secret, hidden), secret


def shown_config(raw: RawConfig, schema: Schema[Any]) -> dict[str, str]:
    """The project's keys as the engine shows a config, in JSON; nothing where no file is included.

    The engine shows what stands in the stack's own file.
    """
    if not raw.get(INCLUDE):
        return {}
    return {
        f"{schema.namespace}:{key}": json.dumps(raw[key], sort_keys=True)
        for key in schema.fields
        if isinstance(raw.get(key), dict | list)
    }


#: The key that has the exceptions.
OVERRIDES: Final = "overrides"
_PATH: Final = re.compile(rf"(?:{INCLUDE_FORM})\Z")
#: Keys of the project that stand in the file of one stack: why.
OF_ONE_STACK: Final[Mapping[str, str]] = {
    INCLUDE: "an included file includes nothing",
    OVERRIDES: "an included file has no exceptions from others",
    "images": "each stack pins digests of its own repository",
    "projectNumber": "it stands beside gcp:project",
}


def _numbered_paths(config: Mapping[str, Any], namespace: str) -> list[tuple[int, str]]:
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


def _is_encrypted(value: Any) -> bool:
    """Return whether a part of the value is encrypted: ``{secure: …}``."""
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(map(_is_encrypted, value.values()))
    return isinstance(value, list) and any(map(_is_encrypted, value))


def _with_text_keys(value: Any) -> Any:
    """The value as the engine passes it on, in JSON: keys are text."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(item) for key, item in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Included:
    """One included file."""

    name: str
    config: Mapping[str, Any]
    document: Document

    def at(self, full: str, *entry: str) -> Location:
        """Return the location of a key, or of an entry of it."""
        return self.document.location(("config", full, *entry), key=True)


def _include(
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
    for index, path in _numbered_paths(values, schema.namespace):
        place = (f"{schema.namespace}:{INCLUDE}", index)
        try:
            if path in seen:
                raise ConfigError([Problem("is included twice", path, "remove it")])
            seen.add(path)
            file = _read_included(root, path)
        except ConfigError as failed:
            problems += [_at_stack(problem, stack, place) for problem in failed.problems]
            continue
        _refuse_encrypted(file, stack)
        problems += file.document.problems
        for full, value in file.config.items():
            problems += _add(schema, stack, merged, given, places, (file, full, value))
    own = {full: value for full, value in values.items() if full in given}
    exceptions = _override(schema.namespace, merged, own, places)
    problems += [_at_stack(exception, stack, exception.path) for exception in exceptions]
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
    own, value = merged.get(full), _with_text_keys(value)
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
    """Return whether a key of the config has entries by name."""
    field = schema.fields.get(key)
    return field is not None and get_origin(field.annotation) is dict


def _misplaced(schema: Schema[Any], full: str) -> Problem | None:
    """Return the reason why a key may not be in an included file."""
    namespace, colon, key = full.partition(":")
    if not colon:
        return Problem("has no namespace", "", f"write {schema.namespace}:{full}", (full,))
    if namespace in reader.OTHER_NAMESPACES:
        what = "is of one stack: the engine reads it from the stack file"
        return Problem(what, "", "move it there", (full,))
    if namespace == schema.namespace and key in OF_ONE_STACK:
        return Problem(f"is of one stack: {OF_ONE_STACK[key]}", "", "move it there", (full,))
    return reader.key_problem(schema, full)


def _read_included(root: pathlib.Path, path: str) -> _Included:
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
    problems = _duplicate_keys(read)
    content = read.root.content
    for key in content if isinstance(content, dict) else ():
        if key != "config":
            place = read.location((key,), key=True)
            what = "an included file has config, and nothing else"
            problems.append(Problem(what, "", "remove it", (key,), place))
    return _Included(path, config, Document(path, read.root, tuple(problems)))


def _refuse_encrypted(file: _Included, stack: str) -> None:
    encrypted = [full for full, value in file.config.items() if _is_encrypted(value)]
    if encrypted:
        raise ConfigError(
            reader.encrypted_problem(full, stack).at(file.at(full)) for full in encrypted
        )


def _at_stack(problem: Problem, stack: str, place: Path) -> Problem:
    """A problem of a whole file, at the line that includes it; one inside of it stays there."""
    if problem.location.file:
        return problem
    return dataclasses.replace(problem, path=place, location=Location(file_name(stack)))


def _override(
    namespace: str,
    merged: dict[str, Any],
    own: Mapping[str, Any],
    included: Collection[tuple[str, ...]],
) -> Iterator[Problem]:
    """Change ``merged``, the config by full key, and yield what is no exception from anything.

    ``own`` is the config of the stack's own file; ``included`` are full keys, and entries of
    mappings of names, that included files give.
    """
    given = own.get(f"{namespace}:{OVERRIDES}")
    paths = {str(key): value for key, value in given.items()} if isinstance(given, dict) else {}
    known = {(full.partition(":")[2], *entry): (full, *entry) for full, *entry in included}
    for text, value in paths.items():
        path = tuple(text.split("."))
        if whole := next((other for other in paths if text.startswith(f"{other}.")), None):
            what = f"is a part of {whole}, which is overridden as a whole"
            found = (what, "keep one of them")
        else:
            found = _unknown(path, known, own, namespace) or _set(merged, namespace, path, value)
        if found:
            yield Problem(found[0], "", found[1], (f"{namespace}:{OVERRIDES}", text))


def _unknown(
    path: tuple[str, ...],
    known: Mapping[tuple[str, ...], tuple[str, ...]],
    own: Mapping[str, Any],
    namespace: str,
) -> tuple[str, str] | None:
    """Return the mistake in a path that no included file has, and the fix."""
    if path[:1] in known or path[:2] in known:
        return None
    names = sorted(".".join(key) for key in known)
    entries = [name for name in names if name.startswith(f"{path[0]}.")]
    if entries and len(path) == 1:
        return "is a mapping of names", f"override one of them, like {entries[0]}"
    mine = own.get(f"{namespace}:{path[0]}")
    if mine is not None and (not entries or (isinstance(mine, dict) and path[1] in mine)):
        return "stands in this file", "change it there"
    wanted = ".".join(path[:2] if entries else path[:1])
    return f"no included file has {wanted}", did_you_mean(wanted, names)


def _set(
    merged: dict[str, Any], namespace: str, path: tuple[str, ...], value: Any
) -> tuple[str, str] | None:
    """Write the value at the path, or leave it out; else what is wrong, and what to do."""
    first = f"{namespace}:{path[0]}"
    merged[first] = copy.deepcopy(merged[first])
    inside, parents = merged, (first, *path[1:-1])[: len(path) - 1]
    for index, part in enumerate(parents):
        inside = inside.setdefault(part, {})
        if not isinstance(inside, dict):
            return f"{'.'.join(path[: index + 1])} is no mapping", "shorten the path"
    last = path[-1] if len(path) > 1 else first
    if value is not None:
        inside[last] = value
    elif last in inside:
        del inside[last]
    else:
        return "there is nothing to leave out", "remove it"
    return None


def _overriding_place(file: Document, path: Path) -> Path:
    """Return the override of the value at ``path``, or of a part around it; empty if there is none.

    ``path`` begins with a full key, as paths of problems do.
    """
    config = file.root.content.get("config") if isinstance(file.root.content, dict) else None
    for full, given in (
        config.content if config and isinstance(config.content, dict) else {}
    ).items():
        namespace, _, key = str(full).partition(":")
        if key != OVERRIDES or not isinstance(given.content, dict):
            continue
        for text in given.content:
            first, *rest = str(text).split(".")
            overridden = (f"{namespace}:{first}", *rest)
            if path[: len(overridden)] == overridden:
                return ("config", full, text, *path[len(overridden) :])
    return ()


def locate(problems: Iterable[Problem], folder: pathlib.Path) -> list[Problem]:
    """The same problems with the line and column that a file in ``folder`` has for their paths.

    A problem that has a line keeps it. A path that is not in the file (a missing key, a value that
    ``Pulumi.yaml`` gives) stays without. A path that an included file has more of is there.
    """
    parsed = functools.cache(lambda name: _parse(folder, name))
    return [
        problem
        if problem.location.line or not problem.path
        else _located(problem, parsed(problem.location.file))
        for problem in problems
    ]


def _parse(folder: pathlib.Path, name: str) -> list[Document]:
    """The file, and those that it includes; without what cannot be read."""
    if (own := _document(folder / name, name)) is None:
        return []
    included = (_document(folder / path, path) for path in _included(own))
    return [own, *filter(None, included)]


def _included(file: Document) -> list[str]:
    content = file.root.plain()
    config = content.get("config") if isinstance(content, dict) else None
    config = config if isinstance(config, dict) else {}
    spaces = sorted({str(key).rpartition(":")[0] for key in config})
    return [path for space in spaces for _, path in _numbered_paths(config, space)]


def _located(problem: Problem, parsed: list[Document]) -> Problem:
    """At the longest part of its path that is there; as it is if not even its key is."""
    if not parsed:
        return problem
    if overriding := _overriding_place(parsed[0], problem.path):
        found = _longest(parsed[0], overriding)
        return problem.at(parsed[0].location(found, key=not isinstance(found[-1], int)))
    path = ("config", *problem.path)
    file = max(parsed, key=lambda each: len(_longest(each, path)))
    found = _longest(file, path)
    if len(found) < 2:
        return problem
    return problem.at(file.location(found, key=not isinstance(found[-1], int)))


def _longest(parsed: Document, path: Path) -> Path:
    """The longest beginning of ``path`` that is in the document."""
    value = parsed.root
    for index, part in enumerate(path):
        inside = _inside(value.content, part)
        if inside is None:
            return path[:index]
        value = inside
    return path


def _inside(content: Any, part: str | int) -> document.Value | None:
    if isinstance(content, dict):
        return content.get(part)
    if isinstance(content, list) and isinstance(part, int) and part < len(content):
        return content[part]
    return None
