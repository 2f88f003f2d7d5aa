"""A project's stack files, read without an engine: for tools that judge and render jobs.

What the engine does with the two files is done here for the project's own keys:
``Pulumi.<stack>.yaml`` wins over the defaults in ``Pulumi.yaml``, whole values at a time.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Final

import yaml

from infra.errors import ConfigError, Location, Problem, did_you_mean
from infra.located_yaml import document
from infra.located_yaml.loader import Loader
from infra.settings import locations, project_files, reader
from infra.settings.reader import PROVIDER, RawConfig, Schema

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
        ConfigError: a file is no YAML, or has no mapping where one belongs; a value is encrypted.
    """
    file = project_files.file_of(root, stack)
    # The engine takes a key without a namespace for the project's own.
    own = {_full(schema, key): value for key, value in _config(file).items()}
    config = _defaults(schema, root) | own
    values: dict[str, Any] = {}
    encrypted: list[str] = []
    for full, value in config.items():
        namespace, _, key = full.partition(":")
        if namespace in (PROVIDER, schema.namespace) and _is_encrypted(value):
            encrypted.append(full)
        is_text = namespace != schema.namespace or schema.is_text(key)
        values[full] = _text(value) if is_text else _with_text_keys(value)
    if encrypted:
        found = [reader.encrypted_problem(key, stack) for key in encrypted]
        raise ConfigError(locations.locate(found, root))
    return reader.merge(schema, stack, values, file_problems(file))


def file_problems(file: Path) -> list[Problem]:
    """What is wrong with a stack file as such: keys given twice, unknown keys beside ``config``.

    Nothing for a file that is not there or cannot be read: reading its config reports that.
    """
    try:
        read = document.read(file.read_bytes(), file.name)
    except (OSError, ConfigError):
        return []
    twice = [problem for problem in read.problems if problem.rule == "duplicate-key"]
    found = [dataclasses.replace(problem, rule="") for problem in twice]
    for key in read.root.content:
        if key not in TOP_KEYS:
            hint = did_you_mean(key, TOP_KEYS)
            place = read.location((key,), key=True)
            found.append(Problem("unknown key", "", hint, (key,), place))
    return found


def _full(schema: Schema[Any], key: str) -> str:
    return key if ":" in key else f"{schema.namespace}:{key}"


def _is_encrypted(value: Any) -> bool:
    """Whether the engine would have to decrypt a part of the value: ``{secure: …}``."""
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(map(_is_encrypted, value.values()))
    return isinstance(value, list) and any(map(_is_encrypted, value))


def _with_text_keys(value: Any) -> Any:
    """The value as the engine passes it on, in JSON: keys are text."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(item) for key, item in value.items()}
    return [_with_text_keys(item) for item in value] if isinstance(value, list) else value


def _defaults(schema: Schema[Any], root: Path) -> dict[str, Any]:
    """Values that ``Pulumi.yaml`` gives to all stacks."""
    found: dict[str, Any] = {}
    if (root / project_files.PROJECT_FILE).is_file():
        for key, declared in _config(root / project_files.PROJECT_FILE).items():
            full = _full(schema, key)
            for word in ("value", "default"):
                if isinstance(declared, dict) and word in declared:
                    found[full] = declared[word]
    return found


def _config(file: Path) -> dict[str, Any]:
    """The ``config`` section of a file."""
    start = Location(file.name, 1, 1)
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        location = Location(file.name, mark.line + 1, mark.column + 1) if mark else start
        what = f"not YAML: {bad.problem or bad.context}"
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


def _text(value: Any) -> Any:
    """Scalars of the config reach a program as text: 123 is "123"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value
