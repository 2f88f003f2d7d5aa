"""Files to objects, by the official client; large ones by sessions; none with a secret."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vertex_training.errors import CommandError
from vertex_training.secret_rules.files import File, scan
from vertex_training.settings.model import Settings
from vertex_training_cli.data import sessions
from vertex_training_cli.data.cloud import TIMEOUT, explained, plain_errors
from vertex_training_cli.data.comparison import Pair, RemoteObject
from vertex_training_cli.data.files import LocalFile
from vertex_training_cli.data.places import Place
from vertex_training_cli.data.progress import Advance

if TYPE_CHECKING:
    from google.cloud import storage

#: Bytes from which a file is worth a session.
LARGE: Final = 64 << 20
WORKERS: Final = 8
#: Secrets that a refusal names; the others are counted.
_SECRETS_SHOWN: Final = 10
#: Between two reports of how far it is.
_FILES: Final = 128
_BYTES: Final = 64 << 20


def push(client: storage.Client, place: Place, pairs: Iterable[Pair], advance: Advance) -> int:
    """Send the files of ``pairs``; how many were sent.

    Raises:
        CommandError: a file was not sent. All others were tried, and those that arrived stay.
    """
    bucket = client.bucket(place.bucket)
    chosen = list(pairs)
    failed: list[tuple[Pair, Exception]] = []

    def send(pair: Pair) -> Exception | None:
        try:
            _send(bucket.blob(place.prefix + pair.name), pair)
        except Exception as error:  # the others go on
            return error
        return None

    with ThreadPoolExecutor(WORKERS) as workers:
        for batch in batches([pair for pair in chosen if pair.size < LARGE]):
            results = workers.map(send, batch)
            failed += [(pair, error) for pair, error in zip(batch, results, strict=True) if error]
            advance(sum(pair.size for pair in batch))
    for pair in chosen:
        if pair.size >= LARGE:
            with plain_errors(place, "write"):
                sessions.upload(bucket, place.prefix, pair, advance)
    if failed:
        raise failure(failed, place, "write")
    return len(chosen)


def _send(blob: storage.Blob, pair: Pair) -> None:
    assert pair.file is not None
    with pair.file.open() as file:
        size = os.fstat(file.fileno()).st_size
        kind = mimetypes.guess_type(pair.name)[0]
        blob.upload_from_file(file, size=size, content_type=kind, timeout=TIMEOUT)


def delete(client: storage.Client, place: Place, objects: Iterable[RemoteObject]) -> None:
    """Delete these objects; one that is gone, or was written anew, is left as it is."""
    from google.api_core import exceptions

    bucket = client.bucket(place.bucket)
    for item in objects:
        with plain_errors(place, "write"):
            try:
                bucket.blob(place.prefix + item.name).delete(
                    if_generation_match=item.generation, timeout=TIMEOUT
                )
            except (exceptions.NotFound, exceptions.PreconditionFailed):
                continue


def batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """``pairs`` in lists of bounded length and size."""
    batch: list[Pair] = []
    for pair in pairs:
        if batch and (len(batch) == _FILES or sum(p.size for p in batch) + pair.size > _BYTES):
            yield batch
            batch = []
        batch.append(pair)
    if batch:
        yield batch


def failure(failed: Sequence[tuple[Pair, Exception]], place: Place, right: str) -> CommandError:
    """One error for all files that failed: the first by name, and how many."""
    pair, error = failed[0]
    if isinstance(error, OSError):
        first = CommandError(f"{pair.name}: {error.strerror or error}")
    else:
        first = explained(error, place, right)
    count = f"{len(failed)} files failed; the first is {pair.name!r}: " if len(failed) > 1 else ""
    return CommandError(count + first.message, first.hint)


def refuse_secrets(
    pairs: Iterable[Pair], settings: Settings, root: Path, report: Callable[[str], None]
) -> None:
    """Refuse files that look like secrets and that the stack file does not allow.

    Raises:
        CommandError: with the file and line of each; or a file cannot be read.
    """
    try:
        found = scan(
            (_file(pair.file, root) for pair in pairs if pair.file), settings.allowed_secrets
        )
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
    """Named from the top of the checkout, if it is below it."""
    path = file.path.resolve()
    name = path.relative_to(root.resolve()) if path.is_relative_to(root.resolve()) else file.path

    def read() -> bytes:
        with file.open() as stream:
            return stream.read()

    return File(name.as_posix(), file.size, read)
