"""Preview of a snapshot: it exists, or the bytes and cost of its query. Pure."""

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

#: BigQuery bills so many bytes or more for each table: https://cloud.google.com/bigquery/pricing
LEAST_BILLED: Final = 10 * 2**20
#: https://docs.cloud.google.com/bigquery/docs/time-travel
TIME_TRAVEL: Final = datetime.timedelta(days=7)
#: Key of the inputs that the provider adds in a review: information, and no part of a request.
RESOLVED: Final = "resolved"
#: Set where a review previews. Anywhere else these inputs would be held to the review's by the
#: engine's plan, and tables grow.
REVIEWS: Final = "VT_REVIEWS_SNAPSHOTS"
RIGHTS: Final = (
    "who deploys needs bigquery.jobs.create in the project, and roles/bigquery.dataViewer on each "
    "table: GRANT `roles/bigquery.dataViewer` ON TABLE `PROJECT.DATASET.TABLE` TO "
    '"serviceAccount:EMAIL"'
)
#: Of a query that an `up` has run before it was killed: its bound and its time count no more.
PAID: Final = {"unanswered": "its query has run, and is not paid for again: an export is left"}
#: What lines say of a list.
TOLD: Final = {
    "sources": "from",
    "changed": "changed since, which `run` one higher would read:",
    "personal": "columns that look like data about people:",
}
#: Names of columns that look like data about a person.
_PERSONAL: Final = re.compile(
    r"(?:^|_)(?:e?mail|phone|mobile|ssn|passport|iban|birth(?:day|date)?|dob|"
    r"(?:first|last|full|sur|given|family)_?name|street|address|postcode|zip|ip|"
    r"credit_?card|gender|religion|latitude|longitude)(?:$|_)",
    re.IGNORECASE,
)


def _prices() -> Mapping[str, Mapping[str, Any]]:
    """On demand, by location."""
    return catalog.load("query_prices.yaml")["prices"]


def is_priced(location: str) -> bool:
    """True if the price of a location is known."""
    return location.lower() in _prices()


def usd(bytes_read: int, location: str) -> float:
    """The price of a query on demand; by the highest that is known where it is unknown."""
    prices = _prices()
    known = [prices[location.lower()]] if is_priced(location) else prices.values()
    return bytes_read / 2**40 * max(each["usd"] for each in known)


def look(request: SnapshotRequest, ports: SnapshotPorts) -> dict[str, Any]:
    """Return the facts about the request before it is made.

    Raises:
        JobRefusedError, NotSubmittedError: it would be refused.
    """
    told = dict[str, Any]()
    try:
        if (found := protocol.find(request, ports)) is None:
            return dict(PAID) if protocol.has_run(request, ports) else _dry_run(request, ports)
        told = _summary(found.manifest)
        return told | _changed(found.manifest, ports)
    except PermissionDeniedError as error:
        return told | {"unanswered": f"{error}. Hint: {RIGHTS}"}
    except (JobRefusedError, NotSubmittedError):
        raise
    except OperatorError as error:
        return told | {"unanswered": str(error)}


def words(found: Mapping[str, Any], cap: int, location: str) -> str:
    """Return the result of ``look`` in a line. ``cap``: the most bytes that the query may bill."""
    highest = f", the highest price: that of {location} is unknown"
    unknown = "" if is_priced(location) else highest
    parts = list[str]()
    if found.get("rows") is not None:
        parts.append(
            f"is there: {found['rows']:,} rows, {found['bytes'] or 0:,} bytes, queried at "
            f"{found.get('queriedAt')}"
        )
    if (read := found.get("processed")) is not None:
        price = f"${usd(read, location):,.2f} on demand{unknown}"
        most, least = f", ${usd(cap, location):,.2f}", ""
        if found.get("atLeast"):
            price, least = f"no price{unknown}", "at least "
        if found["capacity"]:
            price, most = "capacity: no price", ""
        parts.append(
            f"its query reads {least}{read:,} bytes ({price}; at most {cap:,} bytes{most})"
        )
    for key, lead in TOLD.items():
        if found.get(key):
            parts.append(f"{lead} {', '.join(found[key])}")
    if reason := found.get("unanswered"):
        parts.append(f"not asked: {reason}")
    return "; ".join(parts)


