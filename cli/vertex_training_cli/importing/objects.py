"""Files that a job reads from a bucket which its stack gets new: taken from beside the source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localgcp.system.root_directory import RootDirectory
from vertex_training.secret_rules.redaction import contains_secret
from vertex_training_cli.importing.imported import ImportedJob
from vertex_training_cli.importing.references import StackEntries

#: Largest file that is taken. `vt data push` is for more.
MAX_BYTES: Final = 16 * 1024 * 1024


def place(
    job: ImportedJob,
    objects: Mapping[str, set[str]],
    folder: Path,
    root: Path,
    entries: StackEntries,
    uploads: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Enter what is there as objects of their buckets; the files that have to be copied for it.

    A file below ``root`` is named where it is; another one, and one of ``uploads`` (``KEY/NAME``),
    is copied below ``jobs/data``. One that is not there, or is too large, is a remark.
    """
    copies: dict[str, bytes] = {}
    for key, names in sorted(objects.items()):
        found: dict[str, str] = {}
        for name in sorted(names):
            path = _beside(folder, root, name)
            if f"{key}/{name}" in uploads:
                continue  # all of them are placed at the end
            if path is None:
                job.remarks.append(
                    f"it reads {name} in bucket '{key}', which is not beside the source: put it at "
                    f"{name} there and import again, or it is missing when the job runs"
                )
                continue
            if path.is_relative_to(root.resolve()):
                found[name] = path.relative_to(root.resolve()).as_posix()
                continue
            data = path.read_bytes()
            if contains_secret(data.decode("utf-8", errors="replace")):
                job.remarks.append(
                    f"it reads {name}, which is not copied: it holds what looks like a secret"
                )
                continue
            found[name] = file = f"jobs/data/{key}/{name}"
            copies[file] = data
        entries.add_objects(key, found)
    return copies


def place_uploads(uploads: Mapping[str, bytes], entries: StackEntries) -> dict[str, bytes]:
    """Enter objects (``KEY/NAME``) of buckets that the stack gets new; the files to copy for it."""
    copies: dict[str, bytes] = {}
    for place, data in uploads.items():
        key, _, name = place.partition("/")
        if contains_secret(data.decode("utf-8", errors="replace")):
            continue
        if key in entries.keys("buckets"):
            copies[f"jobs/data/{place}"] = data
            entries.add_objects(key, {name: f"jobs/data/{place}"})
    return copies


def _beside(folder: Path, root: Path, name: str) -> Path | None:
    """The file of an object beside the source: at its name, or in the folder itself.

    A source is another's: no hidden file, nothing behind a link, and nothing of the home itself.
    """
    if folder.resolve() == Path.home().resolve() != root.resolve():
        return None
    for path in (name, Path(name).name):
        found = RootDirectory(folder, refuse_git=True).status(path)
        hidden = any(part.startswith(".") for part in path.split("/"))
        if found and found.st_size <= MAX_BYTES and not hidden:
            return folder.resolve() / path
    return None
