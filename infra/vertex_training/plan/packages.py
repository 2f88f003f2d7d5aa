"""Code below ``jobs/`` as a deterministic source distribution; objects kept in buckets. Pure.

The file's name carries a digest of the content, so new code is a new object in the bucket, a job
file's ``${packages.x}`` changes with it, and a running job keeps the code it was started with.

A folder of objects stands for its files: ``samples: jobs/data`` keeps ``samples/titanic.csv``.
Every object is a resource of the stack, so folders are bounded; data belongs into a bucket by
``vt data``.
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

#: Never part of a package: caches and what builds leave behind; hidden files are none either.
SKIPPED: Final = ("__pycache__", "build", "dist")
#: What google-github-actions/auth leaves in a workflow's checkout.
CREDENTIALS: Final = re.compile(r"gha-creds-.*\.json\Z")
#: What an image is built from beside the code: ``vt images build`` reads it, and no job.
IMAGE_FILES: Final = re.compile(r"Dockerfile(\..*)?\Z|.*\.(lock|in)\Z")
#: pip's own rule: a # begins a comment only at the start of a line or after a space.
COMMENT: Final = re.compile(r"(?:^|\s)#.*")
REQUIREMENTS: Final = "requirements.txt"
_OUT: Final = "is a link out of the package"
_COPY: Final = "copy what it leads to"
HINT: Final = (
    "list the requirements themselves, like numpy==1.26.4; what needs an index goes into an image"
)
#: setup.py and not pyproject.toml: the pip of the older prebuilt images takes both, but builds
#: the latter in an isolated environment that it downloads first.
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
    """A built source distribution. ``file`` is its name in the bucket, with the digest in it."""

    name: str
    file: str
    content: bytes
    modules: frozenset[str] = frozenset()
    """Modules that ``python -m`` can run of it, as ``pythonModule`` is written."""


def build_all(paths: Mapping[str, str], root: Path) -> dict[str, Package]:
    """Packages by name from paths below ``root``.

    Raises:
        ConfigError: with every path that has no code or cannot be packaged.
    """
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
    """Package a folder with an ``__init__.py`` or a single script.

    A folder ``jobs/titanic`` of package ``titanic`` is imported as ``titanic``, a script
    ``train.py`` as ``train``. ``requirements.txt`` in the folder, or ``NAME.requirements.txt``
    beside the script, becomes what pip installs with it.

    ``where`` stands in messages for the path, which starts with the folder of the checkout.

    Raises:
        ConfigError: there is no code at ``path``, a link in it leads elsewhere, or a line of the
            requirements is none.
    """
    listed = (path if path.is_dir() else path.parent) / (
        REQUIREMENTS if path.is_dir() else f"{path.stem}.{REQUIREMENTS}"
    )
    folder = where or path.name if path.is_dir() else PurePath(where or path.name).parent
    at = (PurePath(folder) / listed.name).as_posix()
    if problems := list(_links_elsewhere(path, where or path.name, listed, at)):
        raise ConfigError(problems)
    files = dict(_files(path))
    if not any(member.endswith(".py") for member in files):
        what = "has no Python files" if path.is_dir() else "is no Python file"
        location = Location(where or path.name)
        hint = "name a folder or a script"
        raise ConfigError([Problem(what, hint=hint, location=location)])
    requires = _requirements(listed, at) if listed.is_file() else []
    code = [member for member in files if member.endswith(".py")]
    folders = sorted({m.rpartition("/")[0].replace("/", ".") for m in code if "/" in m})
    modules = [member.removesuffix(".py") for member in code if "/" not in member]
    setup = SETUP.format(name=name, packages=folders, modules=modules, requires=requires)
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.0\n"
    members = {**files, "setup.py": setup.encode(), "PKG-INFO": info.encode()}
    if problems := list(_too_long(f"{name}-0.0.0", files, PurePath(where or path.name).parent)):
        raise ConfigError(problems)
    archive = _archive(f"{name}-0.0.0", members)
    # Of the archive before compression: zlib's output differs between its versions.
    digest = hashlib.sha256(archive).hexdigest()[:16]
    content = _compressed(archive)
    return Package(name, f"{name}-{digest}.tar.gz", content, _runnable(code))


def _runnable(code: list[str]) -> frozenset[str]:
    """Modules that can be run, by their dotted names.

    >>> sorted(_runnable(["a/__init__.py", "a/__main__.py", "a/task.py"]))
    ['a', 'a.__main__', 'a.task']
    """
    dotted = [member.removesuffix(".py").replace("/", ".") for member in code]
    modules = [name for name in dotted if not name.endswith("__init__")]
    return frozenset(modules) | {name.removesuffix(".__main__") for name in modules}


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Members of the package: path inside it -> content."""
    if path.is_file():
        if path.suffix == ".py":
            yield path.name, path.read_bytes()
        return
    for name, content in files_below(path):
        yield f"{path.name}/{name}", content


