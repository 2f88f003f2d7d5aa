"""What a command would change in a repository: merged by git, as a diff, then written."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vertex_training.errors import CommandError
from vertex_training_cli.init import manifest as manifests
from vertex_training_cli.init import staging
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.manifest import Manifest, digest
from vertex_training_cli.init.rendering import GeneratedFile, Kind, render
from vertex_training_cli.init.staging import FileChange

#: Ends the name of a file beside another one, with what could not be merged.
UNMERGED: Final = ".merge"
#: Files that a new repository may have already, and that get our lines at their end.
EXTENDED: Final = (".gitignore", ".gitattributes")
#: Files that stay as they are if they are there before us.
LEFT: Final = ("README.md",)


@dataclass(slots=True)
class ChangeSet:
    """Changes of files, the manifest that goes with them, and what to say of them."""

    root: Path
    manifest: Manifest
    changes: list[FileChange] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    """Paths of files that both sides changed at the same place."""
    remarks: list[str] = field(default_factory=list)

    def diff(self) -> Iterator[str]:
        """A unified diff, file by file."""
        for change in self.changes:
            old, new = _lines(change.before), _lines(change.after)
            names = ("/dev/null" if change.before is None else change.path,
                     "/dev/null" if change.after is None else change.path)  # fmt: skip
            yield from difflib.unified_diff(old, new, *names)

    def write(self) -> None:
        """Write the files and the manifest: all of it or nothing.

        Raises:
            CommandError: a file is no longer what the diff showed, or cannot be written.
        """
        text = self.manifest.to_json().encode()
        before = staging.content(self.root, manifests.NAME)
        last = [] if before == text else [FileChange(manifests.NAME, before, text)]
        if self.changes or last:
            staging.write(self.root, [*self.changes, *last])


def begin(root: Path, answers: Answers, release: str) -> ChangeSet:
    """The files of a new repository.

    Raises:
        CommandError: some of them are there, and hold something else.
    """
    files = render(answers, release)
    made = ChangeSet(root, manifests.of_files(release, answers, files.values()))
    taken: list[str] = []
    for path, file in files.items():
        here, text = staging.content(root, path), file.text.encode()
        if here is None:
            made.changes.append(FileChange(path, None, text, file.executable))
        elif path in EXTENDED and text not in here:
            made.changes.append(FileChange(path, here, _joined(here, text)))
            made.remarks.append(f"{path} was there: our lines are at its end")
        elif path in LEFT and here != text:
            made.manifest = made.manifest.leaving(path)
            made.remarks.append(f"{path} was there, and stays as it is")
        elif here != text and path not in EXTENDED:
            taken.append(path)
    if taken:
        listed = ", ".join(taken)
        raise CommandError(
            f"{root} has files that would be overwritten: {listed}. Nothing is written.",
            "choose another folder, or move them away",
        )
    return made


def update(root: Path, old: Manifest, answers: Answers, release: str) -> ChangeSet:
    """From the files as ``old`` has them to those of ``answers`` in ``release``.

    Raises:
        CommandError: an earlier merge is not finished.
    """
    known = render(old.answers, release)
    files = {
        path: file
        for path, file in render(answers, release).items()
        # A sample that a newer release has is none of this repository's.
        if path not in old.left
        and (file.kind is not Kind.ONCE or path in old.digests or path not in known)
    }
    _ensure_merged(root, [*files, *old.digests])
    made = ChangeSet(root, manifests.of_files(release, answers, files.values()).after(old))
    for path, file in files.items():
        if path in old.digests:
            _update_file(made, old, file, release)
        else:
            _add_file(made, file)
    for path in sorted(set(old.digests) - set(files) - set(old.left)):
        if old.kinds[path] is not Kind.ONCE:
            _remove_file(made, path, old.digests)
    return made


def _add_file(made: ChangeSet, file: GeneratedFile) -> None:
    here, text = staging.content(made.root, file.path), file.text.encode()
    if here is None:
        made.changes.append(FileChange(file.path, None, text, file.executable))
    elif here != text:
        _put_beside(made, file.path, file.text)


def _update_file(made: ChangeSet, old: Manifest, file: GeneratedFile, release: str) -> None:
    """Bring one file that was written before to its new text, with the company's edits."""
    path, text = file.path, file.text.encode()
    here, before = staging.content(made.root, path), old.digests[path]
    if old.kinds[path] is Kind.ONCE or digest(text) == before or here == text:
        return
    if here is None:
        made.remarks.append(f"{path} was deleted here, and stays so")
        return
    if digest(here) == before:
        made.changes.append(FileChange(path, here, text))
        return
    base, mine = old.texts.get(path), _decoded(here)
    if base is None or mine is None:
        _put_beside(made, path, file.text)
        return
    merged = merge(base, mine, file.text, f"vertex-training {release}")
    if merged.conflicts:
        _put_beside(made, path, merged.text)
    elif merged.text != mine:
        made.changes.append(FileChange(path, here, merged.text.encode()))


