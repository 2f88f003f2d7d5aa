"""The command line of ``vt upgrade``. Exit code: 0 in order, 2 not possible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.init import branches, manifest
from vertex_training_cli.init.answers import Answers
from vertex_training_cli.init.manifest import Manifest
from vertex_training_cli.init.rendering import release
from vertex_training_cli.status import print_line

_PIN: Final = re.compile(
    r"^(?:\./wheels/vertex_training-|vertex-training(?:\[[a-z,]+\])?\s*==\s*)([^\s;#-]+)",
    re.MULTILINE,
)
#: Files that pin the package, and that no upgrade writes.
_PINNING: Final = ("requirements-dev.txt", "requirements.lock")

Directory = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="In the repository; the current folder if absent."),
]


def upgrade(directory: Directory = None) -> None:
    """Make a branch with what this release would change in a repository that `vt init` made.

    Its last commit is the change: `git cherry-pick` applies it to the files with their edits, and
    reports conflicts. No file of the checkout changes. Exit code: 0 in order, 2 not possible.
    """
    root, new = manifest.root_of(directory or Path()), release()
    old = manifest.read(root)
    _ensure_not_older(old, new)
    offer(root, f"vt-upgrade-{new}", old, old.answers, new)
    for line in _needs(root, new):
        print_line(line)


def offer(root: Path, branch: str, old: Manifest, answers: Answers, new: str) -> None:
    """Make the branch of a change, and print how it is read and taken over.

    Raises:
        CommandError: git cannot make it.
    """
    found, manifest_after = branches.compare(old, answers, new)
    if not found and old.release == new:
        print_line(f"{root} is as release {new} makes it, apart from your edits.")
        return
    branches.make(root, branch, found, manifest_after)
    print_line(f"Branch {branch} changes {len(found)} files:")
    for each in found:
        print(f"  {'-' if each.new is None else '+' if each.is_new else ' '} {each.path}")
    print_line(f"Read it:   git diff {branch}~ {branch}")
    print_line(f"Take over: git cherry-pick {branch} && git branch -D {branch}")


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
    """Yield pins of another release."""
    for name in _PINNING:
        try:
            pins = _PIN.findall((root / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        for pin in pins:
            if pin != release:
                hint = "make lock UPGRADE=1" if name.endswith(".lock") else f"pin {release}"
                yield f"note: {name} pins vertex-training {pin}: {hint}."
