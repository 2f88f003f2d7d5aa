"""Datasets, jobs, and tables, whose versions are lists of Parquet files that never change.

A job needs roles of its account (https://docs.cloud.google.com/bigquery/docs/access-control).
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from localgcp.access.callers import Guest
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store, connection

Body = dict[str, Any]
DATASET, TABLE, JOB = "dataset", "table", "job"
#: Maximum age of stored versions (https://docs.cloud.google.com/bigquery/docs/time-travel).
KEPT_MILLISECONDS: Final = 7 * 24 * 3600 * 1000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS bigquery (
    kind TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, project, name)
) WITHOUT ROWID;
"""


class Version(NamedTuple):
    """A version of a table's rows."""

    time: int
    """Start of the version's validity in milliseconds."""
    files: list[str]
    rows: int
    bytes: Mapping[str, int]
    """Bytes of each column."""
    schema: list[Any]
    """Fields of the version."""


def now() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Catalog:
    """The database of datasets, tables and jobs, for use by several threads."""

    def __init__(self, database: Path, data: Path) -> None:
        self._database, self.data = database, data

    @contextmanager
    def change(self) -> Iterator[Rows]:
        """Lock the database and yield ``Rows`` for one transaction."""
        with connection(self._database, _SCHEMA) as db:
            db.execute("BEGIN IMMEDIATE")
            yield Rows(db)
            db.execute("COMMIT")

    def get(self, kind: str, project: str, name: str) -> Body | None:
        """Return a dataset, table or job, or None."""
        with self.change() as rows:
            return rows.get(kind, project, name)

    def clean(self) -> None:
        """Delete expired rows and unused files. Call this method only while no job runs."""
        with self.change() as rows:
            kept = set[str]()
            for _, project, name, body in rows.all(TABLE):
                if is_expired(body):
                    rows.delete(TABLE, project, name)
                    continue
                versions, oldest = body["versions"], now() - KEPT_MILLISECONDS
                older = [version for version, next_ in pairwise(versions) if next_[0] > oldest]
                body["versions"] = older + versions[-1:]
                kept.update(*(file[1] for file in body["versions"]))
                rows.put(TABLE, project, name, body)
            jobs = (job for *_, job in rows.all(JOB) if job["status"]["state"] != "DONE")
            kept.update(job["_upload"] for job in jobs if "_upload" in job)
        for file in self.data.glob("*"):
            if file.is_dir():  # files of a killed load job
                shutil.rmtree(file)
            elif file.name not in kept:
                file.unlink(missing_ok=True)


