"""Objects to files, by the official client.

A file appears when it is whole and its checksum is right. Until then it lies in ``.vt-data`` in the
same folder; a large one goes on from there after a kill. Objects are taken as they are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localgcp.errors import UnsafePathError
from localgcp.root_directory import RootDirectory
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
    bucket, target = client.bucket(place.bucket), files.below(folder)
    folder.mkdir(parents=True, exist_ok=True)
    failed: list[tuple[Pair, Exception]] = []

    def fetch(pair: Pair) -> Exception | None:
        try:
            _fetch(_blob(bucket, place, pair), target, pair)
        except Exception as error:  # the others go on
            return error
        return None

    with ThreadPoolExecutor(WORKERS) as workers:
        for batch in batches([pair for pair in chosen if pair.size < LARGE]):
            for pair, error in zip(batch, workers.map(fetch, batch), strict=True):
                if error is None:
                    _finish(target, pair)
                else:
                    failed.append((pair, error))
            advance(sum(pair.size for pair in batch))
    for pair in chosen:
        if pair.size >= LARGE:
            with plain_errors(place, "read"):
                _fetch_large(_blob(bucket, place, pair), target, pair, advance)
            _finish(target, pair)
    with suppress(OSError):  # has parts of files that failed
        (folder / files.PARTIAL).rmdir()
    if failed:
        raise failure(failed, place, "read")
    return len(chosen)


def _blob(bucket: storage.Bucket, place: Place, pair: Pair) -> storage.Blob:
    generation = pair.object.generation if pair.object else None
    return bucket.blob(place.prefix + pair.name, generation=generation)


def _part(pair: Pair) -> str:
    generation = pair.object.generation if pair.object else 0
    name = hashlib.sha256(pair.name.encode()).hexdigest()[:32]
    return f"{files.PARTIAL}/{name}.{generation}"


def _fetch(blob: storage.Blob, target: RootDirectory, pair: Pair) -> None:
    target.remove(_part(pair))
    with target.append(_part(pair)) as part:
        blob.download_to_file(part, raw_download=True, timeout=TIMEOUT)


def _fetch_large(blob: storage.Blob, target: RootDirectory, pair: Pair, advance: Advance) -> None:
    found = target.check(_part(pair))
    have = found.st_size if found else 0
    if have > pair.size:
        target.remove(_part(pair))
        have = 0
    advance(have)
    with target.append(_part(pair)) as part:
        while have < pair.size:
            end = min(have + LARGE, pair.size) - 1
            blob.download_to_file(part, start=have, end=end, raw_download=True, timeout=TIMEOUT)
            advance(end + 1 - have)
            have = end + 1


def _finish(target: RootDirectory, pair: Pair) -> None:
    """Move a whole file to its place. Raises CommandError if its checksum is another."""
    expected = pair.object.crc32c if pair.object else ""
    if files.checksum(target.open(_part(pair))) != expected:
        target.remove(_part(pair))
        raise CommandError(f"{pair.name}: what arrived is damaged.", "run it again.")
    try:
        target.move(_part(pair), pair.name)
    except UnsafePathError as error:
        raise files.explained(error, target.path, pair.name) from None
