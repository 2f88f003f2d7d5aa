"""A build context: a folder with a Dockerfile, as an archive that depends only on its files.

``.dockerignore`` is applied here and is not in the archive, so that no build engine applies the
file again. As with BuildKit, ``NAME.dockerignore`` beside the Dockerfile ``NAME`` takes precedence:
https://docs.docker.com/build/concepts/context/#dockerignore-files

Two builds of one context have different image digests, because package installers write times. So a
digest of the archive and of the build options identifies a build.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from vertex_training.errors import ConfigError, Location, Problem

#: Folders of git, Python and the local cloud. A context never contains these folders.
SKIPPED: Final = (".git", ".vt-local", "__pycache__")
#: Names of files that google-github-actions/auth writes to a workflow's checkout.
CREDENTIALS: Final = re.compile(r"gha-creds-.*\.json\Z")
IGNORE_FILE: Final = ".dockerignore"
#: Limits of a context, because every preview reads the whole context.
MAX_BYTES: Final = 512 * 1024 * 1024
MAX_FILES: Final = 20_000
#: Time of all entries: 1980-01-01, the earliest time that the zip file of a wheel can store.
TIME: Final = 315_532_800
#: Maximum nesting of folders. A path has at most 4,096 bytes on Linux.
MAX_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules of a ``.dockerignore`` file."""

    matches: Callable[[str], bool]
    """Returns True if a path in the context is ignored."""
    has_exceptions: bool
    """True if a line begins with ``!``, so that an ignored folder can have included files."""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A file, folder or symbolic link in a context."""

    name: str
    """Path in the context, with ``/``."""
    path: str
    kind: bytes
    """Type of the entry in the tar archive."""
    mode: int = 0o755
    size: int = 0
    target: str = ""
    """Target of a link."""

    @property
    def is_file(self) -> bool:
        """Return True if the entry is a regular file."""
        return self.kind == tarfile.REGTYPE


class _Digest:
    """A write-only stream that counts and digests the written bytes, and can copy them."""

    def __init__(self, head: bytes, copy: IO[bytes] | None = None) -> None:
        self.sha256 = hashlib.sha256(head)
        self._copy, self._size = copy, 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self._size += len(data)
        if self._copy:
            self._copy.write(data)
        return len(data)

    def tell(self) -> int:
        return self._size


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The input of an image build: the entries of a folder, sorted by name."""

    entries: tuple[ContextEntry, ...]

    def write(self, stream: _Digest) -> None:
        """Write a tar archive with one time and owner, and one of two modes. Raises OSError."""
        # The mode "w|" for streams would double the time, because it joins pieces to blocks.
        with tarfile.TarFile(
            fileobj=stream,  # pyright: ignore[reportArgumentType] enough for tarfile
            mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8",
        ) as tar:  # fmt: skip
            for entry in self.entries:
                info = tarfile.TarInfo(entry.name)
                info.type, info.mode, info.mtime = entry.kind, entry.mode, TIME
                info.size, info.linkname = entry.size, entry.target
                if not entry.is_file:
                    tar.addfile(info)
                    continue
                with open(entry.path, "rb") as file:
                    tar.addfile(info, file)


