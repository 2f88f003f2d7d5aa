"""Preview of a snapshot: its content if it exists, else the bytes and cost of its query. Pure."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final

from vertex_training import catalog
from vertex_training.errors import (
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.snapshots import protocol
from vertex_training.snapshots.manifest import name_of_table, time_of
from vertex_training.snapshots.protocol import SnapshotPorts
from vertex_training.snapshots.request import SnapshotRequest

#: Minimum number of bytes that BigQuery bills for a table: https://cloud.google.com/bigquery/pricing
LEAST_BILLED: Final = 10 * 2**20
#: Maximum age of table data that a query can read:
#: https://docs.cloud.google.com/bigquery/docs/time-travel
TIME_TRAVEL: Final = datetime.timedelta(days=7)
#: Key of the inputs with information for a review. The value is not part of the request.
RESOLVED: Final = "resolved"
#: Environment variable that is set in the preview of a review. In other previews, the engine's plan
#: would require unchanged inputs, although tables grow.
REVIEWS: Final = "VT_REVIEWS_SNAPSHOTS"
RIGHTS: Final = (
    "grant the deploying account bigquery.jobs.create in the project, and "
    "roles/bigquery.dataViewer on each table: GRANT `roles/bigquery.dataViewer` ON TABLE "
    '`PROJECT.DATASET.TABLE` TO "serviceAccount:EMAIL"'
)
#: Preview if a killed `up` has run the query. The query's limit and time no longer apply.
PAID: Final = {
    "unanswered": "an earlier command ran the query, so only the export remains, without a cost"
}
#: Texts that introduce the lists of a preview, by the keys of the lists.
TOLD: Final = {
    "sources": "from",
    "changed": "tables changed since the query (raise `run` to read them again):",
    "personal": "columns that look like personal data:",
}
#: Names of columns that probably contain data about a person.
_PERSONAL: Final = re.compile(
    r"(?:^|_)(?:e?mail|phone|mobile|ssn|passport|iban|birth(?:day|date)?|dob|"
    r"(?:first|last|full|sur|given|family)_?name|street|address|postcode|zip|ip|"
    r"credit_?card|gender|religion|latitude|longitude)(?:$|_)",
    re.IGNORECASE,
)


def _prices() -> Mapping[str, Mapping[str, Any]]:
    return catalog.load("query_prices.yaml")["prices"]


def is_priced(location: str) -> bool:
    """Return True if the price of queries in a location is known."""
    return location.lower() in _prices()


def usd(bytes_read: int, location: str) -> float:
    """Return the on-demand price of a query. In an unknown location, use the highest price."""
    prices = _prices()
    known = [prices[location.lower()]] if is_priced(location) else prices.values()
    return bytes_read / 2**40 * max(price["usd"] for price in known)


def look(request: SnapshotRequest, ports: SnapshotPorts) -> dict[str, Any]:
    """Return a preview of a snapshot: its content if it exists, else the bytes its query reads.

    Raises:
        JobRefusedError, NotSubmittedError: a deployment could not create the snapshot.
    """
    facts = dict[str, Any]()
    try:
        if (snapshot := protocol.find(request, ports)) is None:
            return dict(PAID) if protocol.has_run(request, ports) else _dry_run(request, ports)
        manifest = snapshot.manifest
        facts = {
            "rows": manifest["rows"],
            "bytes": manifest["bytes"],
            "queriedAt": manifest["query"]["queriedAt"],
            "sources": [source["table"] for source in manifest["sources"]],
            "personal": personal_columns(manifest["schema"]),
        }
        return facts | _changed(snapshot.manifest, ports)
    except PermissionDeniedError as error:
        return facts | {"unanswered": f"{error}. Hint: {RIGHTS}"}
    except (JobRefusedError, NotSubmittedError):
        raise
    except OperatorError as error:
        return facts | {"unanswered": str(error)}


def words(facts: Mapping[str, Any], cap: int, location: str) -> str:
    """Format the result of ``look`` as a line. ``cap`` is the maximum number of billed bytes."""
    highest = f", at the highest known price, because the price in {location} is unknown"
    unknown = "" if is_priced(location) else highest
    parts = list[str]()
    if facts.get("rows") is not None:
        parts.append(
            f"exists: {facts['rows']:,} rows, {facts['bytes'] or 0:,} bytes, queried at "
            f"{facts.get('queriedAt')}"
        )
    if (read := facts.get("processed")) is not None:
        price = f"${usd(read, location):,.2f} on demand{unknown}"
        most, least = f", ${usd(cap, location):,.2f}", ""
        if facts.get("atLeast"):
            price, least = f"no price{unknown}", "at least "
        if facts["capacity"]:
            price, most = "included in capacity", ""
        parts.append(
            f"the query would read {least}{read:,} bytes ({price}; limit {cap:,} bytes{most})"
        )
    for key, lead in TOLD.items():
        if facts.get(key):
            parts.append(f"{lead} {', '.join(facts[key])}")
    if reason := facts.get("unanswered"):
        parts.append(f"not checked: {reason}")
    return "; ".join(parts)


def _changed(manifest: Mapping[str, Any], ports: SnapshotPorts) -> dict[str, Any]:
    if manifest["query"]["asOf"]:
        return {}
    read_at, tables, unseen = str(manifest["query"]["queriedAt"]), list[str](), list[str]()
    for source in manifest["sources"]:
        project, dataset, table = str(source["table"]).rsplit(".", 2)
        reference = {"projectId": project, "datasetId": dataset, "tableId": table}
        if (current := ports.warehouse.table(reference)) is None:
            unseen.append(str(source["table"]))
        elif (changed := time_of(current.get("lastModifiedTime"))) and changed > read_at:
            tables.append(f"{source['table']} {changed}")
    reason = f"cannot read the tables {', '.join(unseen)} (deleted, or permission denied)"
    facts = {"unanswered": reason} if unseen else {}
    return facts | ({"changed": tables} if tables else {})


def _dry_run(request: SnapshotRequest, ports: SnapshotPorts) -> dict[str, Any]:
    now = datetime.datetime.now(tz=datetime.UTC)
    if request.as_of and now - datetime.datetime.fromisoformat(request.as_of) > TIME_TRAVEL:
        raise NotSubmittedError(
            f"snapshot '{request.name}': asOf {request.as_of} is more than seven days ago, which "
            "is the limit of BigQuery's time travel. Hint: set asOf to a later time"
        )
    # With the limit, BigQuery would refuse the query without the number of bytes.
    configuration = protocol.query_configuration(request)
    configuration["query"].pop("maximumBytesBilled")
    statistics = ports.warehouse.dry_run(configuration).get("statistics", {})
    query = statistics.get("query", {})
    if (kind := query.get("statementType", "SELECT")) != "SELECT":
        raise NotSubmittedError(
            f"snapshot '{request.name}': the statement is {kind}, but must be a query (SELECT)"
        )
    size = int(statistics.get("totalBytesProcessed", 0))
    if size > request.max_bytes_billed:
        raise NotSubmittedError(
            f"the query of snapshot '{request.name}' reads {size:,} bytes, but maxBytesBilled is "
            f"{request.max_bytes_billed:,}. Hint: raise maxBytesBilled, or change the query to "
            "read fewer bytes."
        )
    tables = sorted(
        name_of_table(referenced_table) for referenced_table in query.get("referencedTables", [])
    )
    # If the field is missing, the number of bytes is exact.
    exact = query.get("totalBytesProcessedAccuracy") in (None, "PRECISE", "UPPER_BOUND")
    return {
        "processed": size,
        **({} if exact else {"atLeast": True}),
        "capacity": bool(statistics.get("reservation_id") or statistics.get("edition")),
        "sources": tables,
        "personal": personal_columns(query.get("schema", {}).get("fields", [])),
    }


def personal_columns(fields: Any, prefix: str = "") -> list[str]:
    """Return the columns, also those inside records, whose names suggest personal data."""
    result = list[str]()
    for field in fields:
        name = f"{prefix}{field.get('name', '')}"
        if _PERSONAL.search(str(field.get("name", ""))):
            result.append(name)
        result += personal_columns(field.get("fields", []), f"{name}.")
    return result
