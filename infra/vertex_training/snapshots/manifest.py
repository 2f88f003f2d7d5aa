"""The manifest of a snapshot: its source tables and its objects. Pure.

The manifest is written last and once. A folder without a manifest is not a snapshot.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from vertex_training.customjob.request.job_file import canonical
from vertex_training.snapshots.request import MANIFEST, SnapshotRequest

#: Number of the manifest's format. Other releases of this program may use other numbers.
FORMAT: Final = 1
CONTENT_DIGEST: Final = "contentSha256"
#: Maximum size of a manifest: ten times the size for the largest possible export.
MAX_BYTES: Final = 64 << 20
#: Maximum nesting of lists and mappings. A BigQuery schema needs at most 30 levels.
_MAX_LEVELS: Final = 100
#: Fields of a source table that are read after the query and so may differ from its time.
_OF_THE_MOMENT: Final = ("lastChanged", "rows")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a snapshot. ``name`` is relative to the snapshot's folder."""

    name: str
    size: int
    generation: int
    crc32c: str


def time_of(milliseconds: object) -> str | None:
    """Convert a time of BigQuery, in milliseconds as text, to RFC 3339; None if missing."""
    if not milliseconds:
        return None
    moment = datetime.datetime.fromtimestamp(int(str(milliseconds)) / 1000, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def name_of_table(reference: Mapping[str, Any]) -> str:
    """Return the name ``PROJECT.DATASET.TABLE`` of a TableReference."""
    return ".".join(str(reference.get(key, "")) for key in ("projectId", "datasetId", "tableId"))


def source_of(reference: Mapping[str, Any], table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a source table's entry in the manifest. ``table`` is None if it is unreadable."""
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
    """Build the manifest of a finished export from the query's job and its result table."""
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
        "objects": [{**asdict(file), "generation": str(file.generation)} for file in files],
    }
    return {**content, CONTENT_DIGEST: content_digest(content)}


def identity(request: SnapshotRequest) -> dict[str, Any]:
    """Return the fields of a manifest that identify the run of a snapshot."""
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
    """Parse a manifest. Raises ValueError for an invalid text and for a wrong digest."""
    try:
        result = json.loads(text)
        if result["format"] != FORMAT or result[CONTENT_DIGEST] != content_digest(result):
            raise ValueError("the manifest has an unknown format number or a wrong digest")
        rows = [result["snapshot"], result["query"], *result["sources"], *result["objects"]]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a section of the manifest is not a mapping")
        if _levels(result) > _MAX_LEVELS:
            raise ValueError(f"the manifest has more than {_MAX_LEVELS} levels of nesting")
    except (KeyError, TypeError, RecursionError) as wrong:
        raise ValueError(f"the text is not a manifest ({type(wrong).__name__})") from None
    return result


def _levels(value: Any) -> int:
    """Return the depth of nested lists and mappings, or the limit plus one for deeper nesting."""
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
    """Return the SHA-256 of the manifest without fields of sources that change over time."""
    sources = [
        {key: value for key, value in source.items() if key not in _OF_THE_MOMENT}
        for source in manifest["sources"]
    ]
    return content_digest({**manifest, "sources": sources})


def record_of(request: SnapshotRequest, generation: int) -> str:
    """Return the manifest's name in records and outputs: ``gs://…/manifest.json#GENERATION``."""
    return f"{request.uri}/{MANIFEST}#{generation}"
