"""The files of a folder as names of objects, and the reverse."""

from __future__ import annotations

import base64
import errno
import fnmatch
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

import google_crc32c

from localgcp.errors import UnsafePathError
from localgcp.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training.plan.objects import MAX_NAME, REFUSED_PREFIX

#: Folder of what is not whole yet, inside of the one that is written to.
PARTIAL: Final = ".vt-data"
#: A folder that has one of these is a checkout, a Pulumi project or a policy pack.
MARKS: Final = (".git", "Pulumi.yaml", "PulumiPolicy.yaml")
_BLOCK: Final = 1 << 20
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file: where it is, the object's name without the prefix, and its size in bytes."""

    path: Path
    name: str
    size: int
    mtime_ns: int = 0
    folder: Path | None = None
    """Where no link below leads to it; None: links are followed."""

    def open(self) -> BinaryIO:
        """For reading. Raises OSError, also if it is a link by now."""
        if self.folder is None:
            return self.path.open("rb")
        return RootDirectory(self.folder).open(self.path.relative_to(self.folder).as_posix())


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
        status, top = path.lstat(), folder if path != folder else folder.parent
        if stat.S_ISLNK(status.st_mode):
            if not (follow_links and path.is_file()):
                links += 1
                continue
            status, top = path.stat(), None
        if not stat.S_ISREG(status.st_mode):
            wrong.append(f"{name!r} is no regular file")
        elif problem := _problem(name):
            wrong.append(problem)
        else:
            files.append(LocalFile(path, name, status.st_size, status.st_mtime_ns, top))
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise CommandError(
            f"{folder}: {'; '.join(wrong[:_SHOWN])}{more}.", "rename them, or use --exclude."
        )
    return Folder(tuple(sorted(files, key=lambda file: file.name)), links)


def at(folder: Path, names: Iterable[str]) -> Iterator[LocalFile]:
    """The files of these names below ``folder``, of those that are there."""
    for name in names:
        if found := below(folder).status(name):
            yield LocalFile(folder / name, name, found.st_size, found.st_mtime_ns, folder)


def checksum(file: BinaryIO) -> str:
    """CRC32C of a file, in base64, as Cloud Storage gives it. Raises OSError."""
    made = google_crc32c.Checksum()
    with file:
        for _ in made.consume(file, _BLOCK):
            pass
    return base64.b64encode(made.digest()).decode()


def below(folder: Path) -> RootDirectory:
    """Where objects become files."""
    return RootDirectory(folder, refuse_git=True)


def ensure_writable(folder: Path, names: Iterable[str]) -> None:
    """Refuse names of objects (without prefix) that cannot be files below ``folder``.

    Raises:
        CommandError: a name leads elsewhere, by its parts or by a link, or to where files are
            programs or settings: a project, a checkout, the user's own folder.
    """
    files, parents = below(folder), set[Path]()
    for name in names:
        try:
            if PARTIAL in name.split("/") or "\\" in name:
                raise UnsafePathError(errno.EINVAL, "is no path below the folder", name)
            files.check(name)
        except UnsafePathError as error:
            raise explained(error, folder, name) from None
        parents.update(folder / parent for parent in PurePosixPath(name).parents)
    for parent in sorted(parents):
        if mark := _mark(parent):
            what = f"{parent} {mark}: no object becomes a file of it."
            raise CommandError(what, "name a folder of its own, such as results; or --exclude.")


def explained(error: UnsafePathError, folder: Path, name: str) -> CommandError:
    """A path that is not written to, as a line with what to do."""
    where = folder / (error.filename or "")
    what = f"{where} {error.strerror}: the object {name!r} cannot be a file there."
    return CommandError(what, "--exclude it, or move away what is in its place.")


def _mark(folder: Path) -> str:
    """What makes the files of a folder more than data; empty if nothing does."""
    if folder.resolve() == Path.home().resolve():
        return "is your home"
    return next((f"has {mark}" for mark in MARKS if os.path.lexists(folder / mark)), "")


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
    if name.startswith(REFUSED_PREFIX):
        return f"{name!r} is a name that Cloud Storage refuses"
    return None