def read_context(
    folder: Path, dockerfile: str, where: str, included: Mapping[str, Path] | None = None
) -> BuildContext:
    """Read the context in ``folder``. Raises ConfigError that lists all invalid files.

    ``where`` is the folder's name in messages. ``included`` has further folders by their names in
    messages, and the context contains each folder under the last part of its name.
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
    names: set[str] = set()
    walk = _Walk(folder, where, _ignore(folder, dockerfile), dockerfile)
    for entry in walk.entries():
        if isinstance(entry, ContextEntry):
            names.add(entry.name.partition("/")[0])
        yield entry
    for shown, path in included.items():
        inside = shown.rpartition("/")[2]
        if inside in names:
            what = f"the build context already has an entry named {inside}"
            yield Problem(what, hint="rename the included folder", location=Location(shown))
            continue
        names.add(inside)
        for entry in _Walk(path, shown, _ignore(path, ""), "").entries():
            yield (
                replace(entry, name=f"{inside}/{entry.name}")
                if isinstance(entry, ContextEntry)
                else entry
            )


def _too_large(where: str, what: str) -> ConfigError:
    hint = f"list files that the image does not need in {IGNORE_FILE}, and move data to a bucket"
    return ConfigError([Problem(f"the build context has {what}", "", hint, (), Location(where))])


def _with_parents(entries: list[ContextEntry]) -> Iterator[ContextEntry]:
    """Yield the entries and their folders. Empty folders are omitted, because git has none."""
    folders: set[str] = set()
    for entry in entries:
        yield entry
        parts = entry.name.split("/")[:-1]
        folders |= {"/".join(parts[: count + 1]) for count in range(len(parts))}
    for name in folders:
        yield ContextEntry(name, "", tarfile.DIRTYPE)


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through a folder. ``where`` is the folder's name in messages."""

    folder: Path
    where: str
    ignore: Ignore
    dockerfile: str

    def entries(self, inside: str = "") -> Iterator[ContextEntry | Problem]:
        """Yield the files and links below a path in the folder, and problems of invalid paths."""
        try:
            # Names are read as bytes, so that they do not depend on the locale.
            children = list(os.scandir(os.path.join(os.fsencode(self.folder), inside.encode())))
        except OSError as failed:
            hint = f"make the folder readable, or list the folder in {IGNORE_FILE}"
            yield self._problem(inside, f"the folder cannot be read: {failed.strerror}", hint)
            return
        for child in children:
            try:
                name = f"{inside}/{child.name.decode()}".removeprefix("/")
            except UnicodeDecodeError:
                name = f"{inside}/{child.name.decode(errors='surrogateescape')}".removeprefix("/")
                is_whole = not (self.ignore.has_exceptions and child.is_dir(follow_symlinks=False))
                if not (is_whole and self.ignore.matches(name)):
                    shown = child.name.decode(errors="backslashreplace")
                    path = f"{inside}/{shown}".removeprefix("/")
                    hint = "rename the file or folder"
                    yield self._problem(path, "the name is not UTF-8", hint)
                continue
            yield from self._below(name, child)

    def _below(self, name: str, child: os.DirEntry[bytes]) -> Iterator[ContextEntry | Problem]:
        last, ignore_files = name.rpartition("/")[2], (IGNORE_FILE, self.dockerfile + IGNORE_FILE)
        if last in SKIPPED or CREDENTIALS.match(last) or name in ignore_files:
            return
        ignored = name != self.dockerfile and self.ignore.matches(name)
        if not child.is_dir(follow_symlinks=False):
            if not ignored:
                yield self._entry(name, child)
        elif ignored and not (self.ignore.has_exceptions or self.dockerfile.startswith(f"{name}/")):
            return
        elif name.count("/") > MAX_DEPTH:
            what = f"the folder is nested more than {MAX_DEPTH} levels deep"
            yield self._problem(name, what, f"list the folder in {IGNORE_FILE}")
        else:
            yield from self.entries(name)

    def _entry(self, name: str, child: os.DirEntry[bytes]) -> ContextEntry | Problem:
        path = os.fsdecode(child.path)
        if child.is_symlink():
            target = os.readlink(child.path)
            if self._leads_out(name, child.path, target):
                what = "the symbolic link leads out of the folder"
                return self._problem(name, what, "copy the target into the folder")
            try:
                return ContextEntry(name, path, tarfile.SYMTYPE, 0o777, target=target.decode())
            except UnicodeDecodeError:
                what = "the path in the symbolic link is not UTF-8"
                return self._problem(name, what, "rename the target of the link")
        status = child.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            what = "the entry is not a regular file, folder or symbolic link"
            return self._problem(name, what, f"list the entry in {IGNORE_FILE}")
        if not os.access(child.path, os.R_OK):
            hint = f"make the file readable, or list the file in {IGNORE_FILE}"
            return self._problem(name, "the file cannot be read", hint)
        mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
        return ContextEntry(name, path, tarfile.REGTYPE, mode, status.st_size)

    def _leads_out(self, name: str, path: bytes, target: bytes) -> bool:
        if target.startswith(b"/"):
            return True
        text = os.path.normpath(os.path.join(os.path.dirname(name.encode()), target))
        home, real = os.path.realpath(os.fsencode(self.folder)), os.path.realpath(path)
        return text.split(b"/")[0] == b".." or os.path.commonpath([home, real]) != home

    def _problem(self, name: str, what: str, hint: str) -> Problem:
        # Line breaks in names are escaped, because they could add commands to a workflow's log.
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        return Problem(what, "", hint, (), Location(f"{self.where}/{shown}"))


