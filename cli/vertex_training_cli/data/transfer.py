"""Upload files and download objects with the official client.

Files that look like secrets are not sent. A downloaded file appears after its checksum is verified.
Before that, it is in ``.vt-data`` in the same folder, where a later download resumes. Objects are
downloaded without decompression.
"""

from __future__ import annotations

import errno
import hashlib
import mimetypes
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from google.cloud import storage

from localgcp.errors import UnsafePathError
from vertex_training.errors import CommandError
from vertex_training.secret_rules.files import File, scan
from vertex_training.settings.model import Settings
from vertex_training_cli.data import files
from vertex_training_cli.data.cloud import TIMEOUT, Place, RemoteObject, run_all
from vertex_training_cli.data.files import LocalFile

#: File size in bytes from which resumable uploads with gcloud are recommended.
LARGE: Final = 64 << 20
#: Maximum number of secrets that an error lists; further secrets are only counted.
_SECRETS_SHOWN: Final = 10
#: Files that mark a folder as a checkout, a Pulumi project or a policy pack.
MARKS: Final = (".git", "Pulumi.yaml", "PulumiPolicy.yaml")


def push(
    client: storage.Client,
    place: Place,
    files_to_push: Sequence[LocalFile],
    remote: Mapping[str, RemoteObject],
) -> None:
    """Upload files; each upload replaces only the object version that was compared with the file.

    Raises:
        CommandError: a file was not sent. All files were tried, and complete objects stay.
    """
    bucket = client.bucket(place.bucket)

    def send(file: LocalFile) -> None:
        with file.open() as content:
            bucket.blob(place.prefix + file.name).upload_from_file(
                content,
                size=os.fstat(content.fileno()).st_size,
                content_type=mimetypes.guess_type(file.name)[0],
                if_generation_match=remote[file.name].generation if file.name in remote else 0,
                timeout=TIMEOUT,
            )

    run_all(files_to_push, send, place, "write")


def refuse_secrets(
    chosen: Sequence[LocalFile], settings: Settings, root: Path, report: Callable[[str], None]
) -> None:
    """Refuse files with possible secrets, except files that the stack file allows.

    Raises:
        CommandError: a file has a possible secret (the text has its line), or cannot be read.
    """
    try:
        secrets = scan((_file(file, root) for file in chosen), settings.allowed_secrets)
    except OSError as failed:
        raise CommandError(f"{failed.filename} cannot be read: {failed.strerror}.") from None
    if secrets.note:
        report(f"vt: {secrets.note}")
    if secrets.problems:
        shown = "; ".join(
            f"{problem.location}: {problem.what}" for problem in secrets.problems[:_SECRETS_SHOWN]
        )
        count = len(secrets.problems) - _SECRETS_SHOWN
        more = f"; and {count} more" if count > 0 else ""
        hint = secrets.problems[0].hint.replace("leave the file out", "--exclude it")
        raise CommandError(f"{shown}{more}.", hint)


def _file(file: LocalFile, root: Path) -> File:
    """Return a file whose path starts at the top of the checkout, if the file is inside."""
    path = file.path.resolve()
    name = path.relative_to(root.resolve()) if path.is_relative_to(root.resolve()) else file.path

    def read() -> bytes:
        with file.open() as stream:
            return stream.read()

    return File(name.as_posix(), file.size, read)


def pull(
    client: storage.Client, place: Place, folder: Path, objects: Sequence[RemoteObject]
) -> None:
    """Fetch objects into ``folder``.

    Raises:
        CommandError: an object was not fetched. All objects were tried, and complete files stay.
    """
    bucket, target = client.bucket(place.bucket), files.below(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def fetch(item: RemoteObject) -> None:
        digest = hashlib.sha256(item.name.encode()).hexdigest()[:32]
        part = f"{files.PARTIAL}/{digest}.{item.generation}"
        blob = bucket.blob(place.prefix + item.name, generation=item.generation)
        local_file = target.check(part)
        have = local_file.st_size if local_file else 0
        if have < item.size or not item.size:
            with target.append(part) as file:
                blob.download_to_file(file, start=have or None, raw_download=True, timeout=TIMEOUT)
        if files.checksum(target.open(part)) != item.crc32c:
            target.remove(part)
            raise CommandError(
                f"{item.name}: the checksum of the download is wrong.", "run the command again."
            )
        try:
            target.move(part, item.name)
        except UnsafePathError as error:
            raise explained(error, target.path, item.name) from None

    try:
        run_all(objects, fetch, place, "read")
    finally:
        with suppress(OSError):  # has parts of files that failed
            (folder / files.PARTIAL).rmdir()


def ensure_writable(folder: Path, names: Iterable[str]) -> None:
    """Refuse names of objects (without prefix) that are invalid below ``folder``.

    Raises:
        CommandError: a name leads out of the folder, or into a project, a checkout or the user's
            home, where files may be programs or settings.
    """
    target, parents = files.below(folder), set[Path]()
    for name in names:
        try:
            if files.PARTIAL in name.split("/") or "\\" in name:
                raise UnsafePathError(errno.EINVAL, "is not a path below the folder", name)
            target.check(name)
        except UnsafePathError as error:
            raise explained(error, folder, name) from None
        parents.update(folder / parent for parent in PurePosixPath(name).parents)
    for parent in sorted(parents):
        if mark := _mark(parent):
            what = f"{parent} {mark}: objects are not written there."
            raise CommandError(what, "choose a separate folder, such as results, or --exclude.")


def explained(error: UnsafePathError, folder: Path, name: str) -> CommandError:
    """Return the error for a refused path, on one line with a hint."""
    where = folder / (error.filename or "")
    what = f"{where} {error.strerror}: object {name!r} cannot be written there."
    return CommandError(what, "--exclude the object, or move the existing file away.")


def _mark(folder: Path) -> str:
    """Return why a folder may contain programs or settings; empty if it is a data folder."""
    if folder.resolve() == Path.home().resolve():
        return "is your home folder"
    return next((f"has {mark}" for mark in MARKS if os.path.lexists(folder / mark)), "")
