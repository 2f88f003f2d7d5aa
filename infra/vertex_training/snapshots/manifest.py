"""The manifest of a snapshot: its source tables and its objects. Pure.

The manifest is the last object of a snapshot and is written once. A folder without a manifest is
not a snapshot.
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

#: Format of the manifest. Other versions of this program may use other numbers.
FORMAT: Final = 1
CONTENT_DIGEST: Final = "contentSha256"
#: Maximum size of a manifest: ten times that of the largest export.
MAX_BYTES: Final = 64 << 20
#: Maximum nesting of lists and mappings; a BigQuery schema has 15 levels of two each.
_MAX_LEVELS: Final = 100
#: Fields of a source table that are read after the query, so not as of the query's time.
_OF_THE_MOMENT: Final = ("lastChanged", "rows")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a snapshot. ``name`` is relative to the snapshot's folder."""

    name: str
    size: int
    generation: int
    crc32c: str


def time_of(milliseconds: object) -> str | None:
    """Convert a time of BigQuery's REST API to RFC 3339; None if missing.

    >>> time_of("1700000000000")
    '2023-11-14T22:13:20.000Z'
    """
    if not milliseconds:
        return None
    moment = datetime.datetime.fromtimestamp(int(str(milliseconds)) / 1000, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_of_table(reference: Mapping[str, Any]) -> str:
    """Return the name ``project.dataset.table`` of a TableReference."""
    return ".".join(str(reference.get(key, "")) for key in ("projectId", "datasetId", "tableId"))


def source_of(reference: Mapping[str, Any], table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a source table's entry in the manifest; ``table`` is None if it cannot be read."""
    properties = table or {}
    rows = properties.get("numRows")
    return {
        "table": name_of_table(reference),
        "lastChanged": time_of(properties.get("lastModifiedTime")),
        "rows": None if rows is None else int(rows),
    }


def build(
    request: SnapshotRequest,
    query: Mapping[str, Any],
    result: Mapping[str, Any],
    sources: Sequence[Mapping[str, Any]],
    objects: Iterable[StoredObject],
) -> dict[str, Any]:
    """Build the manifest of a finished export.

    ``query`` is the query's job, ``result`` the table with its result.
    """
    statistics = query["statistics"]
    files = sorted(objects, key=lambda file: file.name)
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
        "bytes": sum(file.size for file in files),
        "fileFormat": request.format,
        "objects": [
            {
                "name": file.name,
                "size": file.size,
                "generation": str(file.generation),
                "crc32c": file.crc32c,
            }
            for file in files
        ],
    }
    return {**content, CONTENT_DIGEST: content_digest(content)}


def identity(request: SnapshotRequest) -> dict[str, Any]:
    """Return the digest that identifies a run of a snapshot."""
    return {
        "project": request.project,
        "stack": request.stack,
        "name": request.name,
        "run": request.run,
        "requestId": request.request_id,
    }


def content_digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the manifest without its digest, in hex."""
    rest = {key: value for key, value in manifest.items() if key != CONTENT_DIGEST}
    return hashlib.sha256(canonical(rest).encode()).hexdigest()


def parse(text: bytes) -> dict[str, Any]:
    """Parse a manifest.

    Raises:
        ValueError: the text is not a manifest, or has a wrong digest.
    """
    try:
        result = json.loads(text)
        if result["format"] != FORMAT or result[CONTENT_DIGEST] != content_digest(result):
            raise ValueError("the manifest has an unknown format or a wrong digest")
        rows = [result["snapshot"], result["query"], *result["sources"], *result["objects"]]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("parts of the manifest have an unexpected form")
        if _levels(result) > _MAX_LEVELS:
            raise ValueError("the manifest is nested too deeply")
    except (KeyError, TypeError, RecursionError) as wrong:
        raise ValueError(f"not a manifest: {type(wrong).__name__}") from None
    return result


def _levels(value: Any) -> int:
    """Return the depth of nested lists and mappings, but at most one more than the limit."""
    level, inside = 0, [value]
    while inside and level <= _MAX_LEVELS:
        nested = [value for value in inside if isinstance(value, dict | list) and value]
        inside = [
            item
            for value in nested
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        level += bool(nested)
    return level


def export_digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the manifest, except fields of sources that depend on the time."""
    sources = [
        {key: value for key, value in source.items() if key not in _OF_THE_MOMENT}
        for source in manifest["sources"]
    ]
    return content_digest({**manifest, "sources": sources})


def record_of(request: SnapshotRequest, generation: int) -> str:
    """Return the manifest's name for records and outputs: ``gs://…/manifest.json#GENERATION``."""
    return f"{request.uri}/{MANIFEST}#{generation}"
