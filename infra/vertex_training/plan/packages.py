"""Source distributions of the code below ``jobs/``, and files to upload to buckets.

A package's file name contains a digest of its content: new code is a new object in the bucket, and
a running job keeps its code. A folder of objects stands for its files: ``samples: jobs/data``
uploads ``samples/titanic.csv``. Each object is a resource, so the size of folders is limited.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement

from vertex_training.errors import ConfigError, Location, Problem

#: Folders with caches and build results, which are never packaged; hidden files are not either.
SKIPPED: Final = ("__pycache__", "build", "dist")
#: Credentials that google-github-actions/auth writes to a workflow's checkout.
CREDENTIALS: Final = re.compile(r"gha-creds-.*\.json\Z")
#: Files for ``vt images build``, which jobs do not read.
IMAGE_FILES: Final = re.compile(r"Dockerfile(\..*)?\Z|.*\.(lock|in)\Z")
#: Like pip: ``#`` begins a comment only at the start of a line or after a space.
COMMENT: Final = re.compile(r"(?:^|\s)#.*")
REQUIREMENTS: Final = "requirements.txt"
_OUT: Final = "this symbolic link leads out of the package"
_COPY: Final = "replace the link by a copy of its target"
HINT: Final = "list requirements like numpy==1.26.4; for other options of pip, build an image"
#: setup.py instead of pyproject.toml, since the pip of older prebuilt images builds the latter in
#: an isolated environment, which it downloads.
SETUP: Final = """\
from setuptools import setup

setup(
    name={name!r},
    version="0.0.0",
    packages={packages!r},
    py_modules={modules!r},
    package_data={{"": ["*", "*/*"]}},
    install_requires={requires!r},
)
"""


@dataclass(frozen=True, slots=True)
class Package:
    """A built source distribution. ``file`` is its file name in the bucket, with a digest."""

    name: str
    file: str
    content: bytes
    modules: frozenset[str] = frozenset()
    """Modules that ``python -m`` can run, in the form of ``pythonModule``."""


def build_all(paths: Mapping[str, str], root: Path) -> dict[str, Package]:
    """Build the packages by name. Raises ConfigError with the mistakes of all packages."""
    packages: dict[str, Package] = {}
    problems: list[Problem] = []
    for name, path in paths.items():
        try:
            packages[name] = build(name, root / path, path)
        except ConfigError as failed:
            problems += failed.problems
    if problems:
        raise ConfigError(problems)
    return packages


def build(name: str, path: Path, where: str = "") -> Package:
    """Package a folder with ``__init__.py``, or a single script. ``where``: path in messages.

    A folder ``jobs/titanic`` of package ``titanic`` is imported as ``titanic``, a script
    ``train.py`` as ``train``. ``requirements.txt`` in the folder, or ``NAME.requirements.txt``
    beside the script, lists dependencies. Raises ConfigError if ``path`` cannot be packaged.
    """
    listed = (path if path.is_dir() else path.parent) / (
        REQUIREMENTS if path.is_dir() else f"{path.stem}.{REQUIREMENTS}"
    )
    folder = where or path.name if path.is_dir() else PurePath(where or path.name).parent
    at = (PurePath(folder) / listed.name).as_posix()
    if problems := list(_links_elsewhere(path, where or path.name, listed, at)):
        raise ConfigError(problems)
    if path.is_file():
        files = {path.name: path.read_bytes()} if path.suffix == ".py" else {}
    else:
        files = {f"{path.name}/{name}": content for name, content in files_below(path)}
    if not any(member.endswith(".py") for member in files):
        what = "this folder has no Python files" if path.is_dir() else "this is not a Python file"
        location = Location(where or path.name)
        hint = "name a folder with Python files or a .py file"
        raise ConfigError([Problem(what, hint=hint, location=location)])
    requires = _requirements(listed, at) if listed.is_file() else []
    code = [member for member in files if member.endswith(".py")]
    folders = sorted({m.rpartition("/")[0].replace("/", ".") for m in code if "/" in m})
    modules = [member.removesuffix(".py") for member in code if "/" not in member]
    setup = SETUP.format(name=name, packages=folders, modules=modules, requires=requires)
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.0\n"
    members = {**files, "setup.py": setup.encode(), "PKG-INFO": info.encode()}
    archive = _archive(f"{name}-0.0.0", members, PurePath(where or path.name).parent)
    # Digest before compression, whose output differs between versions of zlib.
    digest = hashlib.sha256(archive).hexdigest()[:16]
    dotted = [member.removesuffix(".py").replace("/", ".") for member in code]
    runnable = [module for module in dotted if not module.endswith("__init__")]
    packages = {module.removesuffix(".__main__") for module in runnable}
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write(archive)
    return Package(
        name, f"{name}-{digest}.tar.gz", packed.getvalue(), frozenset(packages.union(runnable))
    )


def files_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each code file in a folder, in a fixed order."""
    files = sorted(folder.rglob("*"))
    # An inner folder with a Dockerfile is another program, such as one that serves the model.
    others = {file.parent for file in files if file.name == "Dockerfile"} - {folder}
    for file in files:
        inside = file.relative_to(folder)
        if file.is_file() and not _skipped(inside) and others.isdisjoint(file.parents):
            yield inside.as_posix(), file.read_bytes()


def sources(path: Path, shown: str) -> Iterator[str]:
    """Yield the source files of the package at ``path``, which messages show as ``shown``."""
    if path.is_dir():
        yield from (f"{shown}/{name}" for name, _ in files_below(path))
        return
    yield shown
    yield (PurePath(shown).parent / f"{path.stem}.{REQUIREMENTS}").as_posix()