class Rows:
    """Reads and writes rows in one transaction. Names are DATASET, DATASET.TABLE or a job's id."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, kind: str, project: str, name: str) -> Body | None:
        """Return a dataset, table or job, or None for a missing row or an expired table."""
        query = "SELECT body FROM bigquery WHERE kind = ? AND project = ? AND name = ?"
        row = self._db.execute(query, (kind, project, name)).fetchone()
        body = json.loads(row[0]) if row else None
        return None if body and is_expired(body) else body

    def put(self, kind: str, project: str, name: str, body: Body) -> None:
        """Write a row, or replace the existing row."""
        values = (kind, project, name, json.dumps(body))
        self._db.execute("INSERT OR REPLACE INTO bigquery VALUES (?, ?, ?, ?)", values)

    def delete(self, kind: str, project: str, name: str) -> None:
        """Delete a row."""
        query = "DELETE FROM bigquery WHERE kind = ? AND project = ? AND name = ?"
        self._db.execute(query, (kind, project, name))

    def all(self, kind: str, project: str | None = None) -> list[tuple[str, str, str, Body]]:
        """Return kind, project, name and body of all rows of a kind."""
        query = "SELECT * FROM bigquery WHERE kind = ?1 AND (?2 IS NULL OR project = ?2)"
        rows = self._db.execute(query, (kind, project)).fetchall()
        return [(*row[:3], json.loads(row[3])) for row in rows]


def is_expired(body: Body) -> bool:
    """Return whether a table has expired."""
    return "expirationTime" in body and int(body["expirationTime"]) <= now()


def version_of(table: Body, as_of: int | None) -> Version | None:
    """Return the version of a table at a time, or None for a table without versions."""
    versions = [version for version in table["versions"] if as_of is None or version[0] <= as_of]
    return Version(*versions[-1]) if versions else None


def add_version(table: Body, version: Version) -> None:
    """Add a version to a table, with a later time than all earlier versions."""
    moment = max(version.time, table["versions"][-1][0] + 1 if table["versions"] else 0)
    table["versions"].append(version._replace(time=moment))
    table["lastModifiedTime"] = str(moment)


def to_rest(table: Body) -> Body:
    """Return a table in the form of REST."""
    latest = version_of(table, None)
    rows, size = (latest.rows, sum(latest.bytes.values())) if latest else (0, 0)
    return {**table, "numRows": str(rows), "numBytes": str(size), "numTotalLogicalBytes": str(size)}


_KEYS: Final = ("datasetId", "tableId")
_PLACE: Final = ("projectId", *_KEYS)
#: Kind of job -> required fields of the job's configuration.
_NEEDED: Final = {
    "query": ("query",),
    "load": ("sourceUris", *(f"destinationTable.{field}" for field in _PLACE)),
    "extract": ("destinationUris", *(f"sourceTable.{field}" for field in _PLACE)),
}


def require(document: Mapping[str, Any], *paths: str) -> None:
    """Check that fields with paths such as ``a.b`` are set. Raises BigQueryError."""
    for path in paths:
        value: Any = document
        for name in path.split("."):
            value = value.get(name) or {}
        if not value:
            raise BigQueryError("required", f"Required parameter is missing: {path}")


def check_job(
    kind: str, reference: Mapping[str, str], config: Mapping[str, Any], *, has_content: bool
) -> None:
    """Check the configuration of a job with or without uploaded rows. Raises BigQueryError."""
    require(config, *_NEEDED[kind][has_content:])
    if config.get("destinationTable"):
        require(config, *_NEEDED["load"][1:])
    form = r"[A-Za-z0-9_-]{1,1024}"
    if (name := reference.get("jobId")) and not re.fullmatch(form, name):
        raise BigQueryError("invalid", f"Invalid job ID {name!r}: {form} is expected.")


def check_same(place: Mapping[str, str], reference: Mapping[str, str]) -> None:
    """Check that a reference in the body agrees with the request's path. Raises BigQueryError."""
    for key, value in place.items():
        if (other := reference.get(key) or value) != value:
            text = f"Value {other} in content does not agree with value {value} of the path."
            raise BigQueryError("invalid", text)


_ALL: Final = frozenset({"roles/bigquery.admin", "roles/owner"})
#: Roles that contain bigquery.jobs.create.
JOB_USERS: Final = _ALL | {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
#: Roles that contain bigquery.tables.updateData and bigquery.tables.getData.
WRITERS: Final = _ALL | {"roles/bigquery.dataEditor", "roles/bigquery.dataOwner", "roles/editor"}
READERS: Final = WRITERS | {"roles/bigquery.dataViewer", "roles/viewer"}


def check_roles(
    store: Store, guest: Guest | None, place: Mapping[str, str], roles: frozenset[str], what: str
) -> None:
    """Check that the caller has a role on a project, dataset or table. Raises BigQueryError."""
    if guest is None:
        return
    member = f"serviceAccount:{guest.account}"
    policies = [f"projects/{place['projectId']}"]
    for kind, key in zip(("datasets", "tables"), _KEYS, strict=True):
        if key in place:
            policies.append(f"{policies[-1]}/{kind}/{place[key]}")
    if not any(roles & store.roles(policy, member) for policy in policies):
        label = ".".join([place["projectId"], *(place.get(k, "") for k in _KEYS)]).rstrip(".")
        who = f"The job runs as {guest.account}" if guest.account else "The job has no account"
        text = f"Access Denied: {label}: {what} denied (or it may not exist). {who}."
        raise BigQueryError("accessDenied", text)


def check_read(store: Store, guest: Guest | None, place: Mapping[str, str], owner: object) -> None:
    """Check that the caller may read a table, or is its ``owner``. Raises BigQueryError."""
    if guest is not None and guest.account and guest.account == owner:
        return
    check_roles(store, guest, place, READERS, "bigquery.tables.getData")
