"""The command line of ``vt upgrade``. Exit code: 0 in order, 1 with conflicts, 2 not possible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.init import changes, manifest, staging
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.init.offering import offer, release, root_of
from vertex_training_cli.options import Write
from vertex_training_cli.status import print_line

_PIN: Final = re.compile(
    r"^(?:\./wheels/vertex_training-|vertex-training(?:\[[a-z,]+\])?\s*==\s*)([^\s;#-]+)",
    re.MULTILINE,
)
#: Files that pin the package.
_PINNING: Final = ("requirements.txt", "requirements-dev.txt", "requirements.lock")

Directory = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="In the repository; the current folder if absent."),
]


def upgrade(directory: Directory = None, write: Write = False) -> None:
    """Show what this release would change in a repository that `vt init` made.

    Edits of the repository are kept. What both sides changed at one place is written beside the
    file, as FILE.merge. Without --write, nothing is written. Exit code: 0 in order, 1 with
    conflicts, 2 not possible.
    """
    root, new = root_of(directory or Path()), release()
    if staging.resume(root, write=write):
        print_line(staging.COMPLETED)
    old = manifest.read(root)
    _ensure_not_older(old, new)
    proposal = changes.update(root, old, old.answers, new)
    if not proposal.changes and old.release == new:
        print_line(f"{root} is as release {new} makes it; your edits aside.")
        return
    offer(proposal, write=write, done=f"Upgraded from {old.release} to {new}.")
    if write:
        for line in _needs(root, new):
            print_line(line)


def _ensure_not_older(old: Manifest, release: str) -> None:
    from packaging.version import InvalidVersion, Version

    try:
        older = Version(release) < Version(old.release)
    except InvalidVersion:
        raise CommandError(f"release {old.release!r} of this repository is no version.") from None
    if older:
        what = f"this repository is of release {old.release}, and this is the older {release}"
        raise CommandError(f"{what}.", "`make setup` installs what the repository pins")


def _needs(root: Path, release: str) -> Iterator[str]:
    """What a release asks for beside its files."""
    for name in _PINNING:
        try:
            pins = _PIN.findall((root / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        for pin in pins:
            if pin != release:
                hint = "make lock UPGRADE=1" if name.endswith(".lock") else f"pin {release}"
                yield f"note: {name} pins vertex-training {pin}: {hint}."
    yield "Next: `make setup`, then `make test`, then commit."
