"""Data that was written once: files below one folder, and the manifest that was written last.

``pulumi up`` makes the manifest of a query in BigQuery, and :func:`write` that of files which a
pipeline of yours has written. :func:`open` finds both::

    from vertex_job import snapshot

    data = snapshot.open("CLICKS")       # a variable of the job: ${snapshots.clicks}
    for file in data.files: ...          # name, size, place
    table = data.dataframe()             # needs pandas, and pyarrow for Parquet

In a bucket, ``open`` compares size, generation and CRC32C of each object, from the bucket's list,
and what is read is of that generation. Below ``/gcs/`` or a folder there are sizes alone; there as
in a bucket, what is read is compared with its CRC32C.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from vertex_job.errors import AlreadyExistsError, SnapshotError
from vertex_job.stores import BucketStore, DiskStore, store_at

MANIFEST = "manifest.json"
#: Another number is of another version of what writes manifests.
FORMAT = 1
_DIGEST = "contentSha256"
#: A larger one is not loaded; ten times what the most files of one export take.
_MOST_BYTES = 1 << 26
#: Folders of attempts of one export: the manifest names the files of one of them.
_ATTEMPT = re.compile(r"export-\d+-\d+/")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_MOUNT = "/gcs/"
_CRC32C = re.compile(r"[A-Za-z0-9+/]{6}==")


@dataclass(frozen=True)
class SnapshotFile:
    """A file of a snapshot."""

    name: str
    """Below the folder."""
    size: int
    generation: str
    crc32c: str
    place: str
    """``gs://`` URI or path. Who reads there compares nothing."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot whose files are there."""

    store: DiskStore | BucketStore
    manifest: Mapping[str, Any]
    files: Sequence[SnapshotFile]

    def pieces(self, file: SnapshotFile) -> Iterator[bytes]:
        """A file's content, a megabyte at a time; raises SnapshotError at its end if it is not what
        was written."""
        size, checksum = 0, _Checksum()
        for piece in self.store.pieces(file.name, file.generation):
            size += len(piece)
            checksum.update(piece)
            yield piece
        if (size, checksum.text()) != (file.size, file.crc32c):
            raise SnapshotError(f"{file.place} is not what the manifest says: its content differs")

    def read(self, file: SnapshotFile) -> bytes:
        """A file's content. Raises SnapshotError or StoreError."""
        return b"".join(self.pieces(file))

    def verify(self) -> None:
        """Read every file. Raises SnapshotError or StoreError."""
        for file in self.files:
            for _piece in self.pieces(file):
                pass

    def dataframe(self, columns: Sequence[str] | None = None) -> Any:
        """All rows as one DataFrame of pandas; its order is that of the files' names.

        Raises:
            SnapshotError: pandas or pyarrow is not installed, or the files have another format.
        """
        kind = self.manifest["fileFormat"]
        try:
            pd: Any = importlib.import_module("pandas")

            if kind == "parquet":
                importlib.import_module("pyarrow")
        except ImportError as error:
            raise SnapshotError(
                f"dataframe() needs {error.name}: install it in the image"
            ) from None
        load: dict[str, Callable[[io.BytesIO], Any]] = {
            "parquet": lambda data: pd.read_parquet(data, columns=columns and list(columns)),
            "csv": lambda data: pd.read_csv(data, usecols=columns and list(columns)),
        }
        if kind not in load:
            raise SnapshotError(f"dataframe() reads parquet and csv, not {kind!r}: use read()")
        frames = [load[kind](io.BytesIO(self.read(file))) for file in self.files]
        return pd.concat(frames, ignore_index=True)