def _remove_file(made: ChangeSet, path: str, digests: Mapping[str, str]) -> None:
    """Take away a file that this release no longer has, unless it was edited."""
    here = staging.content(made.root, path)
    if here is None:
        return
    if digest(here) == digests[path]:
        made.changes.append(FileChange(path, here, None))
    else:
        made.remarks.append(f"{path} is no longer used, but was edited here: it stays")


def _put_beside(made: ChangeSet, path: str, text: str) -> None:
    made.conflicts.append(path)
    made.changes.append(FileChange(f"{path}{UNMERGED}", None, text.encode()))


def _ensure_merged(root: Path, paths: list[str]) -> None:
    left = [f"{path}{UNMERGED}" for path in paths if (root / f"{path}{UNMERGED}").exists()]
    if left:
        listed = ", ".join(dict.fromkeys(left))
        hint = "take over what you want of it into the file beside, then remove it"
        raise CommandError(f"an earlier merge is not finished: {listed}.", hint)


def _joined(here: bytes, text: bytes) -> bytes:
    return here + (b"" if here.endswith(b"\n") or not here else b"\n") + b"\n" + text


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode(errors="replace").splitlines(keepends=True)


#: Names of the two sides in conflict markers.
MINE: Final = "this repository"
BASE: Final = "as it was written"
#: git-merge-file(1): the number of conflicts, at most 127; more is an error.
_MOST_CONFLICTS: Final = 127


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What came of it."""

    text: str
    """With conflict markers around the places that both sides changed."""
    conflicts: bool


def merge(base: str, mine: str, theirs: str, name: str) -> MergeResult:
    """``mine`` with the changes from ``base`` to ``theirs``; ``name`` is that side in markers.

    Without git, only what one side alone changed is merged; else ``theirs`` is the text, and it
    counts as a conflict.
    """
    if mine in (base, theirs):
        return MergeResult(theirs, conflicts=False)
    if theirs == base:
        return MergeResult(mine, conflicts=False)
    git = shutil.which("git")
    found = _merge_by_git(git, base, mine, theirs, name) if git else None
    return found or MergeResult(theirs, conflicts=True)


def _merge_by_git(git: str, base: str, mine: str, theirs: str, name: str) -> MergeResult | None:
    """None if git cannot merge them, which it says of binary files."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, side) for side in ("mine", "base", "theirs")]
        for file, text in zip(files, (mine, base, theirs), strict=True):
            file.write_bytes(text.encode())
        labels = [word for label in (MINE, BASE, name) for word in ("-L", label)]
        done = subprocess.run(
            [git, "merge-file", "-p", *labels, *map(str, files)],
            capture_output=True,
            check=False,
        )
    if not 0 <= done.returncode <= _MOST_CONFLICTS:
        return None
    return MergeResult(done.stdout.decode(), conflicts=done.returncode > 0)
