"""What differs between a folder and a bucket (pure but for the checksums of files)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from vertex_training_cli.data.files import LocalFile

What = Literal["new", "changed", "same"]


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object; ``name`` is without the prefix."""

    name: str
    size: int
    crc32c: str
    generation: int
    updated: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """One name, in the folder, in the bucket, or in both."""

    name: str
    what: What
    file: LocalFile | None = None
    object: RemoteObject | None = None

    @property
    def size(self) -> int:
        """Bytes that are to be sent, of what is new or changed."""
        source = self.file or self.object
        return source.size if source else 0


@dataclass(frozen=True, slots=True)
class FolderComparison:
    """Pairs by name; ``only_in_target`` has what the source does not have."""

    pairs: tuple[Pair, ...]
    only_in_target: tuple[str, ...] = ()

    def of(self, *what: What) -> tuple[Pair, ...]:
        """The pairs of these kinds."""
        return tuple(pair for pair in self.pairs if pair.what in what)


def to_push(
    files: Iterable[LocalFile],
    objects: Mapping[str, RemoteObject],
    checksum: Callable[[LocalFile], str],
) -> FolderComparison:
    """What a push sends. Files of equal size are compared by CRC32C."""
    pairs = [
        Pair(file.name, _kind(file, objects.get(file.name), checksum), file, objects.get(file.name))
        for file in files
    ]
    names = {pair.name for pair in pairs}
    return FolderComparison(tuple(pairs), tuple(sorted(set(objects) - names)))


def to_pull(
    files: Mapping[str, LocalFile],
    objects: Iterable[RemoteObject],
    checksum: Callable[[LocalFile], str],
) -> FolderComparison:
    """What a pull fetches: each object, with the file that it would replace."""
    pairs: list[Pair] = []
    for remote in objects:
        file = files.get(remote.name)
        kind = "new" if file is None else _kind(file, remote, checksum)
        pairs.append(Pair(remote.name, kind, file, remote))
    names = {pair.name for pair in pairs}
    return FolderComparison(tuple(pairs), tuple(sorted(set(files) - names)))


def _kind(
    file: LocalFile, remote: RemoteObject | None, checksum: Callable[[LocalFile], str]
) -> What:
    if remote is None:
        return "new"
    same = remote.size == file.size and remote.crc32c == checksum(file)
    return "same" if same else "changed"
