"""Which stacks a project has: the names of its files. Loads nothing, so commands may ask first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from vertex_training.errors import UnknownStackError

PROJECT_FILE: Final = "Pulumi.yaml"
#: What is said of a project whose stack files are in another folder.
ELSEWHERE: Final = f"stackConfigDir of {PROJECT_FILE}: only stack files beside it are read here"
MEND: Final = f"Put them beside {PROJECT_FILE}, and remove it."
_NAME: Final = re.compile(r"^name\s*:\s*[\"']?([\w.-]+)", re.MULTILINE)
_REFRESH: Final = re.compile(
    r"^options\s*:(?:.*\n\s)*?.*\brefresh\s*:\s*[\"']?always", re.MULTILINE
)
#: A folder of stack files: https://www.pulumi.com/docs/iac/concepts/projects/project-file/
_STACKS: Final = re.compile(r"^stackConfigDir[ \t]*:([^#\n]*)", re.MULTILINE)


def project_name(root: Path) -> str:
    """Name of the Pulumi project in ``root``; empty if it has none, or its file cannot be read."""
    return _found(_NAME, root)


def stack_folder(root: Path) -> str:
    """Where the engine reads stack files, if that is not beside ``Pulumi.yaml``; else empty."""
    folder = _found(_STACKS, root).strip(" \t\r\"'")
    return "" if folder in (".", "./") else folder


def _found(pattern: re.Pattern[str], root: Path) -> str:
    """What the group of a pattern finds in the project's file; empty if nothing."""
    found = pattern.search(_text(root))
    return found[1] if found else ""


def _text(root: Path) -> str:
    """The project's file; empty if it cannot be read."""
    try:
        return (root / PROJECT_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def refreshes(root: Path) -> bool:
    """Whether ``options`` of the project let every preview and deployment refresh first."""
    return bool(_REFRESH.search(_text(root)))


def file_name(stack: str) -> str:
    """Name of a stack's file."""
    return f"Pulumi.{stack}.yaml"


def names(root: Path) -> list[str]:
    """Stacks that have a file in ``root``; a pipe of that name, which nobody may open, is none."""
    files = (file.name for file in root.glob(file_name("*")) if file.is_file())
    return sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in files)


def file_of(root: Path, stack: str) -> Path:
    """The file of ``stack``. A name like ``../x`` names no file.

    Raises:
        UnknownStackError: ``root`` has no such file, or the engine reads another.
    """
    if elsewhere := stack_folder(root):
        raise UnknownStackError(f"{ELSEWHERE} (got {elsewhere[:80]}). {MEND}")
    known = names(root)
    if stack not in known:
        listed = ", ".join(known) or "none"
        raise UnknownStackError(f"no file {file_name(stack)} in {root} (stacks here: {listed})")
    return root / file_name(stack)
