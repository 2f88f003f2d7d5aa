"""Read an environment's config and report every mistake at once, each with its location."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from vertex_training import engine, naming
from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.foundation.settings import Settings
from vertex_training.settings import project_files, reader, stack_files
from vertex_training.settings.reader import Schema

SCHEMA: Final = Schema("vertex-training-bootstrap", Settings)


def read(folder: Path) -> Settings:
    """Return the current environment's settings; ``folder`` holds its file.

    Raises:
        ConfigError: with every mistake found.
    """
    try:
        return parse(engine.read_config(SCHEMA, folder))
    except ConfigError as failed:
        raise ConfigError(stack_files.locate(failed.problems, folder)) from None


def parse(raw: Mapping[str, Any]) -> Settings:
    """Validate a config that the engine has parsed; see :func:`read`.

    Raises:
        ConfigError: with every mistake found.
    """
    settings = reader.parse(SCHEMA, raw)
    location = Location(project_files.file_name(settings.stack))
    problems = [
        Problem(problem, value, path=SCHEMA.full_path(("labels", key)), location=location)
        for key, value in settings.labels.items()
        if (problem := naming.label_problem(key, value))
    ]
    if problems:
        raise ConfigError(problems)
    return settings
