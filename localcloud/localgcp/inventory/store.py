"""State of the local cloud: resources and IAM policies in one SQLite file.

The gcp plugin writes what it created here, and the other control planes (the Vertex job service,
``vt local status``) ask their questions of it. Several processes use the file at the same time:
every call opens a connection of its own in WAL mode and waits up to ``BUSY_SECONDS`` for a writer.
The file may vanish between two calls (``vt local down --clean``); the next call starts an empty
one.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from localgcp.errors import PolicyConflictError
from localgcp.home import touch_private
from localgcp.inventory.projects import local_project_number
from localgcp.system.folders import make_folder

BUSY_SECONDS: Final = 30.0

SERVICE: Final = "gcp:projects/service:Service"
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
BUCKET: Final = "gcp:storage/bucket:Bucket"
TENSORBOARD: Final = "gcp:vertex/aiTensorboard:AiTensorboard"
ENDPOINT: Final = "gcp:vertex/aiEndpoint:AiEndpoint"
ALERT_POLICY: Final = "gcp:monitoring/alertPolicy:AlertPolicy"
CHANNEL: Final = "gcp:monitoring/notificationChannel:NotificationChannel"
DASHBOARD: Final = "gcp:monitoring/dashboard:Dashboard"
BUDGET: Final = "gcp:billing/budget:Budget"

#: Basic role -> legacy basic role with the same permissions on every API here:
#: https://docs.cloud.google.com/iam/docs/roles-overview#basic
_AS_BEFORE: Final = {
    "roles/admin": "roles/owner",
    "roles/writer": "roles/editor",
    "roles/reader": "roles/viewer",
}

#: Names for which the emulator may have created a folder.
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SCHEMA_VERSION: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS resources (
    type TEXT NOT NULL, id TEXT NOT NULL, project TEXT NOT NULL,
    inputs TEXT NOT NULL, outputs TEXT NOT NULL,
    PRIMARY KEY (type, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS policies (
    resource TEXT PRIMARY KEY, etag TEXT NOT NULL, bindings TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class StoredResource:
    """A resource as the gcp plugin stores it; property names are Pulumi's."""

    type: str
    id: str
    project: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]


@dataclass(frozen=True)
class Binding:
    """A role with its members; bindings of the same role differ by their condition."""

    role: str
    members: tuple[str, ...]
    condition: dict[str, str] | None = None


@dataclass(frozen=True)
class Policy:
    """The IAM policy of one resource. ``etag`` identifies the version that was read."""

    etag: str
    bindings: tuple[Binding, ...] = field(default=())


#: The policy of a resource without grants.
EMPTY_POLICY: Final = Policy(etag="ACAB")


