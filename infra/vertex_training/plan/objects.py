"""Objects that a stack keeps in its buckets, from the files and folders that its file names. Pure.

A folder stands for its files: ``samples: jobs/data`` keeps ``samples/titanic.csv``. Every object is
a resource of the stack, so folders are bounded; data belongs into a bucket by ``vt data``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Final

from vertex_training.plan.packages import CREDENTIALS

#: Files of all folders of a bucket together: each is a resource, which every preview compares.
MOST_FILES: Final = 200
#: Their bytes: every preview reads and hashes them.
MOST_BYTES: Final = 50 * 1024 * 1024
#: Never kept: hidden files may hold secrets, caches are of one machine.
SKIPPED: Final = "__pycache__"
#: Bytes of an object's name in UTF-8, and how none begins.
#: Source: docs.cloud.google.com/storage/docs/objects#naming
MAX_NAME: Final = 1024
REFUSED_PREFIX: Final = ".well-known/acme-challenge/"


def kept_objects(objects: Mapping[str, str], root: Path) -> dict[str, str]:
    """Object name -> file in the checkout, with folders as their files. Both have ``/``.

    Folders that are too large or have none of them are mistakes:
    ``vertex_training.stack_rules.files``.
    """
    found: dict[str, str] = {}
    for name, file in objects.items():
        if (root / file).is_dir():
            for inside in sorted(files_below(root / file)):
                found[prefix_of(name) + inside] = f"{file.rstrip('/')}/{inside}"
        else:
            found[name] = file
    return found


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


def files_below(folder: Path) -> Iterator[str]:
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
    files, home = list(files_below(folder)), folder.resolve()
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
    return name.startswith(".") or name == SKIPPED
