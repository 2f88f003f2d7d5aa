"""Paths of the current folder's Pulumi project, and checks for links that leave the project."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from vertex_training.errors import CommandError
from vertex_training.settings.project_files import PROJECT_FILE, file_name, leaves

if TYPE_CHECKING:
    from vertex_training.settings.model import Settings


def root_of(start: Path) -> Path | None:
    """Return the nearest folder with a Pulumi project, from ``start`` upwards."""
    folder = start.absolute()
    candidates = (folder, *folder.parents)
    return next((path for path in candidates if (path / PROJECT_FILE).is_file()), None)


def stack_file(root: Path, stack: str) -> str:
    """Return the path of a stack file, as messages show it."""
    return from_here(root / file_name(stack))


def own_folder(root: Path, name: str) -> Path:
    """Return a folder below ``.build`` that no other user can write, for deployment plans."""
    around = root / ".build"
    _make_own(around, 0o755)
    mode = stat.S_IMODE(around.stat().st_mode)
    if mode & stat.S_IWOTH:
        hint = f"check the content of the folder, then run `chmod go-w {from_here(around)}`."
        raise _unfit(around, "every user can write to this folder", hint)
    _allow(around, mode & ~stat.S_IWGRP)  # With umask 002, `mkdir` lets the group write.
    folder = around / name
    _make_own(folder, 0o700)
    _allow(folder, 0o700)
    return folder


def _make_own(folder: Path, mode: int) -> None:
    try:
        folder.mkdir(mode=mode, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise FileExistsError(errno.EEXIST, "the path is a link, or belongs to another user")
    except OSError as failed:
        hint = f"remove {from_here(folder)}, then run the command again."
        raise _unfit(folder, failed.strerror, hint) from None


def _allow(folder: Path, mode: int) -> None:
    if stat.S_IMODE(folder.stat().st_mode) != mode:
        try:
            folder.chmod(mode)
        except OSError as failed:
            hint = f"run `chmod {mode:o} {from_here(folder)}`."
            raise _unfit(folder, failed.strerror, hint) from None


def _unfit(folder: Path, why: str | None, hint: str) -> CommandError:
    return CommandError(f"cannot store the plan of a deployment in {folder}: {why}.", hint)


def read_files(settings: Settings) -> list[str]:
    """Return text files that the program reads for a stack: included files, jobs, queries."""
    jobs = [job.file for job in settings.submitted.values()]
    return [*settings.include, *jobs, *(shot.query for shot in settings.snapshots.values())]


def named_files(settings: Settings) -> list[str]:
    """Return the files and folders inside the project that the stack's files name."""
    names = read_files(settings)
    names += [package.path for package in settings.packages.values()]
    names += [file for bucket in settings.buckets.values() for file in bucket.objects.values()]
    for image in settings.images.values():
        names += [*image.include, *([image.context] if image.context else [])]
    return [file for file in names if not Path(file).is_absolute() and ".." not in Path(file).parts]


def from_here(path: Path) -> str:
    """Return ``path`` relative to the current folder if the folder contains it, else unchanged."""
    full, here = path.absolute(), Path.cwd()
    return os.path.relpath(full, here) if full.is_relative_to(here) else str(full)


def link_out(file: Path, *, of_user: bool = False) -> Path | None:
    """Return the first symbolic link in ``file`` that leaves its checkout or project, or None.

    Links outside of checkouts and projects are accepted. With ``of_user``, the file itself may also
    be such a link.
    """
    full = file.absolute()
    for link in (part for part in (full, *full.parents) if part.is_symlink()):
        own = link.parent if link == full and not of_user else None
        top = next((folder for folder in link.parents
                    if (folder / ".git").exists() or (folder / PROJECT_FILE).is_file()),
                   own)  # fmt: skip
        if top is not None and leaves(top, link):
            return link
    return None
