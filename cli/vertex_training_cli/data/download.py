"""List the objects of a place, and download objects into a folder.

Incomplete files are in ``.vt-data`` of the target folder, where a later download resumes. A file is
moved to its place after its checksum was verified. Objects are not decompressed.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

import google_crc32c
from google.cloud import storage

from localgcp.errors import UnsafePathError
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError, counted
from vertex_training_cli.console import plain, print_status
from vertex_training_cli.data import cloud
from vertex_training_cli.data.cloud import TIMEOUT, Place, RemoteObject, in_units

#: Folder for incomplete files, inside the target folder.
PARTIAL: Final = ".vt-data"
#: Files that mark a folder as a checkout, a Pulumi project or a policy pack.
MARKS: Final = (".git", "Pulumi.yaml", "PulumiPolicy.yaml")
_BLOCK: Final = 1 << 20
_SHOWN: Final = 5


def list_objects(client: storage.Client, place: Place) -> None:
    """Print size in bytes, modification time (UTC) and name of each object."""
    count = total = 0
    for item in cloud.objects(client, place):
        count, total = count + 1, total + item.size
        print(f"{item.size:>14}  {item.updated}  {plain(place.prefix + item.name)}")
    print_status(f"{counted(count, 'object')}, {in_units(total)}, in gs://{place.bucket}")


def download(client: storage.Client, place: Place, folder: Path, *, replace: bool = False) -> None:
    """Download missing objects into ``folder``; ``replace`` also replaces files that differ."""
    remote = [*cloud.objects(client, place)]
    ensure_writable(folder, [item.name for item in remote])
    target = RootDirectory(folder, refuse_git=True)
    new, changed = list[RemoteObject](), list[RemoteObject]()
    for item in remote:
        if (status := target.status(item.name)) is None:
            new.append(item)
        elif status.st_size != item.size or _checksum(target.open(item.name)) != item.crc32c:
            changed.append(item)
    chosen = [*new, *changed] if replace else new
    _fetch(client, place, target, chosen)
    size = in_units(sum(item.size for item in chosen))
    same = len(remote) - len(new) - len(changed)
    print(f"fetched {counted(len(chosen), 'file')}, {size}; {same} unchanged")
    if changed and not replace:
        names = ", ".join(plain(item.name) for item in changed[:_SHOWN])
        more = ", …" if len(changed) > _SHOWN else ""
        count = counted(len(changed), "local file")
        what = f"the download did not replace {count} with other content: {names}{more}."
        raise CommandError(what, "to replace these files, add --replace")


def _fetch(
    client: storage.Client, place: Place, target: RootDirectory, objects: list[RemoteObject]
) -> None:
    bucket = client.bucket(place.bucket)
    target.path.mkdir(parents=True, exist_ok=True)

    def fetch(item: RemoteObject) -> None:
        digest = hashlib.sha256(item.name.encode()).hexdigest()[:32]
        part = f"{PARTIAL}/{digest}.{item.generation}"
        blob = bucket.blob(place.prefix + item.name, generation=item.generation)
        local_file = target.check(part)
        have = local_file.st_size if local_file else 0
        if have < item.size or not item.size:
            with target.append(part) as file:
                blob.download_to_file(file, start=have or None, raw_download=True, timeout=TIMEOUT)
        if _checksum(target.open(part)) != item.crc32c:
            target.remove(part)
            raise CommandError(
                f"{item.name}: the checksum of the download is wrong.", "run the command again."
            )
        try:
            target.move(part, item.name)
        except UnsafePathError as error:
            raise _explained(error, target.path, item.name) from None

    try:
        cloud.run_all(objects, fetch, place)
    finally:
        with suppress(OSError):  # The folder may contain incomplete files.
            (target.path / PARTIAL).rmdir()


def _checksum(file: BinaryIO) -> str:
    crc32c = google_crc32c.Checksum()
    with file:
        for _ in crc32c.consume(file, _BLOCK):
            pass
    return base64.b64encode(crc32c.digest()).decode()


def ensure_writable(folder: Path, names: Iterable[str]) -> None:
    """Refuse object names that lead out of ``folder``, or into a project or home folder."""
    target, parents = RootDirectory(folder, refuse_git=True), set[Path]()
    for name in names:
        try:
            if PARTIAL in name.split("/") or "\\" in name:
                raise UnsafePathError(errno.EINVAL, "is not a path below the folder", name)
            target.check(name)
        except UnsafePathError as error:
            raise _explained(error, folder, name) from None
        parents.update(folder / parent for parent in PurePosixPath(name).parents)
    for parent in sorted(parents):
        mark = next((f"has {mark}" for mark in MARKS if os.path.lexists(parent / mark)), "")
        if parent.resolve() == Path.home().resolve():
            mark = "is your home folder"
        if mark:
            what = f"{parent} {mark}, so objects are not downloaded into this folder."
            raise CommandError(what, "choose a separate folder, such as results.")


def _explained(error: UnsafePathError, folder: Path, name: str) -> CommandError:
    where = folder / (error.filename or "")
    what = f"cannot write object {name!r}: {where} {error.strerror}."
    return CommandError(what, "choose another folder, or move the existing file away.")
