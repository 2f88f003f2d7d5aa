"""Compares a folder with a commit byte by byte, and finds uncommitted inputs.

``git diff`` and ``git status`` compare what git would store. Before that, it converts: encodings,
line ends, ``$Id$`` and filters, as attributes in the folder, in ``.git`` or of the user say. Python
reads what lies there.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

from localgcp.system.root_directory import RootDirectory
from vertex_training.settings.project_files import PROJECT_FILE

#: Git's file modes of a symbolic link, an executable file, and a submodule.
LINK: Final = "120000"
_EXECUTABLE: Final = "100755"
_REPOSITORY: Final = "160000"
_CHUNK: Final = 1 << 20
#: Length of an object id in a repository with SHA-1. A longer id is a SHA-256.
_SHA1: Final = 40


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """An entry of a commit's tree."""

    mode: str
    object_id: str
    name: str

    @classmethod
    def parse(cls, line: str) -> CommittedFile:
        """Parse a line of ``git ls-files --stage``."""
        entry, name = line.split("\t", 1)
        mode, object_id, _ = entry.split()
        return cls(mode, object_id, name)

    @property
    def is_repository(self) -> bool:
        """Return True for a submodule: git stores its commit, but not its files."""
        return self.mode == _REPOSITORY

    def is_in(self, root: RootDirectory) -> bool:
        """Return True if the folder has this file with the same bytes, type and executable bit."""
        try:
            if self.mode == LINK:
                target = os.fsencode(os.readlink(root.path / self.name))
                return self._digest(len(target), [target]) == self.object_id
            with root.open(self.name) as file:
                status = os.fstat(file.fileno())
                is_executable = bool(status.st_mode & stat.S_IXUSR)
                return is_executable == (self.mode == _EXECUTABLE) and (
                    self._digest(status.st_size, _chunks(file)) == self.object_id
                )
        except OSError:  # gone, of another kind, behind a link, or unreadable
            return False

    def _digest(self, size: int, content: Iterable[bytes]) -> str:
        """Return git's object id for a file with this content, without conversion."""
        algorithm = "sha1" if len(self.object_id) == _SHA1 else "sha256"
        digest = hashlib.new(algorithm, b"blob %d\0" % size, usedforsecurity=False)
        for chunk in content:
            digest.update(chunk)
        return digest.hexdigest()


