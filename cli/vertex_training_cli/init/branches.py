"""Writes a change of generated files as a branch of two commits, which git can merge.

The first commit has the previously generated files, the second the new ones: ``git cherry-pick
BRANCH`` applies the difference to the edited files, and reports conflicts. Only objects and one
branch are written. Working tree and index stay unchanged, and git runs no hooks and filters, so
that a cloned repository cannot redirect a write.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localgcp.system import git
from vertex_training.errors import CommandError
from vertex_training_cli.init import manifest as manifests
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.manifest import Manifest, digest
from vertex_training_cli.init.rendering import Kind, render

#: Author of the commits. The user's identity is neither needed nor shown.
_IDENTITY: Final = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "vt"), ("EMAIL", "vt@localhost"))
}
_HINT: Final = "git merges the changes of an upgrade"
_NO_MORE: Final[Mapping[str, str]] = {}
#: Variables that stop git from fetching missing objects of a partial clone: a git setting may run
#: any program for a fetch.
_OFFLINE: Final = {"GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a change."""

    path: str
    old: str | None
    """The previously generated text; None for a new file, and for a file as in HEAD."""
    new: str | None
    """None for a removed file."""
    is_new: bool = False
    executable: bool = False


def compare(old: Manifest, answers: Answers, release: str) -> tuple[list[FileChange], Manifest]:
    """Return the change from the files of ``old`` to the files that ``answers`` generate.

    The second value is the manifest after the change.
    """
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
    return changes, manifests.of_files(release, answers, files.values()).after(old)


def make(root: Path, branch: str, changes: list[FileChange], manifest: Manifest) -> None:
    """Create ``branch`` with the change, on top of HEAD.

    Raises:
        CommandError: no commit or no git exists, or the branch already exists.
    """
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail=True)
    if not head:
        raise CommandError(f"{root} has no commit.", "run git init && git add -A && git commit.")
    if _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", may_fail=True):
        hint = f"delete it by git branch -D {branch}."
        raise CommandError(f"branch {branch} already exists.", hint)
    prefix, none = _git(root, "rev-parse", "--show-prefix"), "0" * len(head)
    before = [dataclasses.replace(f, new=f.old) for f in changes if f.is_new or f.old is not None]
    after = [*changes, FileChange(manifests.NAME, None, manifest.to_json())]
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
    env: Mapping[str, str] = _NO_MORE,
    may_fail: bool = False,
) -> str:
    """Return the output of git; with ``may_fail``, empty after a failure without a message."""
    try:
        done = subprocess.run(
            git.command(root, *arguments), input=stdin, capture_output=True, check=False,
            env={**git.variables(), **_OFFLINE, **env, "LC_ALL": "C"}, cwd=os.sep,
        )  # fmt: skip
    except FileNotFoundError:
        raise CommandError("git is not installed.", f"install git: {_HINT}.") from None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    if done.returncode and (lines or not may_fail):
        raise CommandError(f"git {arguments[0]} in {root}: {(lines or ['no message'])[0]}", _HINT)
    return "" if done.returncode else done.stdout.decode().strip()