def files_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Files of a folder that are code: path inside it -> content, in a fixed order.

    A folder in it with a Dockerfile of its own is another program: what serves the model, say. An
    edit of that trains nothing anew.
    """
    files = sorted(folder.rglob("*"))
    others = {file.parent for file in files if file.name == "Dockerfile"} - {folder}
    for file in files:
        inside = file.relative_to(folder)
        if file.is_file() and not _skipped(inside) and others.isdisjoint(file.parents):
            yield inside.as_posix(), file.read_bytes()


def sources(path: Path, shown: str) -> Iterator[str]:
    """The files that the package of ``path`` is made of; ``shown`` stands in messages for it."""
    if path.is_dir():
        yield from (f"{shown}/{name}" for name, _ in files_below(path))
        return
    yield shown
    yield (PurePath(shown).parent / f"{path.stem}.{REQUIREMENTS}").as_posix()


def _skipped(inside: PurePath) -> bool:
    hidden = any(part.startswith(".") or part in SKIPPED for part in inside.parts)
    return hidden or any(kind.match(inside.name) for kind in (CREDENTIALS, IMAGE_FILES))


def _links_elsewhere(path: Path, where: str, listed: Path, at: str) -> Iterator[Problem]:
    """Links by which files from outside would be packed, or a folder's would be missing.

    ``listed`` are the requirements, ``at`` as messages call them: beside a script, not below it.
    """
    if path.is_dir():
        yield from _links_out_of(path, where)
    elif listed.is_symlink() and not listed.resolve().is_relative_to(path.parent.resolve()):
        yield Problem(_OUT, hint=_COPY, location=Location(at))


def _links_out_of(folder: Path, where: str) -> Iterator[Problem]:
    home = folder.resolve()
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder)
        if (
            file.is_symlink()
            and not _skipped(inside)
            and (file.is_dir() or not file.resolve().is_relative_to(home))
        ):
            what = "is a link to a folder" if file.is_dir() else _OUT
            location = Location(f"{where}/{inside.as_posix()}")
            yield Problem(what, hint=_COPY, location=location)


def _requirements(file: Path, where: str) -> list[str]:
    """Return the entries of ``install_requires``: requirements alone, without pip's options."""
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        problem = Problem("is not UTF-8", hint="save it as UTF-8", location=Location(where))
        raise ConfigError([problem]) from None
    numbered = enumerate(text.splitlines(), start=1)
    lines = {number: COMMENT.sub("", line).strip() for number, line in numbered}
    numbered_lines = {number: line for number, line in lines.items() if line}
    problems = [
        Problem(what, hint=HINT, location=Location(where, number))
        for number, line in numbered_lines.items()
        for what in _requirement_problems(line)
    ]
    if problems:
        raise ConfigError(problems)
    return list(numbered_lines.values())


def _requirement_problems(line: str) -> Iterator[str]:
    """Return the mistake in a line of requirements. Never the line: it may have a password."""
    if line.startswith("-"):
        yield f"a package takes no {re.split('[ =]', line)[0]} of pip's"
        return
    try:
        Requirement(line)
    except InvalidRequirement as invalid:
        yield f"not a requirement: {str(invalid).splitlines()[0]}"


