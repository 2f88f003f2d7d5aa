"""The files of a folder as names of objects, and the reverse."""

from __future__ import annotations

import base64
import fnmatch
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import google_crc32c

from vertex_training.errors import CommandError

#: Bytes of a name in UTF-8 (docs.cloud.google.com/storage/docs/objects#naming).
MAX_NAME: Final = 1024
#: Folder of what is not whole yet, inside of the one that is written to.
PARTIAL: Final = ".vt-data"
_BLOCK: Final = 1 << 20
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file: where it is, the object's name without the prefix, and its size in bytes."""

    path: Path
    name: str
    size: int
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Folder:
    """Files that can be objects, and how many links were left out."""

    files: tuple[LocalFile, ...]
    links: int = 0


def scan(folder: Path, exclude: Iterable[str] = (), *, follow_links: bool = False) -> Folder:
    """The regular files below ``folder``, sorted by name; ``folder`` may be one file.

    ``exclude`` are patterns of shells, matched against the name and each of its parts. Links are
    left out; with ``follow_links`` files that they point to are taken, and folders never.

    Raises:
        CommandError: there is no such folder, it cannot be read, or a name cannot be an object's.
    """
    patterns = (*exclude, PARTIAL)
    files: list[LocalFile] = []
    wrong: list[str] = []
    links = 0
    for path, name in _walk(folder):
        if is_excluded(name, patterns):
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not (follow_links and path.is_file()):
                links += 1
                continue
            status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            wrong.append(f"{name!r} is no regular file")
        elif problem := _problem(name):
            wrong.append(problem)
        else:
            files.append(LocalFile(path, name, status.st_size, status.st_mtime_ns))
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CommandError(
            f"{folder}: {'; '.join(wrong[:_SHOWN])}{more}.", "rename them, or use --exclude."
        )
    return Folder(tuple(sorted(files, key=lambda file: file.name)), links)


def at(folder: Path, names: Iterable[str]) -> Iterator[LocalFile]:
    """The files of these names below ``folder``, of those that are there. See ``target``."""
    for name in names:
        path = target(folder, name)
        if path.exists():
            status = path.stat()
            yield LocalFile(path, name, status.st_size, status.st_mtime_ns)


def checksum(path: Path) -> str:
    """CRC32C of a file, in base64, as Cloud Storage gives it. Raises OSError."""
    made = google_crc32c.Checksum()
    with path.open("rb") as file:
        for _ in made.consume(file, _BLOCK):
            pass
    return base64.b64encode(made.digest()).decode()


def target(folder: Path, name: str) -> Path:
    """Where the object ``name`` (without prefix) is written below ``folder``.

    Raises:
        CommandError: the name leads elsewhere, by its parts or by a link.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..", PARTIAL) for part in parts) or "\0" in name or "\\" in name:
        raise CommandError(f"the object {name!r} cannot be a file below {folder}.", "--exclude it.")
    path = folder.joinpath(*parts)
    for parent in path.relative_to(folder).parents:
        if (folder / parent).is_symlink() and parent != Path():
            raise CommandError(f"{folder / parent} is a link: nothing is written behind it.")
        if parent != Path() and (folder / parent).is_file():
            raise CommandError(f"{folder / parent} is a file, and {name!r} needs a folder there.")
    if path.is_symlink() or path.is_dir():
        what = "a link" if path.is_symlink() else "a folder"
        raise CommandError(f"{path} is {what}, and the object {name!r} would be a file there.")
    return path


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    if folder.is_file():
        yield folder, folder.name
        return
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder}.")

    def refuse(error: OSError) -> None:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}.")

    for place, folders, names in os.walk(folder, onerror=refuse):
        below = Path(place)
        linked = [name for name in folders if (below / name).is_symlink()]
        for name in (*names, *linked):
            path = below / name
            yield path, path.relative_to(folder).as_posix()


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern of shells matches ``name`` or a part of it."""
    parts = name.split("/")
    return any(
        fnmatch.fnmatchcase(name, pattern.rstrip("/"))
        or any(fnmatch.fnmatchcase(part, pattern.rstrip("/")) for part in parts)
        for pattern in patterns
    )


def _problem(name: str) -> str | None:
    """Why ``name`` cannot be an object's name; None if it can."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return f"{name!r} is not UTF-8"
    if size > MAX_NAME:
        return f"{name[:40]!r}… has {size} bytes, and an object's name has at most {MAX_NAME}"
    if "\n" in name or "\r" in name:
        return f"{name!r} has a line break"
    if name.startswith(".well-known/acme-challenge/"):
        return f"{name!r} is a name that Cloud Storage refuses"
    return None
