"""Objects to files, by the official client's transfer manager.

A file appears when it is whole and its checksum is right. Until then it lies in ``.vt-data`` in the
same folder; a large one goes on from there after a kill. Objects are taken as they are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vertex_training.errors import CommandError
from vertex_training_cli.data import files
from vertex_training_cli.data.cloud import TIMEOUT, plain_errors
from vertex_training_cli.data.comparison import Pair
from vertex_training_cli.data.places import Place
from vertex_training_cli.data.progress import Advance
from vertex_training_cli.data.upload import LARGE, WORKERS, batches, failure

if TYPE_CHECKING:
    from google.cloud import storage


def pull(
    client: storage.Client, place: Place, folder: Path, pairs: Iterable[Pair], advance: Advance
) -> int:
    """Fetch the objects of ``pairs`` into ``folder``; how many were fetched.

    Raises:
        CommandError: an object was not fetched. All others were tried, and whole files stay.
    """
    chosen = list(pairs)
    bucket = client.bucket(place.bucket)
    partial = folder / files.PARTIAL
    partial.mkdir(mode=0o700, parents=True, exist_ok=True)
    failed: list[tuple[Pair, Exception]] = []
    for batch in batches([pair for pair in chosen if pair.size < LARGE]):
        blobs = [_blob(bucket, place, pair) for pair in batch]
        for pair, error in zip(batch, _fetch_many(blobs, partial, batch), strict=True):
            if error is None:
                _finish(partial, folder, pair)
            else:
                failed.append((pair, error))
        advance(sum(pair.size for pair in batch))
    for pair in chosen:
        if pair.size >= LARGE:
            with plain_errors(place, "read"):
                _fetch_large(_blob(bucket, place, pair), partial, pair, advance)
            _finish(partial, folder, pair)
    with suppress(OSError):  # has parts of files that failed
        partial.rmdir()
    if failed:
        raise failure(failed, place, "read")
    return len(chosen)


def _blob(bucket: storage.Bucket, place: Place, pair: Pair) -> storage.Blob:
    generation = pair.object.generation if pair.object else None
    return bucket.blob(place.prefix + pair.name, generation=generation)


def _part(partial: Path, pair: Pair) -> Path:
    generation = pair.object.generation if pair.object else 0
    name = hashlib.sha256(pair.name.encode()).hexdigest()[:32]
    return partial / f"{name}.{generation}"


def _fetch_many(
    blobs: list[storage.Blob], partial: Path, pairs: list[Pair]
) -> list[Exception | None]:
    """Fetch these objects into their parts; what went wrong with each."""
    from google.cloud.storage import transfer_manager

    results: list[Any] = transfer_manager.download_many(
        [(blob, str(_part(partial, pair))) for blob, pair in zip(blobs, pairs, strict=True)],
        worker_type=transfer_manager.THREAD,
        max_workers=WORKERS,
        download_kwargs={"raw_download": True, "timeout": TIMEOUT},
    )
    return [result if isinstance(result, Exception) else None for result in results]


def _fetch_large(blob: storage.Blob, partial: Path, pair: Pair, advance: Advance) -> None:
    part = _part(partial, pair)
    have = part.stat().st_size if part.exists() else 0
    if have > pair.size:
        part.unlink()
        have = 0
    advance(have)
    with part.open("ab") as file:
        step = LARGE
        while have < pair.size:
            end = min(have + step, pair.size) - 1
            blob.download_to_file(file, start=have, end=end, raw_download=True, timeout=TIMEOUT)
            advance(end + 1 - have)
            have = end + 1


def _finish(partial: Path, folder: Path, pair: Pair) -> None:
    """Move a whole file to its place. Raises CommandError if its checksum is another."""
    part = _part(partial, pair)
    expected = pair.object.crc32c if pair.object else ""
    if files.checksum(part) != expected:
        part.unlink()
        raise CommandError(f"{pair.name}: what arrived is damaged.", "run it again.")
    path = files.target(folder, pair.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    part.replace(path)
