"""The ``config`` section of a stack file, of ``Pulumi.yaml`` and of an included file. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.located_yaml.loader import Loader


def read_config(file: Path, shown: str = "") -> dict[str, Any]:
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
        mark = bad.problem_mark or bad.context_mark
        location = Location(name, mark.line + 1, mark.column + 1) if mark else start
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
