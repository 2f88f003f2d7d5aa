"""``.vertex-training.json``: release, answers, and the text of every file as it was written.

The texts are the base of the next merge. They are kept here, and not looked up in an older release
or in git's history: neither is certain to be there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from localgcp.root_directory import RootDirectory, path_problem
from vertex_training.errors import CommandError, ConfigError
from vertex_training_cli.init import answers as answers_
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.rendering import GeneratedFile, Kind

NAME: Final = ".vertex-training.json"
#: The largest manifest that is read: some twenty times that of many environments.
_MOST_BYTES: Final = 8_000_000
_HINT: Final = f"take {NAME} back from the last commit in which it was in order"


class _Entry(pydantic.BaseModel):
    """A file as it was written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    kind: Kind
    text: str | None = None
    """None for files that are never merged."""


class _Document(pydantic.BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1]
    release: Annotated[str, Field(max_length=64)]
    answers: dict[str, Any]
    left: list[str] = []
    files: dict[str, _Entry]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What ``vt init`` or ``vt upgrade`` wrote last."""

    release: str
    answers: Answers
    digests: Mapping[str, str]
    """SHA-256 of every file as it was written, by path."""
    kinds: Mapping[str, Kind]
    texts: Mapping[str, str]
    """The texts of those that are merged."""
    left: tuple[str, ...] = ()
    """Files that were there before ``vt init``, and are none of ours."""

    def leaving(self, path: str) -> Manifest:
        """The same, without a file that is not ours."""
        digests = {name: each for name, each in self.digests.items() if name != path}
        texts = {name: each for name, each in self.texts.items() if name != path}
        left = (*self.left, path)
        return dataclasses.replace(self, digests=digests, texts=texts, left=left)

    def after(self, old: Manifest) -> Manifest:
        """This manifest after ``old``: files that are written once stay recorded as they were."""
        once = {path: each for path, each in old.digests.items() if old.kinds[path] is Kind.ONCE}
        kinds = {**self.kinds, **dict.fromkeys(once, Kind.ONCE)}
        texts = {path: text for path, text in self.texts.items() if path not in once}
        digests = {**self.digests, **once}
        return dataclasses.replace(self, digests=digests, kinds=kinds, texts=texts, left=old.left)

    def to_json(self) -> str:
        """The file's text. Equal manifests give equal texts."""
        files = {
            path: {"sha256": digest, "kind": str(self.kinds[path])}
            | ({"text": self.texts[path]} if path in self.texts else {})
            for path, digest in sorted(self.digests.items())
        }
        document = {
            "format": 1,
            "release": self.release,
            "answers": self.answers.model_dump(by_alias=True),
            **({"left": list(self.left)} if self.left else {}),
            "files": files,
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def of_files(release: str, given: Answers, files: Iterable[GeneratedFile]) -> Manifest:
    """The manifest of files as templates render them."""
    found = list(files)
    texts = {file.path: file.text for file in found if file.kind is Kind.MERGED}
    digests = {file.path: digest(file.text.encode()) for file in found}
    return Manifest(release, given, digests, {file.path: file.kind for file in found}, texts)


def digest(content: bytes) -> str:
    """SHA-256, in hex."""
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
    """The manifest in ``root``.

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
        document = _Document.model_validate_json(content)
        given = answers_.parse(document.answers)
    except pydantic.ValidationError as wrong:
        raise CommandError(f"{NAME} is not what `vt` wrote: {_mistake(wrong)}.", _HINT) from None
    except ConfigError as wrong:
        first = re.sub(r"\s+", " ", str(wrong))[:200]
        raise CommandError(f"{NAME} is not what `vt` wrote: {first}", _HINT) from None
    _ensure_whole(document)
    digests = {path: entry.sha256 for path, entry in document.files.items()}
    texts = {p: entry.text for p, entry in document.files.items() if entry.text is not None}
    kinds = {path: entry.kind for path, entry in document.files.items()}
    return Manifest(document.release, given, digests, kinds, texts, tuple(document.left))


def _mistake(wrong: pydantic.ValidationError) -> str:
    """Return where the first mistake is, and the value there."""
    error = wrong.errors()[0]
    place = ".".join(map(str, error["loc"])) or "the document"
    words = {"missing": "is missing", "extra_forbidden": "is unknown", "json_invalid": "is no JSON"}
    value = repr(error["input"])[:80]
    return f"{place} {words.get(error['type'], f'cannot be {value}')}"


def _ensure_whole(document: _Document) -> None:
    """Refuse texts that a merge of branches changed, and paths that lead out of the repository."""
    for path, entry in document.files.items():
        if path_problem(path, refuse_git=True):
            raise CommandError(f"{NAME}: {path!r} is no file of this repository.", _HINT)
        if entry.text is not None and digest(entry.text.encode()) != entry.sha256:
            raise CommandError(f"{NAME}: the text of {path} has another digest.", _HINT)
