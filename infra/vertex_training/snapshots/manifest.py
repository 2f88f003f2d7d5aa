"""The manifest of a snapshot: what was read, and which objects hold it. Pure.

It is the last object of a snapshot, written once. A folder without one is no snapshot.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.customjob.request.job_file import canonical
from vertex_training.snapshots.request import MANIFEST, SnapshotRequest

#: Another number was written by another version of this program.
FORMAT: Final = 1
CONTENT_DIGEST: Final = "contentSha256"
#: Bytes of a manifest: ten times what the most files of one export take.
MAX_BYTES: Final = 64 << 20
#: Lists and mappings in one another; a schema of BigQuery has 15 levels of two each.
_MAX_LEVELS: Final = 100
#: What a source was like when somebody looked, not what the query read.
_OF_THE_MOMENT: Final = ("lastChanged", "rows")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a snapshot. ``name`` is relative to its folder."""

    name: str
    size: int
    generation: int
    crc32c: str


def time_of(milliseconds: object) -> str | None:
    """A time of BigQuery's REST in the form of RFC 3339; None without one.

    >>> time_of("1700000000000")
    '2023-11-14T22:13:20.000Z'
    """
    if not milliseconds:
        return None
    moment = datetime.datetime.fromtimestamp(int(str(milliseconds)) / 1000, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_of_table(reference: Mapping[str, Any]) -> str:
    """``project.dataset.table`` of a TableReference."""
    return ".".join(str(reference.get(key, "")) for key in ("projectId", "datasetId", "tableId"))


def source_of(reference: Mapping[str, Any], table: Mapping[str, Any] | None) -> dict[str, Any]:
    """A source table as the manifest has it; ``table`` is None where it cannot be read."""
    found = table or {}
    rows = found.get("numRows")
    return {
        "table": name_of_table(reference),
        "lastChanged": time_of(found.get("lastModifiedTime")),
        "rows": None if rows is None else int(rows),
    }


def build(
    request: SnapshotRequest,
    query: Mapping[str, Any],
    result: Mapping[str, Any],
    sources: Sequence[Mapping[str, Any]],
    objects: Iterable[StoredObject],
) -> dict[str, Any]:
    """The manifest of a finished export.

    ``query`` is the query's job, ``result`` the table with its result.
    """
    statistics = query["statistics"]
    kept = sorted(objects, key=lambda each: each.name)
    content: dict[str, Any] = {
        "format": FORMAT,
        "snapshot": identity(request),
        "query": {
            "sqlSha256": request.sql_digest,
            "parameters": dict(request.parameters),
            "asOf": request.as_of,
            "location": request.location,
            "jobId": query["jobReference"]["jobId"],
            "queriedAt": time_of(statistics.get("startTime")),
            "bytesProcessed": int(statistics.get("totalBytesProcessed", 0)),
            "bytesBilled": int(statistics.get("query", {}).get("totalBytesBilled", 0)),
        },
        "sources": [dict(source) for source in sources],
        "schema": result.get("schema", {}).get("fields", []),
        "rows": int(result.get("numRows", 0)),
        "bytes": sum(each.size for each in kept),
        "fileFormat": request.format,
        "objects": [
            {
                "name": each.name,
                "size": each.size,
                "generation": str(each.generation),
                "crc32c": each.crc32c,
            }
            for each in kept
        ],
    }
    return {**content, CONTENT_DIGEST: content_digest(content)}


def identity(request: SnapshotRequest) -> dict[str, Any]:
    """Identity of a snapshot's run."""
    return {
        "project": request.project,
        "stack": request.stack,
        "name": request.name,
        "run": request.run,
        "requestId": request.request_id,
    }


def content_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of all else in the manifest, in hex."""
    rest = {key: value for key, value in manifest.items() if key != CONTENT_DIGEST}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def parse(text: bytes) -> dict[str, Any]:
    """A manifest.

    Raises:
        ValueError: it is none, or its digest is of something else.
    """
    try:
        result = json.loads(text)
        if result["format"] != FORMAT or result[CONTENT_DIGEST] != content_digest(result):
            raise ValueError("another format, or another digest")
        rows = [result["snapshot"], result["query"], *result["sources"], *result["objects"]]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("its parts have another form")
        if _levels(result) > _MAX_LEVELS:
            raise ValueError("its parts are nested too deeply")
    except (KeyError, TypeError, RecursionError) as wrong:
        raise ValueError(f"no manifest: {type(wrong).__name__}") from None
    return result


def _levels(value: Any) -> int:
    """Return the depth of nested lists and mappings, at most one more than allowed."""
    level, inside = 0, [value]
    while inside and level <= _MAX_LEVELS:
        kept = [each for each in inside if isinstance(each, dict | list) and each]
        inside = [
            item for each in kept for item in (each.values() if isinstance(each, dict) else each)
        ]
        level += bool(kept)
    return level


def export_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of the manifest but for what its sources were like when somebody looked."""
    sources = [
        {key: value for key, value in source.items() if key not in _OF_THE_MOMENT}
        for source in manifest["sources"]
    ]
    return content_digest({**manifest, "sources": sources})


def record_of(request: SnapshotRequest, generation: int) -> str:
    """The manifest as records and outputs name it: ``gs://…/manifest.json#GENERATION``."""
    return f"{request.uri}/{MANIFEST}#{generation}"
