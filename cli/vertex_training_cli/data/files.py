"""Map files of a folder to names of objects, and the reverse."""

from __future__ import annotations

import base64
import fnmatch
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import google_crc32c

from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training.plan.packages import name_problem
from vertex_training_cli.data.cloud import RemoteObject

#: Folder for incomplete files, inside the target folder.
PARTIAL: Final = ".vt-data"
_BLOCK: Final = 1 << 20
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A local file: a folder, the path below it, and the size in bytes."""

    folder: Path
    name: str
    """Path below the folder. It is also the object's name without the prefix."""
    size: int

    @property
    def path(self) -> Path:
        """Full path of the file."""
        return self.folder / self.name

    def open(self) -> BinaryIO:
        """Open the file for reading. Raises OSError, also if a link is now in its path."""
        return RootDirectory(self.folder).open(self.name)

    def is_same(self, remote: RemoteObject | None) -> bool:
        """Return whether the object has the file's size and CRC32C."""
        return (
            remote is not None
            and remote.size == self.size
            and remote.crc32c == checksum(self.open())
        )


def scan(folder: Path, exclude: Iterable[str] = ()) -> tuple[list[LocalFile], int]:
    """Return the regular files below ``folder``, by name, and the number of skipped links.

    ``exclude`` are shell patterns, matched against the name and each of its parts. ``folder`` may
    be a file.

    Raises:
        CommandError: the folder does not exist or cannot be read, or a name is invalid.
    """
    patterns = (*exclude, PARTIAL)
    local_files: list[LocalFile] = []
    wrong: list[str] = []
    links = 0
    for top, name in _walk(folder):
        if is_excluded(name, patterns):
            continue
        status = (top / name).lstat()
        if stat.S_ISLNK(status.st_mode):
            links += 1
        elif not stat.S_ISREG(status.st_mode):
            wrong.append(f"{name!r} is not a regular file")
        elif problem := _problem(name):
            wrong.append(f"{name[:80]!a} {problem}")
        else:
            local_files.append(LocalFile(top, name, status.st_size))
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CommandError(
            f"{folder}: {'; '.join(wrong[:_SHOWN])}{more}.", "rename these files, or use --exclude."
        )
    return sorted(local_files, key=lambda file: file.name), links


def at(folder: Path, name: str) -> LocalFile | None:
    """Return the file with this name below ``folder``; None if it does not exist."""
    status = below(folder).status(name)
    return LocalFile(folder, name, status.st_size) if status else None


def checksum(file: BinaryIO) -> str:
    """Return the CRC32C of a file in base64, like Cloud Storage. Raises OSError."""
    crc32c = google_crc32c.Checksum()
    with file:
        for _ in crc32c.consume(file, _BLOCK):
            pass
    return base64.b64encode(crc32c.digest()).decode()


def below(folder: Path) -> RootDirectory:
    """Return the folder as a ``RootDirectory`` that refuses paths of git."""
    return RootDirectory(folder, refuse_git=True)


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folder and the relative path of each entry below it, except folders."""
    if folder.is_file():
        yield folder.parent, folder.name
        return
    if not folder.is_dir():
        raise CommandError(f"folder {folder} does not exist.")

    def refuse(error: OSError) -> None:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}.")

    for place, folders, names in os.walk(folder, onerror=refuse):
        linked = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*names, *linked):
            yield folder, (Path(place) / name).relative_to(folder).as_posix()


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a shell pattern matches ``name`` or one of its parts."""
    parts = name.split("/")
    return any(
        fnmatch.fnmatchcase(name, pattern.rstrip("/"))
        or any(fnmatch.fnmatchcase(part, pattern.rstrip("/")) for part in parts)
        for pattern in patterns
    )


def _problem(name: str) -> str | None:
    """Return the reason why this name is invalid for an object; None if it is valid."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return name_problem(name)
