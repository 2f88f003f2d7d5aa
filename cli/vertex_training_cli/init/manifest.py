"""``.vertex-training.json``: release, answers, and the generated text of every file.

The texts are the base of the next merge. They are stored here, because an older release or git's
history may not be available.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from localgcp.system.root_directory import RootDirectory, path_problem
from vertex_training.errors import CommandError, dotted
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.rendering import GeneratedFile, Kind

NAME: Final = ".vertex-training.json"
#: Limit of a manifest, about twenty times the size with many environments.
_MOST_BYTES: Final = 8_000_000
_HINT: Final = f"restore {NAME} from the last commit with a valid file."


class FileEntry(pydantic.BaseModel):
    """Record of one generated file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    kind: Kind
    text: str | None = None
    """Generated text; None for files that are never merged."""


class Manifest(pydantic.BaseModel):
    """Record of the last ``vt init`` or ``vt upgrade``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    release: Annotated[str, Field(max_length=64)]
    answers: Answers
    left: tuple[str, ...] = ()
    """Files that existed before ``vt init`` and are not generated."""
    files: dict[str, FileEntry]
    """Generated files by path."""

    def leaving(self, path: str) -> Manifest:
        """Return a copy that lists a file in ``left`` because it is not generated any more."""
        files = {name: entry for name, entry in self.files.items() if name != path}
        return self.model_copy(update={"files": files, "left": (*self.left, path)})

    def after(self, old: Manifest) -> Manifest:
        """Return a copy with the entries of ``old`` for files that are written only once."""
        once = {path: entry for path, entry in old.files.items() if entry.kind is Kind.ONCE}
        return self.model_copy(update={"files": {**self.files, **once}, "left": old.left})

    def to_json(self) -> str:
        """Return the file's text. Equal manifests give equal texts."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.left:
            del document["left"]
        document["files"] = dict(sorted(document["files"].items()))
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def of_files(release: str, answers: Answers, files: Iterable[GeneratedFile]) -> Manifest:
    """Return the manifest of rendered files."""
    entries = {
        file.path: FileEntry(
            sha256=digest(file.text.encode()),
            kind=file.kind,
            text=file.text if file.kind is Kind.MERGED else None,
        )
        for file in files
    }
    return Manifest(release=release, answers=answers, files=entries)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content in hex."""
    return hashlib.sha256(content).hexdigest()


def root_of(directory: Path) -> Path:
    """Return the top of the repository around ``directory``.

    Raises:
        CommandError: no repository of ``vt init`` exists.
    """
    start = directory.absolute()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    what = f"no {NAME} in {start} or above, so this is not a repository of `vt init`"
    raise CommandError(f"{what}.", "create a repository by `vt init DIR`.")


def read(root: Path) -> Manifest:
    """Return the manifest in ``root``.

    Raises:
        CommandError: the manifest does not exist, or is damaged.
    """
    try:
        content = RootDirectory(root).read(NAME)
    except OSError as error:
        raise CommandError(f"{NAME}: {error.strerror}.") from None
    if content is None:
        what = f"{root} has no {NAME}, so it is not a repository of `vt init`"
        raise CommandError(f"{what}.", "create a repository by `vt init DIR`.")
    if len(content) > _MOST_BYTES:
        raise CommandError(
            f"{NAME} has {len(content):,} bytes, the limit is {_MOST_BYTES:,}.", _HINT
        )
    try:
        manifest = Manifest.model_validate_json(content)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        what = f"{dotted(first['loc'])}: {first['msg'].removeprefix('Value error, ')}"
        what += f" (got {first['input'][:60]})" if isinstance(first["input"], str) else ""
        what = what.removeprefix(": ")
        raise CommandError(f"{NAME} is damaged: {what}.", _HINT) from None
    for path, entry in manifest.files.items():
        if path_problem(path, refuse_git=True):
            raise CommandError(f"{NAME}: {path!r} is not a path in this repository.", _HINT)
        if entry.text is not None and digest(entry.text.encode()) != entry.sha256:  # a merge
            raise CommandError(f"{NAME}: the digest of the text of {path} is wrong.", _HINT)
    return manifest