def _chunks(file: BinaryIO) -> Iterable[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def changed_files(root: Path, committed: Iterable[CommittedFile]) -> list[str]:
    """Return names of ``committed`` files that are missing or changed in ``root``."""
    folder = RootDirectory(root)
    return [file.name for file in committed if not (file.is_repository or file.is_in(folder))]


#: Suffixes of importable files: sources, bytecode without a source, and extension modules.
CODE: Final = tuple(importlib.machinery.all_suffixes())
#: Suffixes of files that the program reads: code, and stack files, included files and job files.
READ: Final = (*CODE, ".yaml", ".yml")
#: Files from which ``make setup`` installs packages in a repository that ``vt init`` created.
INSTALLED: Final = frozenset({"requirements.lock", "requirements.txt"})
#: Files of a project, plugin or policy pack: the engine runs the code in their folder. A project in
#: JSON takes precedence over YAML.
ENGINE_FILES: Final = frozenset(
    f"Pulumi{kind}.{form}" for kind in ("", "Plugin", "Policy") for form in ("json", "yaml", "yml")
)
#: Folder of the virtual environment of ``vt``, and of the environments inside it that ``make setup
#: DEPLOY=1`` installs.
ENVIRONMENT: Final = ".venv"
#: Folders without code that Python imports: ``stacks.own_bytecode`` prevents it from reading
#: ``__pycache__``.
_NOT_IMPORTED: Final = frozenset({"__pycache__", ".git"})


def uncommitted_inputs(
    root: Path, tracked: Collection[str], untracked: Iterable[str], links: Iterable[str]
) -> list[str]:
    """Return names of files that a program in ``root`` could read but that are not ``tracked``.

    ``untracked`` are the files that git neither tracks nor ignores. Of ignored ones only those
    count that can be imported from ``root``. ``links`` are tracked symbolic links: git binds
    their text, so what they lead to must be tracked in ``root``, too.
    """
    links = set(links)
    inputs = {
        file for name in untracked for file in _files_of(root, name) if _is_read(root, file)
    } | {name for name in _importable(root, links) if name not in tracked}
    return sorted(inputs) + [
        f"{name} -> {os.readlink(root / name)}"
        for name in sorted(links)
        if _is_read(root, name) and not _stays(root, name, tracked)
    ]


def uncommitted_code(
    root: Path, tracked: Collection[str], project: Mapping[str, Any]
) -> Iterator[str]:
    """Yield code that ``main`` or ``plugins`` of ``project`` names but that is not ``tracked``.

    ``project`` is the project's file: the engine runs the program and plugins at these paths.
    """
    top, main = root.resolve(), project.get("main")
    for path in (*([main] if isinstance(main, str) else ()), *plugin_paths(project)):
        target = (root / path).resolve()
        if not target.is_relative_to(top):
            yield f"{PROJECT_FILE} -> {path}"
            continue
        place = target.relative_to(top)
        is_program = path == main and target.is_dir()
        names = _importable(target, ()) if is_program else _files_of(target, "./")
        files = [place.as_posix()] if target.is_file() else [(place / n).as_posix() for n in names]
        yield from (name for name in files if name not in tracked)


def patterns_from_top(folder: str, content: str) -> Iterator[str]:
    """Yield the patterns of a folder's ``.gitignore``, relative to the top of the checkout.

    >>> list(patterns_from_top("a", "b.yaml\\n!/c/\\nd/e\\n"))
    ['/a/**/b.yaml', '!/a/c/', '/a/d/e']
    """
    top = re.sub(r"([*?\[\\])", r"\\\1", f"/{folder}") if folder else ""
    for line in content.removeprefix("\ufeff").split("\n"):
        pattern = line.removesuffix("\r")
        if not pattern.strip() or pattern.startswith("#"):
            continue
        sign = "!" if pattern.startswith("!") else ""
        pattern = pattern.removeprefix("!")
        if not top:
            yield sign + pattern
        elif "/" in pattern.rstrip(" ").removesuffix("/"):
            yield f"{sign}{top}/{pattern.removeprefix('/')}"
        else:
            yield f"{sign}{top}/**/{pattern}"


def plugin_paths(project: Mapping[str, Any]) -> list[str]:
    """Return the paths in ``plugins`` of a project file."""
    plugins = project.get("plugins")
    kinds = plugins.values() if isinstance(plugins, Mapping) else ()
    entries = [path for kind in kinds if isinstance(kind, list) for path in kind]
    paths = [entry.get("path") for entry in entries if isinstance(entry, Mapping)]
    return [path for path in paths if isinstance(path, str)]


def other_environment(root: Path, file: Path, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ``virtualenv`` of an engine file, unless it is ``.venv`` or inside of it.

    Poetry and uv, as ``toolchain``, find an environment by themselves.
    """
    runtime = content.get("runtime")
    options = runtime.get("options") if isinstance(runtime, Mapping) else None
    options = options if isinstance(options, Mapping) else {}
    if (toolchain := options.get("toolchain") or "pip") != "pip":
        yield f"{os.path.relpath(file, root)} -> {toolchain}"
    path = options.get("virtualenv")
    if path and not _place(file.parent / str(path)).is_relative_to(_place(root / ENVIRONMENT)):
        yield f"{os.path.relpath(file, root)} -> {path}"


def _place(path: Path) -> Path:
    """Return the path that the engine uses: joined as text, without resolving links."""
    return Path(os.path.abspath(path))


def _files_of(root: Path, name: str) -> Iterator[str]:
    """Yield ``name``, or the files of a nested repository, of which git lists only the folder."""
    if not name.endswith("/"):
        yield name
        return
    for file in (root / name).rglob("*"):
        if file.is_file() and _NOT_IMPORTED.isdisjoint(file.parts):
            yield file.relative_to(root).as_posix()


def _is_read(root: Path, name: str) -> bool:
    path = root / name
    linked_folder = path.is_symlink() and path.is_dir()
    return (
        name in INSTALLED
        or name.endswith(READ)
        or path.name in ENGINE_FILES
        or linked_folder
        or (path.is_symlink() and not path.exists())
    )


def _importable(root: Path, links: Collection[str]) -> Iterator[str]:
    """Yield importable modules below ``root``, without the targets of ``links``."""
    seen = set[str]()
    for folder, folders, files in os.walk(root, followlinks=True):
        place = Path(folder).relative_to(root)
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [
            name
            for name in folders
            if name.isidentifier()
            and name not in _NOT_IMPORTED
            and (place / name).as_posix() not in links
        ]
        for name in files:
            is_code = name.endswith(CODE) and name.partition(".")[0].isidentifier()
            if is_code or name in ENGINE_FILES:
                yield (place / name).as_posix()


def _stays(root: Path, link: str, tracked: Collection[str]) -> bool:
    """Return True if a link leads to a tracked file or folder in ``root``."""
    target, top = (root / link).resolve(), root.resolve()
    if not target.is_relative_to(top):
        return False
    name = PurePosixPath(target.relative_to(top))
    return str(name) in tracked or any(name in PurePosixPath(file).parents for file in tracked)