def _too_long(root: str, files: Mapping[str, bytes], folder: PurePath) -> Iterator[Problem]:
    """Files whose paths the header of a tar has no room for."""
    for member in files:
        try:
            tarfile.TarInfo(f"{root}/{member}").tobuf(tarfile.USTAR_FORMAT)
        except ValueError:
            location = Location((folder / member).as_posix())
            yield Problem("is too long a path for a package", hint="shorten it", location=location)


def _archive(root: str, files: dict[str, bytes]) -> bytes:
    """A tar without anything that depends on when, where or by whom it was made."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for member, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{root}/{member}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return plain.getvalue()


def _compressed(archive: bytes) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write(archive)
    return packed.getvalue()


#: Files of all folders of a bucket together: each is a resource, which every preview compares.
MOST_FILES: Final = 200
#: Their bytes: every preview reads and hashes them.
MOST_BYTES: Final = 50 * 1024 * 1024
#: Never kept: hidden files may hold secrets, caches are of one machine.
SKIPPED_FOLDER: Final = "__pycache__"
#: Bytes of an object's name in UTF-8, and how none begins.
#: Source: docs.cloud.google.com/storage/docs/objects#naming
MAX_NAME: Final = 1024
REFUSED_PREFIX: Final = ".well-known/acme-challenge/"


def kept_objects(objects: Mapping[str, str], root: Path) -> dict[str, str]:
    """Object name -> file in the checkout, with folders as their files. Both have ``/``.

    Folders that are too large or have none of them are mistakes:
    ``vertex_training.stack_rules.files``.
    """
    result: dict[str, str] = {}
    for name, file in objects.items():
        if (root / file).is_dir():
            for inside in sorted(object_files(root / file)):
                result[prefix_of(name) + inside] = f"{file.rstrip('/')}/{inside}"
        else:
            result[name] = file
    return result


def prefix_of(name: str) -> str:
    """Return the prefix of the names of a folder's objects; ``.`` is the bucket itself.

    >>> prefix_of("configs"), prefix_of("configs/"), prefix_of(".")
    ('configs/', 'configs/', '')
    """
    inside = name.strip("/")
    return "" if inside in ("", ".") else f"{inside}/"


def name_problem(name: str) -> str | None:
    """Return why Cloud Storage refuses an object name, or no client can read it; else None.

    >>> name_problem("a/b.csv"), name_problem("..")
    (None, "cannot be an object's name")
    """
    if name in ("", ".", "..") or name.startswith(REFUSED_PREFIX) or not name.isprintable():
        return "cannot be an object's name"
    size = len(name.encode())
    return f"has {size} bytes, more than {MAX_NAME}" if size > MAX_NAME else None


def object_files(folder: Path) -> Iterator[str]:
    """Files of a folder that are kept, by their paths inside; at most one more than may be."""
    count = 0
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(name))
        # A link to a folder is not followed: it is named as a file, and refused as none.
        links = [name for name in folders if (Path(here) / name).is_symlink()]
        for name in sorted([*files, *links]):
            if _is_skipped(name) or CREDENTIALS.match(name):
                continue
            yield (PurePath(here) / name).relative_to(folder).as_posix()
            count += 1
            if count > MOST_FILES:
                return


def folder_problem(folder: Path) -> tuple[str, str] | None:
    """Return the mistake in a folder of objects, and the fix; None if there is none."""
    files, home = list(object_files(folder)), folder.resolve()
    if not files:
        return "has no files that are kept", "hidden files and caches are left out"
    for name in files:
        file = folder / name
        if not file.resolve().is_relative_to(home) or not file.is_file():
            return f"has a file that leads elsewhere or is none: {name}", "copy what it leads to"
        if not name.isprintable():
            return f"has a file whose name cannot be an object's: {name!r}", "rename it"
    if len(files) > MOST_FILES:
        return f"has more than {MOST_FILES} files", ""
    size = sum((folder / name).stat().st_size for name in files)
    if size > MOST_BYTES:
        return f"has {size / 2**20:,.0f} MiB, more than {MOST_BYTES // 2**20}", ""
    return None


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name == SKIPPED_FOLDER
