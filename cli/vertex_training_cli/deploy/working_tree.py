"""Whether a folder has the files of a commit, byte by byte.

``git diff`` and ``git status`` compare what git would store. Before that, it converts: encodings,
line ends, ``$Id$`` and filters, as attributes in the folder, in ``.git`` or of the user say. Python
reads what lies there.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from localgcp.root_directory import RootDirectory

#: Modes in git of a symbolic link, of an executable file, and of a repository within this one.
LINK: Final = "120000"
_EXECUTABLE: Final = "100755"
_REPOSITORY: Final = "160000"
_CHUNK: Final = 1 << 20
#: Length of an object's id in a repository with SHA-1; another one has SHA-256.
_SHA1: Final = 40


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """An entry of a commit's tree."""

    mode: str
    object_id: str
    name: str

    @classmethod
    def parse(cls, line: str) -> CommittedFile:
        """Of a line of ``git ls-files --stage``."""
        entry, name = line.split("\t", 1)
        mode, object_id, _ = entry.split()
        return cls(mode, object_id, name)

    @property
    def is_repository(self) -> bool:
        """Whether it is a submodule: git has its commit, and none of its files."""
        return self.mode == _REPOSITORY

    def is_in(self, root: RootDirectory) -> bool:
        """Whether the folder has it: its bytes, and whether it is a link and may be executed."""
        try:
            if self.mode == LINK:
                target = os.fsencode(os.readlink(root.path / self.name))
                return self._digest(len(target), [target]) == self.object_id
            with root.open(self.name) as file:
                found = os.fstat(file.fileno())
                is_executable = bool(found.st_mode & stat.S_IXUSR)
                return is_executable == (self.mode == _EXECUTABLE) and (
                    self._digest(found.st_size, _chunks(file)) == self.object_id
                )
        except OSError:  # gone, of another kind, behind a link, or unreadable
            return False

    def _digest(self, size: int, content: Iterable[bytes]) -> str:
        """The id that git gives to such a file if it converts nothing."""
        algorithm = "sha1" if len(self.object_id) == _SHA1 else "sha256"
        digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for chunk in content:
            digest.update(chunk)
        return digest.hexdigest()


def _chunks(file: BinaryIO) -> Iterable[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def changed_files(root: Path, committed: Iterable[CommittedFile]) -> list[str]:
    """Names of the ``committed`` files that ``root`` does not have as they are; no submodules."""
    folder = RootDirectory(root)
    return [file.name for file in committed if not (file.is_repository or file.is_in(folder))]
