"""Files to objects, by the official client; none that looks like a secret."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vertex_training.errors import CommandError
from vertex_training.secret_rules.files import File, scan
from vertex_training.settings.model import Settings
from vertex_training_cli.data.cloud import TIMEOUT, Place, RemoteObject, run_all
from vertex_training_cli.data.files import LocalFile

if TYPE_CHECKING:
    from google.cloud import storage

#: Bytes from which it is worth that an interrupted upload of a file goes on, as gcloud's does.
LARGE: Final = 64 << 20
#: Secrets that a refusal names; the others are counted.
_SECRETS_SHOWN: Final = 10


def push(
    client: storage.Client,
    place: Place,
    files: Sequence[LocalFile],
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

    run_all(files, send, place, "write")


def refuse_secrets(
    files: Sequence[LocalFile], settings: Settings, root: Path, report: Callable[[str], None]
) -> None:
    """Refuse files that look like secrets and that the stack file does not allow.

    Raises:
        CommandError: with the file and line of each; or a file cannot be read.
    """
    try:
        found = scan((_file(file, root) for file in files), settings.allowed_secrets)
    except OSError as failed:
        raise CommandError(f"{failed.filename} cannot be read: {failed.strerror}.") from None
    if found.note:
        report(f"vt: {found.note}")
    if found.problems:
        shown = "; ".join(
            f"{each.location}: {each.what}" for each in found.problems[:_SECRETS_SHOWN]
        )
        count = len(found.problems) - _SECRETS_SHOWN
        more = f"; and {count} more" if count > 0 else ""
        hint = found.problems[0].hint.replace("leave the file out", "--exclude it")
        raise CommandError(f"{shown}{more}.", hint)


def _file(file: LocalFile, root: Path) -> File:
    """Name a file from the top of the checkout, if it is below it."""
    path = file.path.resolve()
    name = path.relative_to(root.resolve()) if path.is_relative_to(root.resolve()) else file.path

    def read() -> bytes:
        with file.open() as stream:
            return stream.read()

    return File(name.as_posix(), file.size, read)
