"""Access files below one folder without following links, like Go's ``os.Root``; create folders."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from localgcp.errors import UnsafePathError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: O_NONBLOCK, because a job may replace a file by a pipe, which could block forever.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
#: Errors for an obstacle on the path. A move to a folder above the source fails with ENOTEMPTY.
_IN_THE_WAY: Final = frozenset(
    {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EMLINK, errno.ENOTEMPTY}
)


class RootDirectory:
    """A folder and its content. Paths use ``/`` and cannot leave the folder.

    No other user may write to the parents of the folder. ``refuse_git`` protects git's files.
    """

    def __init__(self, path: Path, *, refuse_git: bool = False) -> None:
        self.path = path
        self._refuse_git = refuse_git

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            FileNotFoundError: the path does not exist.
            UnsafePathError: a part of the path is a link, or the path is not a regular file.
        """
        with self._parent(path) as (folder, name):
            return os.fdopen(self._open_regular(path, folder, name, _READ), "rb")

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file, or None for a missing file. Raises UnsafePathError."""
        try:
            with self.open(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a regular file; None for any other path."""
        with suppress(OSError):
            return self.check(path)
        return None

    def check(self, path: str) -> os.stat_result | None:
        """Return the status of a regular file, or None if it is missing. Raises UnsafePathError."""
        try:
            with self._parent(path) as (folder, name):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISREG(status.st_mode):
            return status
        raise UnsafePathError(errno.EINVAL, _kind(status.st_mode), path)

    def files(self, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path and status of each regular file below a folder; skip links."""
        for path, status in self.entries(below):
            if stat.S_ISREG(status.st_mode):
                yield path, status

    def entries(self, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Yield the path and status of each file, link or pipe below a folder."""
        for inside, folder in self._folders(below):
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        if not stat.S_ISDIR(status.st_mode):
                            yield f"{inside}/{entry.name}" if inside else entry.name, status

    def set_rights(self, *, of_folders: int, of_files: int) -> None:
        """Set the permissions of all folders and regular files that this user owns."""
        for _, folder in self._folders():
            with suppress(PermissionError):
                os.fchmod(folder, of_folders)
            for name in os.listdir(folder):
                with suppress(OSError):  # a link or a removed file
                    opened = os.open(name, _READ, dir_fd=folder)
                    try:
                        if stat.S_ISREG(os.fstat(opened).st_mode):
                            os.fchmod(opened, of_files)
                    finally:
                        os.close(opened)

    def _folders(self, below: str = "") -> Iterator[tuple[str, int]]:
        paths = [""]
        while paths:
            inside = paths.pop()
            try:
                opened = self._open_folder("/".join(filter(None, (below, inside))))
            except OSError:  # the folder was removed or replaced
                continue
            try:
                yield inside, opened
                with os.scandir(opened) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                inner_paths = (f"{inside}/{name}" if inside else name for name in names)
                # No program can open a path of more than 4096 bytes.
                paths += [path for path in inner_paths if len(path) < 4096]
            finally:
                os.close(opened)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Write a file and create its parent folders; replace a link. Raises UnsafePathError."""
        with self._parent(path, make=True) as (folder, name):
            partial = f".vt-new-{zlib.crc32(os.fsencode(name)):08x}"
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=folder)
            try:
                with os.fdopen(os.open(partial, _MAKE, 0o600, dir_fd=folder), "wb") as file:
                    file.write(content)
                    os.fchmod(file.fileno(), mode)
                os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                with suppress(FileNotFoundError):
                    os.unlink(partial, dir_fd=folder)
                raise self._explained(error, path, folder, name) from None

    def append(self, path: str) -> BinaryIO:
        """Open a regular file for appending; a new file has mode 0600."""
        with self._parent(path, make=True) as (folder, name):
            return os.fdopen(self._open_regular(path, folder, name, _APPEND), "ab")

    def _open_regular(self, path: str, folder: int, name: str, flags: int) -> int:
        try:
            opened = os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            # ENXIO: the path is a socket.
            raise self._explained(error, path, folder, name, errno.ENXIO) from None
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        os.close(opened)
        raise UnsafePathError(errno.EINVAL, "is not a regular file", path)

    def move(self, old: str, new: str) -> None:
        """Move a file and create its parent folders. Raises UnsafePathError."""
        with self._parent(old) as (source, name), self._parent(new, make=True) as (target, placed):
            try:
                os.replace(name, placed, src_dir_fd=source, dst_dir_fd=target)
            except OSError as error:
                raise self._explained(error, new, target, placed) from None

    def take_in(self, source: Path, path: str) -> None:
        """Move an outside file into this folder and create parents. Raises UnsafePathError."""
        with self._parent(path, make=True) as (folder, name):
            try:
                os.replace(source, name, dst_dir_fd=folder)
            except OSError as error:
                raise self._explained(error, path, folder, name) from None

    def remove(self, path: str) -> None:
        """Remove a file or a link, if it exists."""
        with suppress(FileNotFoundError), self._parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        if problem := path_problem(path, refuse_git=self._refuse_git):
            raise UnsafePathError(errno.EINVAL, problem, path)
        above, _, name = path.rpartition("/")
        opened = self._open_folder(above, make=make)
        try:
            yield opened, name
        finally:
            os.close(opened)

    def _open_folder(self, path: str, *, make: bool = False) -> int:
        if path and (problem := path_problem(path, refuse_git=self._refuse_git)):
            raise UnsafePathError(errno.EINVAL, problem, path)
        opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        parts = path.split("/") if path else []
        for number, part in enumerate(parts, start=1):
            above = opened
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=above)
                opened = os.open(part, _FOLDER, dir_fd=above)
            except OSError as error:
                raise self._explained(error, "/".join(parts[:number]), above, part) from None
            finally:
                os.close(above)
        return opened

    def _explained(
        self, error: OSError, path: str, folder: int, name: str, *unsafe: int
    ) -> OSError:
        what = error.strerror or str(error)
        if error.errno in {*_IN_THE_WAY, *unsafe}:
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            except OSError:  # the obstacle was removed
                mode = 0
            what = "is not a folder" if stat.S_ISREG(mode) else _kind(mode)
            return UnsafePathError(error.errno, what, path)
        return type(error)(error.errno, what, path)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "is a link"
    return "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"


def path_problem(path: str, *, refuse_git: bool = False) -> str:
    """Return the error of a path that is not below the folder or is reserved, or "".

    >>> path_problem("a/b"), path_problem("a/../b")
    ('', 'is not a path below the folder')
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        return "is not a path below the folder"
    return "is reserved for git" if refuse_git and any(map(is_gits, parts)) else ""


def is_gits(name: str) -> bool:
    """Return whether a name is reserved for git on any file system of a checkout.

    >>> is_gits(".git"), is_gits(".GIT "), is_gits("git~1"), is_gits(".github")
    (True, True, True, False)
    """
    seen = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return seen.partition(":")[0].rstrip(". ").casefold() in (".git", "git~1")


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Create a folder and its parents, unless the folder exists."""
    path.mkdir(mode, parents=True, exist_ok=True)


def delete_folder(path: Path) -> None:
    """Delete a folder if it exists and as far as permissions allow."""
    shutil.rmtree(path, ignore_errors=True)
