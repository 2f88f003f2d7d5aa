"""Snapshots: files in a folder that never change, with a manifest that is written last.

``pulumi up`` writes the manifest of a BigQuery query, and :func:`write` that of files from your own
pipeline. :func:`open` reads both::

    from vertex_job import snapshot

    data = snapshot.open("CLICKS")       # a variable of the job: ${snapshots.clicks}
    for file in data.files: ...          # name, size, place
    table = data.dataframe()             # needs pandas, and pyarrow for Parquet

In a bucket, ``open`` compares size, generation and CRC32C of each object with the manifest, and
reads this generation. In ``/gcs/`` and folders it compares sizes. Reading compares the CRC32C
everywhere.
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
#: Version of the manifest's format.
FORMAT = 1
_DIGEST = "contentSha256"
#: Maximum size of a manifest: ten times that of the largest export.
_MOST_BYTES = 1 << 26
#: Folder of one attempt of an export; the manifest lists files of a single attempt.
_ATTEMPT = re.compile(r"export-\d+-\d+/")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_MOUNT = "/gcs/"
_CRC32C = re.compile(r"[A-Za-z0-9+/]{6}==")


@dataclass(frozen=True)
class SnapshotFile:
    """A file of a snapshot."""

    name: str
    """Name relative to the folder."""
    size: int
    generation: str
    crc32c: str
    place: str
    """``gs://`` URI or path; reading it directly verifies nothing."""


@dataclass(frozen=True)
class Snapshot:
    """A verified snapshot with its files."""

    store: DiskStore | BucketStore
    manifest: Mapping[str, Any]
    files: Sequence[SnapshotFile]

    def pieces(self, file: SnapshotFile) -> Iterator[bytes]:
        """Yield a file's content in pieces of 1 MB.

        Raises SnapshotError at the end if the content differs from the manifest.
        """
        size, checksum = 0, _Checksum()
        for piece in self.store.pieces(file.name, file.generation):
            size += len(piece)
            checksum.update(piece)
            yield piece
        if (size, checksum.text()) != (file.size, file.crc32c):
            raise SnapshotError(f"{file.place} differs from the manifest: other content")

    def read(self, file: SnapshotFile) -> bytes:
        """Return a file's content. Raises SnapshotError or StoreError."""
        return b"".join(self.pieces(file))

    def verify(self) -> None:
        """Read and verify every file. Raises SnapshotError or StoreError."""
        for file in self.files:
            for _piece in self.pieces(file):
                pass

    def dataframe(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows as a pandas DataFrame, in order of file names.

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
    """Open the snapshot at a ``gs://`` URI, a ``/gcs/`` path, a folder, or at a variable's value.

    A name in capitals is an environment variable; ``#GENERATION`` at the end is the manifest's.

    Raises:
        SnapshotError: the snapshot is missing, or differs from its manifest.
        StoreError: the snapshot cannot be read.
    """
    place, _, generation = _given(place).partition("#")
    place = place.removesuffix(f"/{MANIFEST}").rstrip("/")
    store = store_at(place)
    existing = store.files()
    listed = existing.pop(MANIFEST, None)
    if listed is None:
        what = "has no" if existing else "is missing or empty, without"
        raise SnapshotError(
            f"{place} {what} {MANIFEST}: the snapshot is missing or incomplete. Hint: pass "
            "${snapshots.KEY}, or the folder of snapshot.write(); the manifest is written last"
        )
    if listed.size > _MOST_BYTES:
        raise SnapshotError(
            f"{place}/{MANIFEST} has {listed.size} bytes, the limit is {_MOST_BYTES}"
        )
    if generation and listed.generation and generation != listed.generation:
        raise SnapshotError(
            f"{place}/{MANIFEST} has generation {listed.generation} instead of {generation}: "
            "the manifest was replaced"
        )
    text = b"".join(store.pieces(MANIFEST, listed.generation))
    manifest = _parsed(text, f"{place}/{MANIFEST}")
    files = [_file(entry, place) for entry in manifest["objects"]]
    for file in files:
        stored = existing.pop(file.name, None)
        if stored is None:
            raise SnapshotError(f"{file.place} is missing")
        for what, is_, was in (
            ("size", str(stored.size), str(file.size)),
            ("CRC32C", stored.crc32c, file.crc32c),
            ("generation", stored.generation, file.generation),
        ):
            if is_ and was and is_ != was:
                raise SnapshotError(
                    f"{file.place} differs from the manifest: {what} {is_} instead of {was}. Hint: "
                    "the file was replaced or copied; restore that generation, or create another "
                    "snapshot"
                )
    _refuse_others(existing, files, place)
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
    """Create a snapshot of the files in a folder, as the last step of a pipeline.

    ``schema`` has BigQuery's form: name, type and mode of each column. ``source`` describes the
    origin of the files. A second call with the same files returns the existing snapshot.

    Raises:
        SnapshotError: the folder has no files, other formats, or another manifest.
        StoreError: the folder cannot be read or written.
    """
    place = _given(place).rstrip("/")
    if place.startswith(_MOUNT):  # a mount shows no generations
        place = f"gs://{place.removeprefix(_MOUNT)}"
    store = store_at(place)
    existing = store.files()
    existing.pop(MANIFEST, None)
    if not existing:
        raise SnapshotError(f"{place} has no files")
    for other in existing:
        if not other.endswith(f".{file_format}"):
            raise SnapshotError(
                f"{place}/{other} is not a .{file_format} file. Hint: write each snapshot to a new "
                "folder, or correct file_format"
            )
    objects = [
        {
            "name": file_name,
            "size": file.size,
            "generation": file.generation,
            "crc32c": file.crc32c or _checksum_of(store.pieces(file_name)),
        }
        for file_name, file in sorted(existing.items())
    ]
    content: dict[str, Any] = {
        "format": FORMAT,
        "snapshot": {"name": name},
        "query": {},
        "sources": [dict(source)] if source else [],
        "schema": [dict(field) for field in schema],
        "rows": rows,
        "bytes": sum(file.size for file in existing.values()),
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
                f"{place}/{MANIFEST} already exists for other files. Hint: write to a new folder, "
                "since a snapshot never changes"
            ) from None


def _given(place: str) -> str:
    if not _VARIABLE.fullmatch(place):
        return place
    if not (value := os.environ.get(place, "")):
        raise SnapshotError(
            f"environment variable {place} is not set. Hint: set env: "
            f"{{{place}: ${{snapshots.KEY}}}} "
            f"in the job file; for a folder of this name, write ./{place}"
        )
    return value


def _parsed(text: bytes, where: str) -> dict[str, Any]:
    """Parse a manifest, and verify its format and digest."""
    try:
        manifest = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse)
        known = manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SnapshotError(
            f"{where} is not a valid manifest: {type(error).__name__}: {error}"
        ) from None
    if known != FORMAT or isinstance(known, bool):
        raise SnapshotError(
            f"{where} has format {known!r}, but this library reads {FORMAT}. Hint: install the "
            "version of the library that wrote the manifest"
        )
    try:
        digest = _digest(manifest)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{where} is not a valid manifest: {error}") from None
    if manifest.get(_DIGEST) != digest:
        raise SnapshotError(f"{where} was changed: {_DIGEST} does not match its content")
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
        if not isinstance(manifest.get(key), kinds) or isinstance(manifest.get(key), bool)
    ]
    if wrong:
        raise SnapshotError(f"{where} is not a valid manifest: wrong {', '.join(wrong)}")
    names = [entry.get("name") for entry in manifest["objects"] if isinstance(entry, dict)]
    if len(set(map(str, names))) != len(manifest["objects"]):
        raise SnapshotError(f"{where} is not a valid manifest: duplicate or missing object names")
    return manifest


