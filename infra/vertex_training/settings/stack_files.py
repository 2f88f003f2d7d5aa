"""A stack's config from its files: the values that the stack has, and what its file includes.

A program has the values from the engine. For tools that judge and render jobs without one,
``read_raw`` does what the engine does with the two files: ``Pulumi.<stack>.yaml`` wins over the
defaults in ``Pulumi.yaml``, whole values at a time. Both go through :func:`complete`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

from vertex_training.errors import ConfigError, Problem, did_you_mean
from vertex_training.located_yaml import document
from vertex_training.settings import includes, locations, project_files, reader
from vertex_training.settings.includes import is_encrypted, read_config, with_text_keys
from vertex_training.settings.reader import PROVIDER, RawConfig, Schema

#: What a stack file may have: https://www.pulumi.com/docs/iac/concepts/projects/stack-settings-file/
TOP_KEYS: Final = (
    "config",
    "secretsprovider",
    "encryptedkey",
    "encryptionsalt",
    "environment",
)


def read_raw(schema: Schema[Any], root: Path, stack: str) -> RawConfig:
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
        if namespace in (PROVIDER, schema.namespace) and is_encrypted(value):
            encrypted.append(full)
        is_text = namespace != schema.namespace or schema.is_text(key)
        values[full] = _text(value) if is_text else with_text_keys(value)
    return complete(schema, root, stack, project, values, own, encrypted)


def complete(
    schema: Schema[Any],
    root: Path,
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
    file = root / project_files.file_name(stack)
    if outside := _outside_of_config(file):
        raise ConfigError([outside])
    if problems := [reader.encrypted_problem(key, stack) for key in encrypted]:
        raise ConfigError(locations.locate(problems, root))
    merged = includes.merge(schema, stack, root, values, own)
    problems = [*file_problems(file), *merged.problems]
    return reader.merge(schema, stack, merged, problems, project)


def _read(file: Path) -> document.Document | None:
    """A stack file; None if it is not there or cannot be read: reading its config reports that."""
    try:
        return document.read(file.read_bytes(), file.name)
    except (OSError, ConfigError):
        return None


def _outside_of_config(file: Path) -> Problem | None:
    """What to do about a file whose keys stand at its top, so that nothing reads them."""
    if (read := _read(file)) is None:
        return None
    found = [key for key in read.root.content if ":" in key]
    if not found or "config" in read.root.content:
        return None
    what = f"stands at the top of the file, as {len(found)} keys do, and nothing reads it there"
    hint = "write a line 'config:' before the first, and indent them by two spaces"
    return Problem(what, "", hint, (found[0],), read.location((found[0],), key=True))


def file_problems(file: Path) -> list[Problem]:
    """What is wrong with a stack file as such: keys given twice, unknown keys beside ``config``."""
    if (read := _read(file)) is None:
        return []
    twice = [problem for problem in read.problems if problem.rule == "duplicate-key"]
    found = [dataclasses.replace(problem, rule="") for problem in twice]
    for key in read.root.content:
        if key not in TOP_KEYS:
            hint = did_you_mean(key, TOP_KEYS)
            place = read.location((key,), key=True)
            found.append(Problem("unknown key", "", hint, (key,), place))
    return found


def unread(file: Path) -> list[Problem]:
    """A warning of values that only the engine has: those of environments of Pulumi ESC.

    https://www.pulumi.com/docs/esc/integrations/infrastructure/pulumi-iac/
    """
    if (read := _read(file)) is None:
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


def _defaults(project: str, root: Path) -> dict[str, Any]:
    """Values that ``Pulumi.yaml`` gives to all stacks."""
    found: dict[str, Any] = {}
    if (root / project_files.PROJECT_FILE).is_file():
        for key, declared in read_config(root / project_files.PROJECT_FILE).items():
            full = _full(project, key)
            for word in ("value", "default"):
                if isinstance(declared, dict) and word in declared:
                    found[full] = declared[word]
    return found


def _text(value: Any) -> Any:
    """Scalars of the config reach a program as text: 123 is "123"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _engine_text(value: Any) -> str:
    """A value of the config as a program gets it."""
    if isinstance(value, str | bytes | date):
        return value if isinstance(value, str) else _as_text(value)
    return json.dumps(with_text_keys(value), default=_as_json)


def _as_json(value: Any) -> Any:
    """What JSON has for other values of YAML: a set is a mapping without values."""
    return dict.fromkeys(sorted(map(str, value))) if isinstance(value, set) else _as_text(value)


def _as_text(value: Any) -> str:
    """A date or time without offset or fraction as the engine's language writes it; or bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:%Y-%m-%d %H:%M:%S} +0000 UTC" if isinstance(value, date) else str(value)


def given_keys(schema: Schema[Any], root: Path, stack: str) -> set[str]:
    """Full keys that the stack's own file gives; none if it cannot be read."""
    project = project_files.project_name(root) or schema.namespace
    try:
        return {_full(project, key) for key in read_config(root / project_files.file_name(stack))}
    except (OSError, ConfigError):
        return set()


def engine_config(
    project: str, root: Path, stack: str, hidden: str
) -> tuple[dict[str, str], list[str]]:
    """The config that the engine gives a program, and the keys of it that are encrypted.

    Those have the value ``hidden``.
    """
    file = project_files.file_of(root, stack)
    own = {_full(project, key): value for key, value in read_config(file).items()}
    config = _defaults(project, root) | own
    secret = [key for key, value in config.items() if is_encrypted(value)]
    texts = {key: _engine_text(_text(raw)) for key, raw in config.items()}
    return texts | dict.fromkeys(secret, hidden), secret


def shown_config(raw: RawConfig, schema: Schema[Any]) -> dict[str, str]:
    """The project's keys as the engine shows a config, in JSON; nothing where no file is included.

    The engine shows what stands in the stack's own file.
    """
    if not raw.get(includes.INCLUDE):
        return {}
    return {
        f"{schema.namespace}:{key}": json.dumps(raw[key], sort_keys=True)
        for key in schema.fields
        if isinstance(raw.get(key), dict | list)
    }
