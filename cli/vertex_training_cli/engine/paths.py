"""The Pulumi project around the current folder, its files as messages name them, and links out.

What a link out of a checkout points at is not the checkout's to read or change.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from vertex_training.errors import CommandError
from vertex_training.settings.project_files import PROJECT_FILE, file_name, leaves


def root_of(start: Path) -> Path | None:
    """The nearest folder, from ``start`` upwards, that holds a Pulumi project."""
    folder = start.absolute()
    candidates = (folder, *folder.parents)
    return next((path for path in candidates if (path / PROJECT_FILE).is_file()), None)


def stack_file(root: Path, stack: str) -> str:
    """A stack's file, as messages show it."""
    return from_here(root / file_name(stack))


def own_folder(root: Path, name: str) -> Path:
    """A folder of this user alone below ``.build``, for what a deployment is held to.

    Raises:
        CommandError: it or ``.build`` is a link or another user's, or everybody may write
            ``.build``: others could replace what it holds.
    """
    around = root / ".build"
    _make_own(around, 0o755)
    if around.stat().st_mode & stat.S_IWOTH:
        what = f"{around} is no folder for what a deployment is held to: everybody may write it."
        raise CommandError(what, f"`chmod go-w {from_here(around)}`, if nobody has.")
    # `mkdir` lets the group write where the umask is 002.
    _allow(around, stat.S_IMODE(around.stat().st_mode) & ~stat.S_IWGRP)
    folder = around / name
    _make_own(folder, 0o700)
    _allow(folder, 0o700)  # somebody may have made it for all to write
    return folder


def _allow(folder: Path, mode: int) -> None:
    if stat.S_IMODE(folder.stat().st_mode) == mode:
        return
    try:
        folder.chmod(mode)
    except OSError as failed:
        what = f"{folder} is no folder for what a deployment is held to: {failed.strerror}."
        raise CommandError(what, f"make it this user's alone: `chmod {mode:o}`.") from None


def _make_own(folder: Path, mode: int) -> None:
    """Make a folder that is not there."""
    try:
        folder.mkdir(mode=mode, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise FileExistsError(errno.EEXIST, "it is a link, or another user's")
    except OSError as failed:
        what = f"{folder} is no folder for what a deployment is held to: {failed.strerror}."
        raise CommandError(what, "remove it.") from None


def from_here(path: Path) -> str:
    """``path`` from the current folder if it lies below it, in full otherwise."""
    full, here = path.absolute(), Path.cwd()
    return os.path.relpath(full, here) if full.is_relative_to(here) else str(full)


def link_out(file: Path, *, of_user: bool = False) -> Path | None:
    """A link on the way to a file that leaves the checkout or project that it lies in, or none.

    A link that lies in neither is the user's own; if the file itself is one, only ``of_user``
    lets it be.
    """
    full = file.absolute()
    for link in (each for each in (full, *full.parents) if each.is_symlink()):
        own = link.parent if link == full and not of_user else None
        top = next((each for each in link.parents if _is_top(each)), own)
        if top is not None and leaves(top, link):
            return link
    return None


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or (folder / PROJECT_FILE).is_file()