def open(place: str) -> Snapshot:
    """The snapshot at a ``gs://`` URI, below ``/gcs/`` or in a folder, or where a variable says.

    A name in capitals is that of a variable; ``#GENERATION`` at the end is the manifest's.

    Raises:
        SnapshotError: there is none, or it is not as its manifest says; the text says how.
        StoreError: it cannot be read.
    """
    place, _, generation = _given(place).partition("#")
    place = place.removesuffix(f"/{MANIFEST}").rstrip("/")
    store = store_at(place)
    there = store.files()
    listed = there.pop(MANIFEST, None)
    if listed is None:
        what = "has no" if there else "is empty, or not there: no"
        raise SnapshotError(
            f"{place} {what} {MANIFEST}, so it is no snapshot, or none yet. Hint: pulumi up writes "
            "it last; give ${snapshots.KEY}, or the folder that snapshot.write() was given"
        )
    if listed.size > _MOST_BYTES:
        raise SnapshotError(f"{place}/{MANIFEST} has {listed.size} bytes: no manifest is as large")
    if generation and listed.generation and generation != listed.generation:
        raise SnapshotError(
            f"{place}/{MANIFEST} has generation {listed.generation}, not {generation}: "
            "it was written anew"
        )
    text = b"".join(store.pieces(MANIFEST, listed.generation))
    manifest = _parsed(text, f"{place}/{MANIFEST}")
    files = [_file(each, place) for each in manifest["objects"]]
    for file in files:
        found = there.pop(file.name, None)
        if found is None:
            raise SnapshotError(f"{file.place} is missing")
        for what, is_, was in (
            ("size", str(found.size), str(file.size)),
            ("CRC32C", found.crc32c, file.crc32c),
            ("generation", found.generation, file.generation),
        ):
            if is_ and was and is_ != was:
                raise SnapshotError(
                    f"{file.place} is not what the manifest says: {what} {is_}, not {was}. Hint: "
                    "it was written anew or copied; restore that generation, or make another "
                    "snapshot"
                )
    _refuse_others(there, files, place)
    return Snapshot(store, manifest, files)


