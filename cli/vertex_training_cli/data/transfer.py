"""Files to objects and objects to files, by the official client.

No file that looks like a secret is sent. A file appears when it is whole and its checksum is right:
until then it lies in ``.vt-data`` in the same folder, and goes on from there after a kill. Objects
are taken as they are stored.
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

#: Bytes from which it is worth that an interrupted upload of a file goes on, as gcloud's does.
LARGE: Final = 64 << 20
#: Secrets that a refusal names; the others are counted.
_SECRETS_SHOWN: Final = 10
#: A folder that has one of these is a checkout, a Pulumi project or a policy pack.
MARKS: Final = (".git", "Pulumi.yaml", "PulumiPolicy.yaml")


def push(
    client: storage.Client,
    place: Place,
    files_to_push: Sequence[LocalFile],
    remote: Mapping[str, RemoteObject],
) -> None:
    """Send files, each in the place of the object that was compared with it.

    Raises:
        CommandError: a file was not sent. All others were tried, and those that arrived stay.
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
    """Refuse files that look like secrets and that the stack file does not allow.

    Raises:
        CommandError: with the file and line of each; or a file cannot be read.
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
    """Name a file from the top of the checkout, if it is below it."""
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
        CommandError: an object was not fetched. All others were tried, and whole files stay.
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
            raise CommandError(f"{item.name}: what arrived is damaged.", "run it again.")
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
    """Refuse names of objects (without prefix) that cannot be files below ``folder``.

    Raises:
        CommandError: a name leads elsewhere, by its parts or by a link, or to where files are
            programs or settings: a project, a checkout, the user's own folder.
    """
    target, parents = files.below(folder), set[Path]()
    for name in names:
        try:
            if files.PARTIAL in name.split("/") or "\\" in name:
                raise UnsafePathError(errno.EINVAL, "is no path below the folder", name)
            target.check(name)
        except UnsafePathError as error:
            raise explained(error, folder, name) from None
        parents.update(folder / parent for parent in PurePosixPath(name).parents)
    for parent in sorted(parents):
        if mark := _mark(parent):
            what = f"{parent} {mark}: no object becomes a file of it."
            raise CommandError(what, "name a folder of its own, such as results; or --exclude.")


def explained(error: UnsafePathError, folder: Path, name: str) -> CommandError:
    """Return a path that is not written to as a line with what to do."""
    where = folder / (error.filename or "")
    what = f"{where} {error.strerror}: the object {name!r} cannot be a file there."
    return CommandError(what, "--exclude it, or move away what is in its place.")


def _mark(folder: Path) -> str:
    """Return a reason why files of a folder are more than data; empty if there is none."""
    if folder.resolve() == Path.home().resolve():
        return "is your home"
    return next((f"has {mark}" for mark in MARKS if os.path.lexists(folder / mark)), "")
