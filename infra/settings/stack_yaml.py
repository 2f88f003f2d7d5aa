"""A stack's config read from its files, with no engine: for tools that judge and render jobs.

What the engine does with the two files is done here for our keys: ``Pulumi.<stack>.yaml`` wins
over the defaults in ``Pulumi.yaml``, whole values at a time. Encrypted values cannot be read
without the engine's key; none of the keys that are read here is one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from infra.errors import ConfigError, Problem
from infra.located_yaml.loader import Loader
from infra.settings import locations as stack_places
from infra.settings import project_files as stack_names
from infra.settings import stack_file
from infra.settings.model import Settings

PROJECT_FILE = "Pulumi.yaml"


def read(root: Path, stack: str) -> Settings:
    """Read and check the config of ``stack`` from its file in ``root``.

    Raises:
        stack_names.NoSuchStack: ``root`` has no such file.
        ConfigError: with every mistake found, at its line and column.
    """
    config = _defaults(root) | _config(stack_names.file_of(root, stack))
    raw: dict[str, Any] = {"stack": stack}
    for full, value in config.items():
        namespace, _, key = full.partition(":")
        if namespace == "gcp" and key in stack_file.FROM_PROVIDER:
            raw[key] = _text(value)
        elif namespace == stack_file.NAMESPACE:
            is_text = key in stack_file.FIELDS and stack_file.FIELDS[key].annotation is str
            raw[key] = _text(value) if is_text else value
    try:
        return stack_file.parse(raw, root)
    except ConfigError as failed:
        raise ConfigError(stack_places.locate(failed.problems, root)) from None


def _defaults(root: Path) -> dict[str, Any]:
    """Values that ``Pulumi.yaml`` gives to all stacks."""
    found: dict[str, Any] = {}
    if (root / PROJECT_FILE).is_file():
        for key, declared in _config(root / PROJECT_FILE).items():
            full = key if ":" in key else f"{stack_file.NAMESPACE}:{key}"
            for word in ("value", "default"):
                if isinstance(declared, dict) and word in declared:
                    found[full] = declared[word]
    return found


def _config(file: Path) -> dict[str, Any]:
    """The ``config`` section of a file."""
    try:
        content = yaml.load(file.read_bytes(), Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        place = f"{file.name}:{mark.line + 1}:{mark.column + 1}" if mark else f"{file.name}:1:1"
        raise ConfigError([Problem(place, f"not YAML: {bad.problem or bad.context}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as bad:
        reason = str(bad).splitlines()[0]
        raise ConfigError([Problem(f"{file.name}:1:1", f"not YAML: {reason}")]) from None
    config = content.get("config") if isinstance(content, dict) else None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise ConfigError([Problem(f"{file.name}:1:1", "config must be a mapping")])
    return {str(key): value for key, value in config.items()}


def _text(value: Any) -> Any:
    """Scalars of the config reach a program as text: 123 is "123"."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value
