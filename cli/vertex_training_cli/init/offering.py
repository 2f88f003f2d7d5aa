"""What the commands have in common: which repository it is, and how changes are offered."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from vertex_training.errors import CommandError
from vertex_training.secret_rules.redaction import masked
from vertex_training_cli.console import plain
from vertex_training_cli.init import manifest, staging
from vertex_training_cli.init.changes import ChangeSet
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.status import print_line


def release() -> str:
    """Version of this package.

    Raises:
        CommandError: it is not installed.
    """
    try:
        return version("vertex-training")
    except PackageNotFoundError:
        raise CommandError("this is a checkout that is not installed.", "`make setup`") from None


def root_of(directory: Path) -> Path:
    """The top of the repository around ``directory``.

    Raises:
        CommandError: there is none that ``vt init`` made.
    """
    start = directory.absolute()
    for folder in (start, *start.parents):
        if (folder / manifest.NAME).is_file() or staging.is_pending(folder):
            return folder
    what = f"no {manifest.NAME} in {start} or above: `vt init` did not make this"
    raise CommandError(f"{what}.", "`vt init DIR` makes a new repository")


def ensure_release(old: Manifest, release: str) -> None:
    """Refuse to add to a repository that another release made.

    Raises:
        CommandError: it is another one.
    """
    if old.release != release:
        what = f"this repository is of release {old.release}, and this is {release}"
        raise CommandError(f"{what}.", "`vt upgrade --write` first, or install that release")


def ensure_no_new_file_is_there(proposal: ChangeSet, old: Manifest) -> None:
    """Refuse to add an environment of which files are there.

    Raises:
        CommandError: some are.
    """
    if taken := [path for path in proposal.conflicts if path not in old.digests]:
        listed = ", ".join(taken)
        raise CommandError(f"there already: {listed}. Nothing is written.", "move them away")


def offer(proposal: ChangeSet, *, write: bool, done: str) -> None:
    """Show the diff and what is to know of it, and write it if that is wanted.

    Raises:
        CommandError: a file is no longer what the diff showed, or cannot be written.
        Exit: with code 1 if there are conflicts.
    """
    for line in proposal.diff():
        print(masked(plain(line.rstrip("\r\n"))))
    sys.stdout.flush()
    for remark in proposal.remarks:
        print_line(f"note: {remark}.")
    for path in proposal.conflicts:
        print_line(f"conflict: {path} was changed at the same place: see {path}.merge.")
    if not write and sys.stdin.isatty():
        write = typer.confirm("Write these files?", err=True)
    if write:
        proposal.write()
        print_line(done)
    else:
        print_line("Nothing is written. With --write, it is.")
    if proposal.conflicts:
        if write:
            print_line("Take over what you want of the files *.merge, then remove them.")
        raise typer.Exit(1)