def _summary(manifest: Mapping[str, Any]) -> dict[str, Any]:
    query = manifest["query"]
    return {
        "rows": manifest["rows"],
        "bytes": manifest["bytes"],
        "queriedAt": query["queriedAt"],
        "sources": [source["table"] for source in manifest["sources"]],
        "personal": personal_columns(manifest["schema"]),
    }


def _changed(manifest: Mapping[str, Any], ports: SnapshotPorts) -> dict[str, Any]:
    """Source tables that changed after the query; nothing of a snapshot as of a time."""
    if manifest["query"]["asOf"]:
        return {}
    read_at, found, unseen = str(manifest["query"]["queriedAt"]), list[str](), list[str]()
    for source in manifest["sources"]:
        project, dataset, table = str(source["table"]).rsplit(".", 2)
        reference = {"projectId": project, "datasetId": dataset, "tableId": table}
        if (there := ports.warehouse.table(reference)) is None:
            unseen.append(str(source["table"]))
        elif (changed := time_of(there.get("lastModifiedTime"))) and changed > read_at:
            found.append(f"{source['table']} {changed}")
    told = {"unanswered": f"{', '.join(unseen)}: gone, or not to be read"} if unseen else {}
    return told | ({"changed": found} if found else {})


def _dry_run(request: SnapshotRequest, ports: SnapshotPorts) -> dict[str, Any]:
    if request.as_of and _age(request.as_of) > TIME_TRAVEL:
        raise NotSubmittedError(
            f"snapshot '{request.name}': asOf {request.as_of} is more than seven days ago, and "
            "BigQuery has no older state of a table. Hint: a later time"
        )
    # With the bound, BigQuery would refuse without saying how much it is.
    configuration = protocol.query_configuration(request)
    configuration["query"].pop("maximumBytesBilled")
    statistics = ports.warehouse.dry_run(configuration).get("statistics", {})
    query = statistics.get("query", {})
    if (kind := query.get("statementType", "SELECT")) != "SELECT":
        raise NotSubmittedError(f"snapshot '{request.name}': this is no query, but {kind}")
    size = int(statistics.get("totalBytesProcessed", 0))
    if size > request.max_bytes_billed:
        raise NotSubmittedError(
            f"the query of snapshot '{request.name}' reads {size:,} bytes, more than "
            f"maxBytesBilled, {request.max_bytes_billed:,}. Hint: raise it, or read less."
        )
    tables = sorted(
        name_of_table(referenced_table) for referenced_table in query.get("referencedTables", [])
    )
    # Without it the bytes are exact; it is LOWER_BOUND or UNKNOWN for some external tables.
    exact = query.get("totalBytesProcessedAccuracy") in (None, "PRECISE", "UPPER_BOUND")
    return {
        "processed": size,
        **({} if exact else {"atLeast": True}),
        "capacity": bool(statistics.get("reservation_id") or statistics.get("edition")),
        "sources": tables,
        "personal": personal_columns(query.get("schema", {}).get("fields", [])),
    }


def _age(time: str) -> datetime.timedelta:
    return datetime.datetime.now(tz=datetime.UTC) - datetime.datetime.fromisoformat(time)


def personal_columns(fields: Any, prefix: str = "") -> list[str]:
    """Columns whose names look like data about a person, those inside of records as well."""
    result = list[str]()
    for field in fields:
        name = f"{prefix}{field.get('name', '')}"
        if _PERSONAL.search(str(field.get("name", ""))):
            result.append(name)
        result += personal_columns(field.get("fields", []), f"{name}.")
    return result