def write(
    place: str,
    *,
    name: str,
    file_format: str = "parquet",
    rows: int | None = None,
    schema: Sequence[Mapping[str, Any]] = (),
    source: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Make a snapshot of the files below a folder, as the last step of a pipeline.

    ``schema`` has BigQuery's form: name, type and mode of each column. ``source`` says, in your
    words, what the files come from. The manifest is written if there is none. The same once more
    returns what is there.

    Raises:
        SnapshotError: there are no files, files of another format, or another manifest.
        StoreError: the folder cannot be read or written.
    """
    place = _given(place).rstrip("/")
    if place.startswith(_MOUNT):  # a mount shows no generations
        place = f"gs://{place.removeprefix(_MOUNT)}"
    store = store_at(place)
    there = store.files()
    there.pop(MANIFEST, None)
    if not there:
        raise SnapshotError(f"{place} has no files")
    for other in there:
        if not other.endswith(f".{file_format}"):
            raise SnapshotError(
                f"{place}/{other} is no .{file_format} file. Hint: an attempt that failed left it, "
                "or file_format is another; write to a new folder each time"
            )
    objects = [
        {
            "name": each,
            "size": file.size,
            "generation": file.generation,
            "crc32c": file.crc32c or _checksum_of(store.pieces(each)),
        }
        for each, file in sorted(there.items())
    ]
    content: dict[str, Any] = {
        "format": FORMAT,
        "snapshot": {"name": name},
        "query": {},
        "sources": [dict(source)] if source else [],
        "schema": [dict(field) for field in schema],
        "rows": rows,
        "bytes": sum(file.size for file in there.values()),
        "fileFormat": file_format,
        "objects": objects,
    }
    _create(store, place, content)
    return open(place)


def _create(store: DiskStore | BucketStore, place: str, content: Mapping[str, Any]) -> None:
    text = _canonical({**content, _DIGEST: _digest(content)}).encode()
    try:
        store.create(MANIFEST, text)
    except AlreadyExistsError:
        if store.read(MANIFEST) != text:
            raise SnapshotError(
                f"{place}/{MANIFEST} is there, of other files. Hint: a snapshot never changes; "
                "write to a new folder"
            ) from None


def _given(place: str) -> str:
    if not _VARIABLE.fullmatch(place):
        return place
    if not (value := os.environ.get(place, "")):
        raise SnapshotError(
            f"the variable {place} is not set. Hint: env: {{{place}: ${{snapshots.KEY}}}} in the "
            "job file; a folder of that name is ./" + place
        )
    return value


def _parsed(text: bytes, where: str) -> dict[str, Any]:
    """A manifest of our format, with the digest that it says."""
    try:
        found = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse)
        known = found["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SnapshotError(f"{where} is no manifest: {type(error).__name__}: {error}") from None
    if known != FORMAT or isinstance(known, bool):
        raise SnapshotError(
            f"{where} has format {known!r}, and this library reads {FORMAT}. Hint: take the "
            "library of the version that wrote it"
        )
    try:
        digest = _digest(found)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{where} is no manifest: {error}") from None
    if found.get(_DIGEST) != digest:
        raise SnapshotError(f"{where} was altered: its {_DIGEST} is of something else")
    wrong = [
        key
        for key, kinds in {
            "snapshot": dict,
            "schema": list,
            "sources": list,
            "objects": list,
            "fileFormat": str,
            "rows": (int, type(None)),
        }.items()
        if not isinstance(found.get(key), kinds) or isinstance(found.get(key), bool)
    ]
    if wrong:
        raise SnapshotError(f"{where} is no manifest: {', '.join(wrong)}")
    names = [each.get("name") for each in found["objects"] if isinstance(each, dict)]
    if len(set(map(str, names))) != len(found["objects"]):
        raise SnapshotError(f"{where} is no manifest: it names an object twice, or not at all")
    return found


def _file(listed: Mapping[str, Any], place: str) -> SnapshotFile:
    """A row of the manifest, which may be anybody's."""
    name, size = listed.get("name"), listed.get("size")
    generation, crc32c = listed.get("generation"), listed.get("crc32c")
    if not (
        isinstance(name, str)
        and name.isprintable()
        and "\\" not in name
        and not {"", ".", ".."} & set(name.split("/"))
        and name != MANIFEST
    ):
        raise SnapshotError(f"{place}/{MANIFEST} names {name!r}, which is no file below {place}")
    if not (
        isinstance(size, int)
        and not isinstance(size, bool)
        and size >= 0
        and isinstance(generation, str)
        and re.fullmatch(r"[0-9]{0,20}", generation)
        and isinstance(crc32c, str)
        and _CRC32C.fullmatch(crc32c)
    ):
        raise SnapshotError(f"{place}/{MANIFEST}: wrong size, generation or crc32c of {name!r}")
    return SnapshotFile(name, size, generation, crc32c, f"{place}/{name}")


def _refuse_others(others: Iterable[str], files: Sequence[SnapshotFile], place: str) -> None:
    """A reader that takes all of the folder would read them as well.

    What another attempt of the export left is in a folder of its own.
    """
    attempts = {match[0] for file in files if (match := _ATTEMPT.match(file.name))}
    for name in sorted(others):
        match = _ATTEMPT.match(name)
        if not attempts or match is None or match[0] in attempts:
            raise SnapshotError(
                f"{place}/{name} is no object of the snapshot. Hint: find out who wrote it there, "
                "and remove it"
            )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of all else in the manifest, in hex, as who wrote it has it."""
    rest = {key: value for key, value in manifest.items() if key != _DIGEST}
    return hashlib.sha256(_canonical(rest).encode()).hexdigest()


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _checksum_of(pieces: Iterable[bytes]) -> str:
    checksum = _Checksum()
    for piece in pieces:
        checksum.update(piece)
    return checksum.text()


class _Checksum:
    """CRC32C as Cloud Storage writes it: by google-crc32c where that is installed."""

    def __init__(self) -> None:
        self._value, self._extend = 0, _fastest()

    def update(self, data: bytes) -> None:
        self._value = self._extend(self._value, data)

    def text(self) -> str:
        return base64.b64encode(self._value.to_bytes(4, "big")).decode()


@cache
def _fastest() -> Callable[[int, bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        print("google-crc32c is not installed: comparing files takes a second for 2 MB", flush=True)
        return _extend
    return google_crc32c.extend


def _extend(value: int, data: bytes) -> int:
    """CRC32C by Python alone."""
    table, value = _table(), value ^ 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    found: list[int] = []
    for value in range(256):
        for _bit in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        found.append(value)
    return tuple(found)