def _ignore(folder: Path, dockerfile: str) -> Ignore:
    """Return the rules of ``.dockerignore``; empty without this file."""
    for name in (f"{dockerfile}{IGNORE_FILE}", IGNORE_FILE):
        try:
            text = (folder / name).read_text("utf-8-sig", errors="surrogateescape")
        except OSError:
            continue
        patterns = [line.strip() for line in text.splitlines() if not line.startswith("#")]
        # Docker's rules differ from git's. The import is late, because few contexts need it.
        from docker.utils.build import PatternMatcher

        exceptions = any(line.startswith("!") for line in patterns)
        matches: Any = PatternMatcher(patterns).matches  # accepts text, in spite of its stubs
        return Ignore(matches, exceptions)
    return Ignore(lambda _: False, has_exceptions=False)


#: Platform of Vertex AI's machines.
PLATFORM: Final = "linux/amd64"
#: Version of the digested data. A new version changes the identities of all builds.
_FORM: Final = 1
_TAG_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Source:
    """The files and options that an image is built from. ``context`` is a folder."""

    context: str
    dockerfile: str = "Dockerfile"
    build_args: tuple[tuple[str, str], ...] = ()
    target: str = ""
    include: tuple[str, ...] = ()
    """Further folders of the checkout, which the context contains under their last names."""

    def read(self, root: Path) -> BuildContext:
        """Read the context of the source in the checkout ``root``; see ``read_context``."""
        folders = {name: root / name for name in self.include}
        return read_context(root / self.context, self.dockerfile, self.context, folders)


def identity(source: Source, context: BuildContext) -> str:
    """Return 64 hex digits that depend only on files and build options. Raises ConfigError."""
    stream = _Digest(_head(source))
    try:
        context.write(stream)
    except OSError as failed:
        what = f"the build context cannot be read: {failed.strerror or failed}"
        raise ConfigError([Problem(what, location=Location(source.context))]) from None
    return stream.sha256.hexdigest()


def write_archive(source: Source, context: BuildContext, file: Path) -> str:
    """Write a context's archive to a file, and return the identity of the build. Raises OSError."""
    with file.open("wb") as stream:
        digest = _Digest(_head(source), stream)
        context.write(digest)
    return digest.sha256.hexdigest()


def _head(source: Source) -> bytes:
    """Return the build options, which are the beginning of the digested data."""
    options = {
        "form": _FORM,
        "platform": PLATFORM,
        "dockerfile": source.dockerfile,
        "buildArgs": dict(source.build_args),
        "target": source.target,
    }
    return json.dumps(options, sort_keys=True).encode() + b"\0"


def short(text: str) -> str:
    """Return a short digest of ``text`` to use in a file name."""
    return hashlib.sha256(text.encode()).hexdigest()[:_TAG_DIGITS]


def tag(build: str) -> str:
    """Return the image tag for the identity of a build: ``context-`` and 32 hex digits."""
    return f"context-{build[:_TAG_DIGITS]}"


def tag_of(source: Source, root: Path) -> str:
    """Return the image tag for ``source`` in the checkout ``root``. Raises ConfigError."""
    return tag(identity(source, source.read(root)))
