"""A build context: a folder with a Dockerfile, as an archive that depends on its files only.

``.dockerignore`` is applied here and is not in the archive, so that no build engine applies it
again. As with BuildKit, ``NAME.dockerignore`` beside the Dockerfile ``NAME`` takes precedence:
https://docs.docker.com/build/concepts/context/#dockerignore-files
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from vertex_training.errors import ConfigError, Location, Problem

#: Folders of git, Python and the local cloud, which are never part of a context.
SKIPPED: Final = (".git", ".vt-local", "__pycache__")
#: Files that google-github-actions/auth writes to a workflow's checkout.
CREDENTIALS: Final = re.compile(r"gha-creds-.*\.json\Z")
IGNORE_FILE: Final = ".dockerignore"
#: Limits of a context: every preview reads the whole context.
MAX_BYTES: Final = 512 * 1024 * 1024
MAX_FILES: Final = 20_000
#: Time of all entries: 1980-01-01, the earliest time in a zip file, since builds create wheels.
TIME: Final = 315_532_800
#: Maximum nesting of folders. A path has at most 4,096 bytes on Linux.
MAX_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules of an ignore file."""

    matches: Callable[[str], bool]
    """Returns whether a path in the context is ignored."""
    has_exceptions: bool
    """True if a line begins with ``!``, so that an ignored folder may have included files."""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A file, folder or symbolic link in a context."""

    name: str
    """Path in the context, with ``/``."""
    path: str
    kind: bytes
    """Type of the entry in tar."""
    mode: int = 0o755
    size: int = 0
    target: str = ""
    """Target of a link."""

    @property
    def is_file(self) -> bool:
        """Return whether the entry is a regular file."""
        return self.kind == tarfile.REGTYPE


class _Counted:
    """A write-only stream that counts the written bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._size = stream, 0

    def write(self, data: bytes) -> int:
        self._size += len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._size


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The input of an image build: the entries of a folder in a fixed order."""

    entries: tuple[ContextEntry, ...]

    def write(self, stream: IO[bytes]) -> None:
        """Write a tar archive, with one time and owner for all entries and one of two modes.

        Raises:
            OSError: a file cannot be read, or became shorter in between.
        """
        # Not as a stream ("w|"), which joins pieces to blocks and doubles the time.
        with tarfile.TarFile(
            fileobj=_Counted(stream),  # pyright: ignore[reportArgumentType] tarfile needs no more
            mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8",
        ) as tar:  # fmt: skip
            for entry in self.entries:
                info = tarfile.TarInfo(entry.name)
                info.type, info.mode, info.mtime = entry.kind, entry.mode, TIME
                info.size, info.linkname = entry.size, entry.target
                if entry.kind != tarfile.REGTYPE:
                    tar.addfile(info)
                    continue
                with open(entry.path, "rb") as file:
                    tar.addfile(info, file)


def read_context(
    folder: Path, dockerfile: str, where: str, included: Mapping[str, Path] | None = None
) -> BuildContext:
    """Read the context in ``folder``. ``where``: its name in messages.

    ``included`` are further folders by their names in messages; each is in the context under the
    last part of its name.

    Raises:
        ConfigError: the context is too large, or has invalid files (all are listed).
    """
    entries: list[ContextEntry] = []
    problems: list[Problem] = []
    for entry in _all_entries(folder, dockerfile, where, included or {}):
        if isinstance(entry, ContextEntry):
            entries.append(entry)
        else:
            problems.append(entry)
        if len(entries) > MAX_FILES:
            raise _too_large(where, f"more than {MAX_FILES:,} files")
    if problems:
        raise ConfigError(problems)
    if (size := sum(entry.size for entry in entries)) > MAX_BYTES:
        raise _too_large(where, f"{size:,} bytes, more than {MAX_BYTES:,}")
    return BuildContext(tuple(sorted(_with_parents(entries), key=lambda entry: entry.name)))


def _all_entries(
    folder: Path, dockerfile: str, where: str, included: Mapping[str, Path]
) -> Iterator[ContextEntry | Problem]:
    """Yield the entries of the folder, then the entries of included folders."""
    names: set[str] = set()
    for entry in _entries_of(folder, _ignore(folder, dockerfile), dockerfile, where):
        if isinstance(entry, ContextEntry):
            names.add(entry.name.partition("/")[0])
        yield entry
    for shown, path in included.items():
        inside = shown.rpartition("/")[2]
        if inside in names:
            what = f"the context already has an entry named {inside}"
            yield Problem(what, hint="rename the included folder", location=Location(shown))
            continue
        names.add(inside)
        for entry in _entries_of(path, _ignore(path, ""), "", shown):
            yield (
                replace(entry, name=f"{inside}/{entry.name}")
                if isinstance(entry, ContextEntry)
                else entry
            )


def _entries_of(
    folder: Path, ignore: Ignore, dockerfile: str, where: str
) -> Iterator[ContextEntry | Problem]:
    # Bytes, so that names do not depend on the locale.
    for entry in _walk(os.fsencode(folder), "", ignore, dockerfile):
        if isinstance(entry, ContextEntry):
            yield entry
        else:
            name, what, hint = entry
            yield Problem(what, hint=hint, location=Location(f"{where}/{_printable(name)}"))


def _printable(name: str) -> str:
    """Return a name without line breaks, which could add commands to a workflow's log."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _too_large(where: str, what: str) -> ConfigError:
    hint = f"list files that the image does not need in {IGNORE_FILE}, and move data to a bucket"
    problem = Problem(f"the build context has {what}", hint=hint, location=Location(where))
    return ConfigError([problem])


