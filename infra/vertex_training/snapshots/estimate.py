"""What a preview says of a snapshot: it exists, or what its query would read and cost. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.snapshots import protocol
from vertex_training.snapshots.manifest import name_of_table, time_of
from vertex_training.snapshots.protocol import Ports
from vertex_training.snapshots.request import SnapshotRequest

#: On demand, the same in the US and most regions: https://cloud.google.com/bigquery/pricing.
#: Observed in eight public files of 2026; the first TiB of a month is free.
USD_PER_TIB: Final = 6.25
#: Key of the inputs that the provider adds in a preview: information, and no part of a request.
RESOLVED: Final = "resolved"
#: Names of columns that look like data about a person.
_PERSONAL: Final = re.compile(
    r"(?:^|_)(?:e?mail|phone|mobile|ssn|passport|iban|birth(?:day|date)?|dob|"
    r"(?:first|last|full|sur|given|family)_?name|street|address|postcode|zip|ip|"
    r"credit_?card|gender|religion|latitude|longitude)(?:$|_)",
    re.IGNORECASE,
)


def usd(bytes_read: int) -> float:
    """The price of a query on demand."""
    return bytes_read / 2**40 * USD_PER_TIB


def look(request: SnapshotRequest, ports: Ports) -> dict[str, Any]:
    """What is known of the request before it is made.

    Raises:
        JobRefusedError, NotSubmittedError: it would be refused.
    """
    try:
        if (found := protocol.find(request, ports)) is not None:
            return {"exists": True, **_summary(found.manifest), **_changed(found.manifest, ports)}
        return {"exists": False, **_dry_run(request, ports)}
    except PermissionDeniedError as error:
        return {"unanswered": str(error)}
    except (JobRefusedError, NotSubmittedError):
        raise
    except OperatorError as error:
        return {"unanswered": str(error)}


def _summary(manifest: Mapping[str, Any]) -> dict[str, Any]:
    query = manifest["query"]
    return {
        "rows": manifest["rows"],
        "bytes": manifest["bytes"],
        "queriedAt": query["queriedAt"],
        "sources": [source["table"] for source in manifest["sources"]],
        "personal": personal_columns(manifest["schema"]),
    }


def _changed(manifest: Mapping[str, Any], ports: Ports) -> dict[str, Any]:
    """Source tables that changed after the query; nothing of a snapshot as of a time."""
    if manifest["query"]["asOf"]:
        return {}
    read_at, found = str(manifest["query"]["queriedAt"]), []
    for source in manifest["sources"]:
        project, dataset, table = str(source["table"]).rsplit(".", 2)
        reference = {"projectId": project, "datasetId": dataset, "tableId": table}
        changed = time_of((ports.warehouse.table(reference) or {}).get("lastModifiedTime"))
        if changed and changed > read_at:
            found.append(f"{source['table']} {changed}")
    return {"changed": found} if found else {}


def _dry_run(request: SnapshotRequest, ports: Ports) -> dict[str, Any]:
    # With the bound, BigQuery would refuse without saying how much it is.
    configuration = protocol.query_configuration(request)
    configuration["query"].pop("maximumBytesBilled")
    statistics = ports.warehouse.dry_run(configuration).get("statistics", {})
    query = statistics.get("query", {})
    size = int(statistics.get("totalBytesProcessed", 0))
    if size > request.max_bytes_billed:
        raise NotSubmittedError(
            f"the query of snapshot '{request.name}' reads {size:,} bytes, more than "
            f"maxBytesBilled, {request.max_bytes_billed:,}. Hint: raise it, or read less."
        )
    tables = sorted(name_of_table(each) for each in query.get("referencedTables", []))
    return {
        "processed": size,
        "capacity": bool(statistics.get("reservation_id") or statistics.get("edition")),
        "sources": tables,
        "personal": personal_columns(query.get("schema", {}).get("fields", [])),
    }


def personal_columns(fields: Any, prefix: str = "") -> list[str]:
    """Columns whose names look like data about a person, those inside of records as well."""
    return list(_personal(fields, prefix))


def _personal(fields: Any, prefix: str) -> Iterator[str]:
    for each in fields:
        name = f"{prefix}{each.get('name', '')}"
        if _PERSONAL.search(str(each.get("name", ""))):
            yield name
        yield from _personal(each.get("fields", []), f"{name}.")