def _file(listed: Mapping[str, Any], place: str) -> SnapshotFile:
    """Validate a row of the manifest, which is untrusted input."""
    name, size = listed.get("name"), listed.get("size")
    generation, crc32c = listed.get("generation"), listed.get("crc32c")
    if not (
        isinstance(name, str)
        and name.isprintable()
        and "\\" not in name
        and not {"", ".", ".."} & set(name.split("/"))
        and name != MANIFEST
    ):
        raise SnapshotError(
            f"{place}/{MANIFEST} lists {name!r}, which is not a valid name of a file"
        )
    if not (
        isinstance(size, int)
        and not isinstance(size, bool)
        and size >= 0
        and isinstance(generation, str)
        and re.fullmatch(r"[0-9]{0,20}", generation)
        and isinstance(crc32c, str)
        and _CRC32C.fullmatch(crc32c)
    ):
        raise SnapshotError(f"{place}/{MANIFEST}: invalid size, generation or crc32c of {name!r}")
    return SnapshotFile(name, size, generation, crc32c, f"{place}/{name}")


def _refuse_others(others: Iterable[str], files: Sequence[SnapshotFile], place: str) -> None:
    """Raise an error for files outside of the manifest, which readers of the folder would read.

    Files of other attempts of the export are in separate folders, and accepted.
    """
    attempts = {match[0] for file in files if (match := _ATTEMPT.match(file.name))}
    for name in sorted(others):
        match = _ATTEMPT.match(name)
        if not attempts or match is None or match[0] in attempts:
            raise SnapshotError(
                f"{place}/{name} is not part of the snapshot. Hint: remove the file, or find its "
                "origin first"
            )


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the manifest without its digest, in hex."""
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
    """CRC32C in the form of Cloud Storage, computed by google-crc32c if installed."""

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
        print("google-crc32c is not installed: verifying files takes a second per 2 MB", flush=True)
        return _extend
    return google_crc32c.extend


def _extend(value: int, data: bytes) -> int:
    """Compute CRC32C in pure Python."""
    table, value = _table(), value ^ 0xFFFFFFFF
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    table: list[int] = []
    for value in range(256):
        for _bit in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)