def _with_parents(entries: list[ContextEntry]) -> Iterator[ContextEntry]:
    """Yield the entries and all their folders. Omits empty folders, which git does not store."""
    folders: set[str] = set()
    for entry in entries:
        yield entry
        parts = entry.name.split("/")[:-1]
        folders |= {"/".join(parts[: count + 1]) for count in range(len(parts))}
    for name in folders:
        yield ContextEntry(name, "", tarfile.DIRTYPE)


def _walk(
    root: bytes, inside: str, ignore: Ignore, dockerfile: str
) -> Iterator[ContextEntry | tuple[str, str, str]]:
    """Yield files and links below ``root``/``inside``; name, problem and hint for bad paths."""
    try:
        children = list(os.scandir(os.path.join(root, inside.encode())))
    except OSError as failed:
        hint = f"make the folder readable, or list it in {IGNORE_FILE}"
        yield inside, f"the folder cannot be read: {failed.strerror}", hint
        return
    for child in children:
        try:
            name = f"{inside}/{child.name.decode()}".removeprefix("/")
        except UnicodeDecodeError:
            name = f"{inside}/{child.name.decode(errors='surrogateescape')}".removeprefix("/")
            is_whole = not (ignore.has_exceptions and child.is_dir(follow_symlinks=False))
            if is_whole and ignore.matches(name):
                continue
            shown = child.name.decode(errors="backslashreplace")
            entry = f"{inside}/{shown}".removeprefix("/")
            yield entry, "the name is not UTF-8", "rename the file or folder"
            continue
        last = name.rpartition("/")[2]
        if last in SKIPPED or CREDENTIALS.match(last) or _is_ignore_file(name, dockerfile):
            continue
        ignored = name != dockerfile and ignore.matches(name)
        if child.is_dir(follow_symlinks=False):
            needed = ignore.has_exceptions or dockerfile.startswith(f"{name}/")
            if ignored and not needed:
                continue
            if name.count("/") > MAX_DEPTH:
                what = f"the folder is nested more than {MAX_DEPTH} levels deep"
                yield name, what, f"list the folder in {IGNORE_FILE}"
            else:
                yield from _walk(root, name, ignore, dockerfile)
        elif not ignored:
            yield _entry(root, name, child)


def _is_ignore_file(name: str, dockerfile: str) -> bool:
    return name in (IGNORE_FILE, f"{dockerfile}{IGNORE_FILE}")


def _entry(
    root: bytes, name: str, child: os.DirEntry[bytes]
) -> ContextEntry | tuple[str, str, str]:
    path = os.fsdecode(child.path)
    if child.is_symlink():
        target = os.readlink(child.path)
        if _leaves(root, name, child.path, target):
            return (
                name,
                "the symbolic link leads out of the folder",
                "copy the target into the folder",
            )
        try:
            return ContextEntry(name, path, tarfile.SYMTYPE, 0o777, target=target.decode())
        except UnicodeDecodeError:
            return name, "the symbolic link's path is not UTF-8", "rename its target"
    status = child.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        what = "the entry is not a regular file, folder or symbolic link"
        return name, what, f"list the entry in {IGNORE_FILE}"
    if not os.access(child.path, os.R_OK):
        hint = f"make the file readable, or list it in {IGNORE_FILE}"
        return name, "the file cannot be read", hint
    mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    return ContextEntry(name, path, tarfile.REGTYPE, mode, status.st_size)


def _leaves(root: bytes, name: str, path: bytes, target: bytes) -> bool:
    """Return whether a link points out of the context, directly or by other links."""
    if target.startswith(b"/"):
        return True
    text = os.path.normpath(os.path.join(os.path.dirname(name.encode()), target))
    home = os.path.realpath(root)
    real = os.path.realpath(path)
    return text.split(b"/")[0] == b".." or os.path.commonpath([home, real]) != home


def _ignore(folder: Path, dockerfile: str) -> Ignore:
    """Return the rules of ``.dockerignore``, which are empty without this file."""
    for name in (f"{dockerfile}{IGNORE_FILE}", IGNORE_FILE):
        try:
            text = (folder / name).read_text("utf-8-sig", errors="surrogateescape")
        except OSError:
            continue
        patterns = [line.strip() for line in text.splitlines() if not line.startswith("#")]
        # Docker's own client: the rules differ from git's. Imported late: few contexts need it.
        from docker.utils.build import PatternMatcher

        exceptions = any(line.startswith("!") for line in patterns)
        matches: Any = PatternMatcher(patterns).matches  # accepts text, unlike its stubs
        return Ignore(matches, exceptions)
    return Ignore(lambda _: False, has_exceptions=False)
