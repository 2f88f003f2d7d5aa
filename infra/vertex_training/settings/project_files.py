"""The stacks of a project: the names of its files. Imports little, so that commands start fast."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import Final

from vertex_training.errors import Problem, UnknownStackError

PROJECT_FILE: Final = "Pulumi.yaml"
#: The engine reads it in place of the other (sdk/go/common/encoding: JSON comes first).
READ_FIRST: Final = "Pulumi.json"
_NAME: Final = re.compile(r"^name\s*:\s*[\"']?([\w.-]+)", re.MULTILINE)
_REFRESH: Final = re.compile(
    r"^options\s*:(?:.*\n\s)*?.*\brefresh\s*:\s*[\"']?always", re.MULTILINE
)
#: Names a folder of stack files: https://www.pulumi.com/docs/iac/concepts/projects/project-file/
_STACKS: Final = "stackConfigDir"


def project_name(root: Path) -> str:
    """Name of the Pulumi project in ``root``; empty if it has none, or its file cannot be read."""
    return _found(_NAME, root)


def refusal(root: Path, stack: str) -> Problem | None:
    """Return why the file of ``stack`` is not read: it is a link out, or not the engine's."""
    if (root / READ_FIRST).exists():
        what = f"the engine reads it, and here {PROJECT_FILE} is read"
        return Problem(what, "", "keep one of them, as YAML", (READ_FIRST,))
    try:
        folder = _stack_folder(root)
    except ValueError as error:
        what = "cannot be read here, so that it is not known where the engine reads stack files"
        return Problem(what, str(error), "write it in plain YAML, without tags", (PROJECT_FILE,))
    if folder:
        what = f"only stack files beside {PROJECT_FILE} are read here"
        hint = f"put them beside {PROJECT_FILE}, and remove it"
        return Problem(what, folder, hint, (f"{_STACKS} of {PROJECT_FILE}",))
    name = file_name(stack)
    if (root / name).is_symlink() and leaves(root, root / name):
        what = f"is a link out of the folder of {PROJECT_FILE}"
        return Problem(what, "", "copy what it leads to", (name,))
    return None


def leaves(folder: Path, link: Path) -> bool:
    """Return whether a link leads out of ``folder``, or to git's own files."""
    top, target = Path(os.path.realpath(folder)), Path(os.path.realpath(link))
    return not target.is_relative_to(top) or is_of_git(target.relative_to(top))


def is_of_git(path: Path) -> bool:
    """Return whether a path from the checkout's top leads to git's own files (may have a token)."""
    return any(map(_is_gits, path.parts))


def _is_gits(name: str) -> bool:
    """Return whether git uses this name for its own files, on any file system of a checkout.

    The rule of ``localgcp.system.root_directory.is_gits``; a test holds both equal.
    """
    seen = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return seen.partition(":")[0].rstrip(". ").casefold() in (".git", "git~1")


def _stack_folder(root: Path) -> str | None:
    """Return the engine's folder of stack files, if it is not that of ``Pulumi.yaml``.

    A ``config`` that is text was the key's name before.

    Raises:
        ValueError: the file may name one, and is not read here; with what the parser says.
    """
    import yaml

    from vertex_training.located_yaml.values import Loader

    text = _text(root)
    try:
        content = yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, ValueError) as error:
        if _STACKS not in text:
            return None  # who reads the file reports it
        raise ValueError(str(error).strip().partition("\n")[0]) from None
    found = content.get(_STACKS, content.get("config")) if isinstance(content, dict) else None
    folder = found.strip() if isinstance(found, str) else ""
    return None if os.path.normpath(folder) == "." else folder


def _found(pattern: re.Pattern[str], root: Path) -> str:
    """Return the group of a pattern that matches the project's file; empty without a match."""
    match = pattern.search(_text(root))
    return match[1] if match else ""


def _text(root: Path) -> str:
    """The project's file; empty if it cannot be read."""
    try:
        return (root / PROJECT_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def refreshes(root: Path) -> bool:
    """Return whether ``options`` of the project refresh before every preview and deployment."""
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
        UnknownStackError: ``root`` has no such file, the engine reads another, or it is a link out.
    """
    if refused := refusal(root, stack):
        raise UnknownStackError(str(refused))
    known = names(root)
    if stack not in known:
        listed = ", ".join(known) or "none"
        raise UnknownStackError(f"no file {file_name(stack)} in {root} (stacks here: {listed})")
    return root / file_name(stack)
