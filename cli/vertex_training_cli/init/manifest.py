"""``.vertex-training.json``: release, answers, and the text of every file as it was written.

The texts are the base of the next merge. They are kept here, and not looked up in an older release
or in git's history: neither is certain to be there.
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
#: The largest manifest that is read: some twenty times that of many environments.
_MOST_BYTES: Final = 8_000_000
_HINT: Final = f"take {NAME} back from the last commit in which it was in order"


class FileEntry(pydantic.BaseModel):
    """The record of one file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    kind: Kind
    text: str | None = None
    """None for files that are never merged."""


class Manifest(pydantic.BaseModel):
    """Record of the last ``vt init`` or ``vt upgrade``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    release: Annotated[str, Field(max_length=64)]
    answers: Answers
    left: tuple[str, ...] = ()
    """Files that were there before ``vt init``, and are none of ours."""
    files: dict[str, FileEntry]
    """By path."""

    def leaving(self, path: str) -> Manifest:
        """Return the same without a file that is not ours."""
        files = {name: entry for name, entry in self.files.items() if name != path}
        return self.model_copy(update={"files": files, "left": (*self.left, path)})

    def after(self, old: Manifest) -> Manifest:
        """Return this one after ``old``: files that are written once stay recorded as they were."""
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
    """Return the manifest of files as templates render them."""
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
    """Return the SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


def root_of(directory: Path) -> Path:
    """Return the top of the repository around ``directory``.

    Raises:
        CommandError: there is none that ``vt init`` made.
    """
    start = directory.absolute()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    what = f"no {NAME} in {start} or above: `vt init` did not make this"
    raise CommandError(f"{what}.", "`vt init DIR` makes a new repository")


def read(root: Path) -> Manifest:
    """Return the manifest in ``root``.

    Raises:
        CommandError: there is none, or it is not what was written.
    """
    try:
        content = RootDirectory(root).read(NAME)
    except OSError as error:
        raise CommandError(f"{NAME}: {error.strerror}.") from None
    if content is None:
        what = f"{root} has no {NAME}: `vt init` did not make it"
        raise CommandError(f"{what}.", "`vt init DIR` makes a new repository")
    if len(content) > _MOST_BYTES:
        raise CommandError(f"{NAME} has {len(content):,} bytes.", _HINT)
    try:
        manifest = Manifest.model_validate_json(content)
    except pydantic.ValidationError as wrong:
        first = wrong.errors()[0]
        what = f"{dotted(first['loc'])}: {first['msg'].removeprefix('Value error, ')}"
        what += f" (got {first['input'][:60]})" if isinstance(first["input"], str) else ""
        what = what.removeprefix(": ")
        raise CommandError(f"{NAME} is not what `vt` wrote: {what}.", _HINT) from None
    for path, entry in manifest.files.items():
        if path_problem(path, refuse_git=True):
            raise CommandError(f"{NAME}: {path!r} is no file of this repository.", _HINT)
        if entry.text is not None and digest(entry.text.encode()) != entry.sha256:  # a merge
            raise CommandError(f"{NAME}: the text of {path} has another digest.", _HINT)
    return manifest
