"""``.vertex-training.json`` with the generated texts, and changes of these texts as git branches.

The manifest stores the texts, because an older release or git's history may not be available. A
branch has two commits: the first has the previously generated files, the second the new files.
``git cherry-pick BRANCH`` applies the difference to the edited files, and reports conflicts. Only
objects and one branch are written, and git runs no hooks and filters, so that a cloned repository
cannot redirect a write.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from localgcp.system.processes import git_command, git_variables
from localgcp.system.root_directory import RootDirectory, path_problem
from vertex_training.errors import CommandError, dotted
from vertex_training_cli.init.answers import Answers, GeneratedFile, Kind, render

NAME: Final = ".vertex-training.json"
#: Maximum size of a manifest, about twenty times the size with many environments.
_MOST_BYTES: Final = 8_000_000
_HINT: Final = f"restore {NAME} from the last commit with a valid file."


class FileEntry(pydantic.BaseModel):
    """The record of a generated file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    kind: Kind
    text: str | None = None
    """The generated text; None for a file whose changes are never merged."""


class Manifest(pydantic.BaseModel):
    """The record of the last ``vt init`` or ``vt upgrade``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    release: Annotated[str, Field(max_length=64)]
    answers: Answers
    left: tuple[str, ...] = ()
    """Paths of files that existed before ``vt init`` and are not generated."""
    files: dict[str, FileEntry]
    """Generated files by path."""

    def to_json(self) -> str:
        """Return the text of the file. Equal manifests have equal texts."""
        document = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.left:
            del document["left"]
        document["files"] = dict(sorted(document["files"].items()))
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def of_files(
    release: str, answers: Answers, files: Iterable[GeneratedFile], left: Collection[str] = ()
) -> Manifest:
    """Return the manifest of generated files, except files that were ``left`` as they were."""
    entries = {
        file.path: FileEntry(
            sha256=digest(file.text.encode()),
            kind=file.kind,
            text=file.text if file.kind is Kind.MERGED else None,
        )
        for file in files
        if file.path not in left
    }
    return Manifest(release=release, answers=answers, left=tuple(left), files=entries)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content in hex."""
    return hashlib.sha256(content).hexdigest()


def root_of(directory: Path) -> Path:
    """Return the top folder of the repository that contains ``directory``. Raises CommandError."""
    start = directory.absolute()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder
    what = f"{start} is not in a repository of `vt init`"
    why = f"neither this folder nor a folder above it has {NAME}"
    raise CommandError(f"{what}: {why}.", "create a repository by `vt init DIR`.")


def read(root: Path) -> Manifest:
    """Return the manifest in ``root``. Raises CommandError if it is missing or damaged."""
    try:
        content = RootDirectory(root).read(NAME)
    except OSError as error:
        raise CommandError(f"{NAME}: {error.strerror}.") from None
    if content is None:
        what = f"{root} has no {NAME}, so it is not a repository of `vt init`"
        raise CommandError(f"{what}.", "create a repository by `vt init DIR`.")
    if len(content) > _MOST_BYTES:
        what = f"{NAME} has {len(content):,} bytes, but the limit is {_MOST_BYTES:,}."
        raise CommandError(what, _HINT)
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
        if entry.text is not None and digest(entry.text.encode()) != entry.sha256:
            raise CommandError(f"{NAME}: the text of {path} does not match its sha256.", _HINT)
    return manifest


#: Author of the commits, instead of the user.
_IDENTITY: Final = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "vt"), ("EMAIL", "vt@localhost"))
}
#: Variables that prevent git from fetching missing objects of a partial clone. A setting of git can
#: run any program for a fetch.
_OFFLINE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a file."""

    path: str
    old: str | None
    """The previously generated text; None for a new file, and for a file as in HEAD."""
    new: str | None
    """The new text; None for a removed file."""
    is_new: bool = False
    executable: bool = False


def compare(old: Manifest, answers: Answers, release: str) -> tuple[list[FileChange], Manifest]:
    """Return the changes from the files of ``old`` to those of ``answers``, and their manifest."""
    known = render(old.answers, release)
    # Samples, stack files and jobs are written only with a new repository or environment.
    files = {
        path: file
        for path, file in render(answers, release).items()
        if path not in old.left
        and (file.kind is not Kind.ONCE or path in old.files or path not in known)
    }
    changes: list[FileChange] = []
    for path, file in files.items():
        entry = old.files.get(path)
        if entry is None:
            changes.append(FileChange(path, None, file.text, True, file.executable))
        elif file.kind is not Kind.ONCE and entry.sha256 != digest(file.text.encode()):
            changes.append(FileChange(path, entry.text, file.text, False, file.executable))
    for path in sorted(set(old.files) - set(files) - set(old.left)):
        if old.files[path].kind is not Kind.ONCE:
            changes.append(FileChange(path, old.files[path].text, None))
    new = of_files(release, answers, files.values(), old.left)
    # Files that are written only once keep their entries.
    new.files.update((p, entry) for p, entry in old.files.items() if entry.kind is Kind.ONCE)
    return changes, new


def create_branch(root: Path, branch: str, changes: list[FileChange], manifest: Manifest) -> None:
    """Create ``branch`` with the change, on top of HEAD. Raises CommandError."""
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True)
    if not head:
        hint = "run `git init && git add -A && git commit`."
        raise CommandError(f"{root} has no commit.", hint)
    if _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", may_fail=True):
        hint = f"delete the branch by `git branch -D {branch}`."
        raise CommandError(f"branch {branch} already exists.", hint)
    prefix, none = _git(root, "rev-parse", "--show-prefix"), "0" * len(head)
    before = [dataclasses.replace(f, new=f.old) for f in changes if f.is_new or f.old is not None]
    after = [*changes, FileChange(NAME, None, manifest.to_json())]
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        _git(root, "read-tree", head, env=index)
        commit = head
        for files, message in ((before, "Previously generated files"), (after, branch)):
            lines = "".join(_entries(root, files, prefix, none))
            _git(root, "update-index", "--add", "--replace", "-z", "--index-info",
                 env=index, stdin=lines.encode())  # fmt: skip
            tree = _git(root, "write-tree", env=index)
            commit = _git(root, "commit-tree", tree, "-p", commit, "-m", message, env=_IDENTITY)
    _git(root, "update-ref", f"refs/heads/{branch}", commit, none)


def _entries(root: Path, files: list[FileChange], prefix: str, none: str) -> Iterator[str]:
    """Yield entries of ``git update-index -z --index-info``; ``none`` is the null object id."""
    for file in files:
        if file.new is None:
            yield f"0 {none}\t{prefix}{file.path}\0"
        else:
            blob = _git(root, "hash-object", "-w", "--stdin", stdin=file.new.encode())
            mode = "100755" if file.executable else "100644"
            yield f"{mode} {blob}\t{prefix}{file.path}\0"


def _git(
    root: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    may_fail: bool = False,
) -> str:
    """Return the output of git; with ``may_fail``, empty after a failure without a message."""
    try:
        done = subprocess.run(
            git_command(root, *arguments), input=stdin, capture_output=True, check=False,
            env={**git_variables(), **_OFFLINE, **(env or {}), "LC_ALL": "C"}, cwd=os.sep,
        )  # fmt: skip
    except FileNotFoundError:
        hint = "install git, which merges the changes of an upgrade."
        raise CommandError("git is not installed.", hint) from None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode and (lines or not may_fail):
        what = f"`git {arguments[0]}` failed in {root}: {(lines or ['no message'])[0]}"
        raise CommandError(what, "fix the cause, then run the command again.")
    return "" if done.returncode else done.stdout.decode().strip()
