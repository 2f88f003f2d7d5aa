"""Files of a Pulumi project: ``Pulumi.yaml`` and stack files. Few imports, for a fast start."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import Final

from vertex_training.errors import Problem, UnknownStackError

PROJECT_FILE: Final = "Pulumi.yaml"
#: File that the engine prefers to ``Pulumi.yaml`` (sdk/go/common/encoding: JSON comes first).
READ_FIRST: Final = "Pulumi.json"
_NAME: Final = re.compile(r"^name\s*:\s*[\"']?([\w.-]+)", re.MULTILINE)
_REFRESH: Final = re.compile(
    r"^options\s*:(?:.*\n\s)*?.*\brefresh\s*:\s*[\"']?always", re.MULTILINE
)
#: Key of the folder of stack files: https://www.pulumi.com/docs/iac/concepts/projects/project-file/
_STACKS: Final = "stackConfigDir"


def project_name(root: Path) -> str:
    """Return the name of the Pulumi project in ``root``; empty without a readable file."""
    match = _NAME.search(_text(root))
    return match[1] if match else ""


def refusal(root: Path, stack: str) -> Problem | None:
    """Return a problem if the engine would read another file, or a file out of the checkout."""
    if (root / READ_FIRST).exists():
        what = f"the engine reads {READ_FIRST} instead of {PROJECT_FILE}"
        return Problem(what, "", f"remove {READ_FIRST}", (READ_FIRST,))
    try:
        folder = _stack_folder(root)
    except ValueError as error:
        what = f"{PROJECT_FILE} cannot be parsed: the folder of stack files is unknown"
        return Problem(what, str(error), "write plain YAML without tags", (PROJECT_FILE,))
    if folder:
        what = f"stack files must be beside {PROJECT_FILE}"
        hint = f"move the stack files beside {PROJECT_FILE}, and remove {_STACKS}"
        return Problem(what, folder, hint, (f"{_STACKS} of {PROJECT_FILE}",))
    name = file_name(stack)
    if (root / name).is_symlink() and leaves(root, root / name):
        what = f"the stack file is a symbolic link out of the folder of {PROJECT_FILE}"
        return Problem(what, "", "replace the link by a copy of its target", (name,))
    return None


def leaves(folder: Path, link: Path) -> bool:
    """Return True if a link points out of ``folder``, or to files of git."""
    top, target = Path(os.path.realpath(folder)), Path(os.path.realpath(link))
    return not target.is_relative_to(top) or is_of_git(target.relative_to(top))


def is_of_git(path: Path) -> bool:
    """Return True if a relative path leads to files of git, which may contain a token."""
    return any(map(_is_gits, path.parts))


def _is_gits(name: str) -> bool:
    """Return True for a name of git's own files, as ``localgcp.system`` defines them."""
    seen = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return seen.partition(":")[0].rstrip(". ").casefold() in (".git", "git~1")


def _stack_folder(root: Path) -> str | None:
    """Return the folder of stack files in ``Pulumi.yaml``; None for its own folder."""
    import yaml

    from vertex_training.located_yaml.values import Loader

    text = _text(root)
    try:
        content = yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, ValueError) as error:
        if _STACKS not in text:
            return None  # the reader of the file reports this error
        raise ValueError(str(error).strip().partition("\n")[0]) from None
    # Earlier engines named this key `config`, with a text as its value.
    value = content.get(_STACKS, content.get("config")) if isinstance(content, dict) else None
    folder = value.strip() if isinstance(value, str) else ""
    return None if os.path.normpath(folder) == "." else folder


def _text(root: Path) -> str:
    try:
        return (root / PROJECT_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def refreshes(root: Path) -> bool:
    """Return True if the project's ``options`` set ``refresh: always``."""
    return bool(_REFRESH.search(_text(root)))


def file_name(stack: str) -> str:
    return f"Pulumi.{stack}.yaml"


def names(root: Path) -> list[str]:
    """Return the stacks with a regular file in ``root``."""
    files = (file.name for file in root.glob(file_name("*")) if file.is_file())
    return sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in files)


def file_of(root: Path, stack: str) -> Path:
    """Return the file of ``stack``. Raises UnknownStackError, also for a name like ``../x``."""
    if refused := refusal(root, stack):
        raise UnknownStackError(str(refused))
    known = names(root)
    if stack not in known:
        listed = ", ".join(known) or "none"
        raise UnknownStackError(f"no file {file_name(stack)} in {root} (existing stacks: {listed})")
    return root / file_name(stack)