class Store:
    """Resources and policies of all local projects.

    Paths of IAM policies: ``b/BUCKET``, ``projects/P``, ``projects/P/serviceAccounts/EMAIL``,
    ``projects/P/secrets/S``, ``projects/P/locations/L/repositories/R``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(
        self, type_: str, id_: str, project: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> None:
        """Write a resource; replaces an existing one."""
        with self._connect() as db:
            db.execute(
                "INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?)",
                (type_, id_, project, json.dumps(inputs), json.dumps(outputs)),
            )

    def insert(
        self, type_: str, id_: str, project: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> bool:
        """Write a new resource; return False if it exists (the cloud's 409)."""
        with self._connect() as db:
            cursor = db.execute(
                "INSERT OR IGNORE INTO resources VALUES (?, ?, ?, ?, ?)",
                (type_, id_, project, json.dumps(inputs), json.dumps(outputs)),
            )
            return cursor.rowcount == 1

    def get(self, type_: str, id_: str) -> StoredResource | None:
        """Return the resource, or None."""
        with self._connect() as db:
            row = db.execute(
                "SELECT * FROM resources WHERE type = ? AND id = ?", (type_, id_)
            ).fetchone()
        return _resource(row) if row else None

    def delete(self, type_: str, id_: str) -> bool:
        """Delete a resource; return False if it does not exist."""
        with self._connect() as db:
            cursor = db.execute("DELETE FROM resources WHERE type = ? AND id = ?", (type_, id_))
            return cursor.rowcount == 1

    def list(self, type_: str | None = None, project: str | None = None) -> list[StoredResource]:
        """Return resources of a type and a project (None: all), ordered by type and id."""
        with self._connect() as db:
            rows = db.execute(
                "SELECT * FROM resources WHERE (?1 IS NULL OR type = ?1)"
                " AND (?2 IS NULL OR project = ?2) ORDER BY type, id",
                (type_, project),
            ).fetchall()
        return [_resource(row) for row in rows]

    def projects(self) -> set[str]:
        """Return the ids of the projects with resources."""
        with self._connect() as db:
            return {row[0] for row in db.execute("SELECT DISTINCT project FROM resources")}

    def service_enabled(self, project: str, service: str) -> bool:
        """Return whether the API (``aiplatform.googleapis.com``) is enabled in the project (id, not
        number).
        """
        return self.get(SERVICE, f"{project}/{service}") is not None

    def account(self, email: str) -> dict[str, Any] | None:
        """Return the outputs of the service account with this address, or None."""
        return self._outputs_where(ACCOUNT, "$.email", email)

    def bucket(self, name: str) -> dict[str, Any] | None:
        """Return the outputs of the bucket, or None. Names are unique across all projects.

        One that a client made, like ``gsutil mb``, is of no project.
        """
        if resource := self.get(BUCKET, name):
            return resource.outputs
        if not _BUCKET.fullmatch(name):  # a path: ``..`` is a folder, too
            return None
        folder = self.path.with_name("storage") / name  # where the emulator keeps it
        return {"name": name} if folder.is_dir() else None

    def roles(self, resource: str, member: str) -> set[str]:
        """Return roles of ``member`` (``serviceAccount:…``) in the policy of exactly this resource.

        Conditional bindings count: their expressions are not evaluated here. A basic role goes by
        the name that it had before IAM.
        """
        held = (
            binding.role for binding in self.policy(resource).bindings if member in binding.members
        )
        return {_AS_BEFORE.get(role, role) for role in held}

    def policy(self, resource: str) -> Policy:
        """Return the resource's IAM policy; an empty policy if it has no grants."""
        with self._connect() as db:
            row = db.execute("SELECT * FROM policies WHERE resource = ?", (resource,)).fetchone()
        return _policy(row) if row else EMPTY_POLICY

    def policies(self, prefix: str = "") -> dict[str, Policy]:
        """Return all non-empty policies by path, for paths that begin with ``prefix``."""
        with self._connect() as db:
            rows = db.execute("SELECT * FROM policies ORDER BY resource").fetchall()
        return {row["resource"]: _policy(row) for row in rows if row["resource"].startswith(prefix)}

    def set_policy(
        self, resource: str, bindings: tuple[Binding, ...], *, expected_etag: str
    ) -> Policy:
        """Replace a policy if its etag is ``expected_etag``; return the new version.

        Raises PolicyConflictError if another writer came first: read again and retry.
        A policy left without bindings is removed.
        """
        with self._connect() as db:
            row = db.execute("SELECT etag FROM policies WHERE resource = ?", (resource,)).fetchone()
            if expected_etag != (row["etag"] if row else EMPTY_POLICY.etag):
                raise PolicyConflictError(resource)
            return _replace_policy(db, resource, bindings)

    def delete_policy(self, resource: str) -> None:
        """Delete the policy of a deleted resource."""
        with self._connect() as db:
            db.execute("DELETE FROM policies WHERE resource = ?", (resource,))

    def delete_member(self, member: str) -> None:
        """Remove a deleted member from all policies.

        The cloud keeps it as ``deleted:serviceAccount:…``, which grants nothing.
        """
        with self._connect() as db:
            for row in db.execute("SELECT * FROM policies").fetchall():
                before = _policy(row).bindings
                left = tuple(
                    replace(b, members=tuple(m for m in b.members if m != member)) for b in before
                )
                if left != before:
                    _replace_policy(db, row["resource"], left)

    def _outputs_where(self, type_: str, json_path: str, value: str) -> dict[str, Any] | None:
        with self._connect() as db:
            row = db.execute(
                "SELECT * FROM resources WHERE type = ? AND json_extract(outputs, ?) = ?",
                (type_, json_path, value),
            ).fetchone()
        return _resource(row).outputs if row else None

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one write transaction; commit unless the block raises."""
        db = _open(self.path)
        try:
            # IMMEDIATE takes the write lock at once: a deferred transaction that reads and then
            # writes fails with "database is locked" instead of waiting.
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        finally:
            db.close()  # rolls back what was not committed


@contextmanager
def connection(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """Open a connection to another database file; ``schema`` creates missing tables.

    Each statement is committed by itself, but after a ``BEGIN``: what was not committed when the
    block ends is rolled back.
    """
    touch_private(path)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.row_factory = sqlite3.Row
        db.executescript(schema)
        yield db
    finally:
        db.close()


def _open(path: Path) -> sqlite3.Connection:
    make_folder(path.parent)
    touch_private(path)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA synchronous = NORMAL")
    if db.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA_VERSION:
        _initialise(db)
    return db


def _initialise(db: sqlite3.Connection) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            # SQLite does not wait for other connections when it changes the journal mode.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;")


def _resource(row: sqlite3.Row) -> StoredResource:
    inputs, outputs = json.loads(row["inputs"]), json.loads(row["outputs"])
    return StoredResource(row["type"], row["id"], row["project"], inputs, outputs)


def _policy(row: sqlite3.Row) -> Policy:
    bindings = (
        Binding(b["role"], tuple(b["members"]), b["condition"]) for b in json.loads(row["bindings"])
    )
    return Policy(row["etag"], tuple(bindings))


def _replace_policy(db: sqlite3.Connection, resource: str, bindings: tuple[Binding, ...]) -> Policy:
    """Write a new version of a policy; delete bindings without members."""
    kept = tuple(b for b in bindings if b.members)
    if not kept:
        db.execute("DELETE FROM policies WHERE resource = ?", (resource,))
        return EMPTY_POLICY
    policy = Policy("Bw" + secrets.token_urlsafe(7), kept)
    values = (resource, policy.etag, json.dumps([vars(b) for b in kept]))
    db.execute("INSERT OR REPLACE INTO policies VALUES (?, ?, ?)", values)
    return policy


def project_number(project_id: str) -> str:
    """Return the 12-digit number of a local project, which is the same on every machine."""
    return local_project_number(project_id)
