"""Completion in a shell: names of stacks and of their entries, from the stack files.

Completion must be fast and must not fail: unreadable files are skipped, and no cloud is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, get_type_hints

import typer
from typer.models import ParameterInfo

from vertex_training.errors import ConfigError, UnknownStackError
from vertex_training.located_yaml import document
from vertex_training.settings import project_files
from vertex_training_cli.engine.paths import root_of

#: Environment variable that a shell sets for a completion.
VARIABLE: Final = "_VT_COMPLETE"
#: Sections of the stack file with the possible values of parameters.
SECTIONS: Final[Mapping[str, str]] = {
    "job": "jobs",
    "names": "images",
    "model": "models",
    "endpoint": "endpoints",
}
#: Parameters whose values are names of stacks.
STACKS: Final = ("stack", "stacks", "one", "other", "source", "target")


def is_asked_for() -> bool:
    """Return True if a shell started this process to complete a line."""
    return VARIABLE in os.environ


def give_names(callback: Callable[..., Any]) -> None:
    """Add completion to the name parameters of a command."""
    hints = get_type_hints(callback, include_extras=True)
    callback.__annotations__ = hints  # Typer would evaluate the annotations again.
    for name, hint in hints.items():
        for info in getattr(hint, "__metadata__", ()):
            if not isinstance(info, ParameterInfo):
                continue
            if name in STACKS and "Path" not in str(hint.__origin__):
                info.autocompletion = _completer("")
            elif name in SECTIONS:
                info.autocompletion = _completer(SECTIONS[name])


def _completer(section: str) -> Callable[..., list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        values = (ctx.params.get(name) for name in ("stack", "source"))
        default = os.environ.get("PULUMI_STACK") or "local"
        stack = next((value for value in values if value and isinstance(value, str)), default)
        names = keys(Path.cwd(), stack, section) if section else stacks(Path.cwd())
        return [name for name in names if name.startswith(incomplete)]

    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str}
    return complete


def stacks(start: Path) -> list[str]:
    """Return the names of the stacks of the project that contains ``start``."""
    root = root_of(start)
    return project_files.names(root) if root else []


def keys(start: Path, stack: str, section: str) -> list[str]:
    """Return the keys of a section of a stack file; empty if the file cannot be read."""
    root = root_of(start)
    if root is None:
        return []
    try:
        data = project_files.file_of(root, stack).read_bytes()
        content = document.parse(data, stack).root
    except (OSError, UnknownStackError, ConfigError):
        return []
    for key in ("config", f"vertex-training:{section}"):
        inner = content.content
        if not isinstance(inner, dict) or key not in inner:
            return []
        content = inner[key]
    return list(map(str, content.content)) if isinstance(content.content, dict) else []