def _skipped(inside: PurePath) -> bool:
    hidden = any(part.startswith(".") or part in SKIPPED for part in inside.parts)
    return hidden or any(kind.match(inside.name) for kind in (CREDENTIALS, IMAGE_FILES))


def _links_elsewhere(path: Path, where: str, listed: Path, at: str) -> Iterator[Problem]:
    if listed.is_symlink() and not path.is_dir():
        if not listed.resolve().is_relative_to(path.parent.resolve()):
            yield Problem(_OUT, hint=_COPY, location=Location(at))
        return
    for file in sorted(path.rglob("*")) if path.is_dir() else ():
        inside = file.relative_to(path)
        if not file.is_symlink() or _skipped(inside):
            continue
        if file.is_dir() or not file.resolve().is_relative_to(path.resolve()):
            what = "a package cannot contain a symbolic link to a folder" if file.is_dir() else _OUT
            yield Problem(what, hint=_COPY, location=Location(f"{where}/{inside.as_posix()}"))


def _requirements(file: Path, where: str) -> list[str]:
    """Return ``install_requires``: the lines of requirements without options of pip."""
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        what, hint = "this file is not UTF-8 text", "save the file as UTF-8"
        raise ConfigError([Problem(what, hint=hint, location=Location(where))]) from None
    numbered = enumerate(text.splitlines(), start=1)
    lines = {number: COMMENT.sub("", line).strip() for number, line in numbered}
    problems = [
        Problem(what, hint=HINT, location=Location(where, number))
        for number, line in lines.items()
        for what in (_requirement_problems(line) if line else ())
    ]
    if problems:
        raise ConfigError(problems)
    return [line for line in lines.values() if line]


def _requirement_problems(line: str) -> Iterator[str]:
    """Yield the mistake in a requirement without its text, which may contain a password."""
    if line.startswith("-"):
        yield f"packages do not support pip's option {re.split('[ =]', line)[0]}"
        return
    try:
        Requirement(line)
    except InvalidRequirement as invalid:
        yield f"this line is not a valid requirement: {str(invalid).splitlines()[0]}"


def _archive(root: str, files: dict[str, bytes], folder: PurePath) -> bytes:
    """Return a reproducible tar archive, without times, owners and other metadata."""
    plain, problems = io.BytesIO(), []
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for member, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{root}/{member}")
            entry.size, entry.mode = len(content), 0o644
            try:
                tar.addfile(entry, io.BytesIO(content))
            except ValueError:
                what, location = "this path is too long for a package", (folder / member).as_posix()
                problems.append(Problem(what, hint="shorten the path", location=Location(location)))
    if problems:
        raise ConfigError(problems)
    return plain.getvalue()


#: Maximum files in all folders of a bucket: each is a resource that every preview compares.
MOST_FILES: Final = 200
#: Maximum bytes of these files, which every preview reads and hashes.
MOST_BYTES: Final = 50 * 1024 * 1024
#: Folder of Python's caches. It is never uploaded, like hidden files, which may contain secrets.
CACHE_FOLDER: Final = "__pycache__"
#: Maximum bytes of an object's name in UTF-8, and a forbidden prefix.
#: Source: docs.cloud.google.com/storage/docs/objects#naming
MAX_NAME: Final = 1024
REFUSED_PREFIX: Final = ".well-known/acme-challenge/"


def kept_objects(objects: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return object name -> file in the checkout. A folder is replaced by all its files."""
    result: dict[str, str] = {}
    for name, file in objects.items():
        if (root / file).is_dir():
            for inside in sorted(object_files(root / file)):
                result[prefix_of(name) + inside] = f"{file.rstrip('/')}/{inside}"
        else:
            result[name] = file
    return result


def prefix_of(name: str) -> str:
    """Return the prefix of object names for a folder; ``.`` stands for the bucket itself."""
    inside = name.strip("/")
    return "" if inside in ("", ".") else f"{inside}/"


def name_problem(name: str) -> str | None:
    """Return the mistake in an object name; None for a valid name."""
    if name in ("", ".", "..") or name.startswith(REFUSED_PREFIX) or not name.isprintable():
        return "this object name is not allowed"
    if (size := len(name.encode())) > MAX_NAME:
        return f"this object name has {size} bytes, the limit is {MAX_NAME}"
    return None


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name == CACHE_FOLDER


def object_files(folder: Path) -> Iterator[str]:
    """Yield relative paths of a folder's files to upload, at most one more than the limit."""
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(name))
        # A link to a folder is yielded like a file, and `folder_problem` reports it.
        links = [name for name in folders if (Path(here) / name).is_symlink()]
        for name in sorted([*files, *links]):
            if _is_skipped(name) or CREDENTIALS.match(name):
                continue
            yield (PurePath(here) / name).relative_to(folder).as_posix()
            count += 1
            if count > MOST_FILES:
                return


def folder_problem(folder: Path) -> tuple[str, str] | None:
    """Return problem and hint about a folder of objects; None for a valid folder."""
    files, home = list(object_files(folder)), folder.resolve()
    if not files:
        return "the folder has no files to upload", "hidden files and caches are not uploaded"
    for name in files:
        file = folder / name
        if not file.resolve().is_relative_to(home) or not file.is_file():
            return (
                f"{name} is not a regular file of the folder",
                "replace the entry by a regular file",
            )
        if not name.isprintable():
            return f"a file's name has control characters: {name!r}", "rename the file"
    if len(files) > MOST_FILES:
        return f"the folder has more than {MOST_FILES} files", ""
    size = sum((folder / name).stat().st_size for name in files)
    if size > MOST_BYTES:
        return f"the folder has {size / 2**20:,.0f} MiB, the limit is {MOST_BYTES // 2**20} MiB", ""
    return None
