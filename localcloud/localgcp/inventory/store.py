"""Resources and IAM policies in one SQLite file that several processes use; rows of dataclasses.

Services check the roles of the accounts that act for a job, such as Google's service agents.
"""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import sqlite3
import time
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from localgcp.errors import PolicyConflictError
from localgcp.home import touch_private
from localgcp.inventory import resource_paths
from localgcp.system.root_directory import make_folder

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

#: Basic role -> legacy basic role with the same permissions on all local APIs
#: (https://docs.cloud.google.com/iam/docs/roles-overview#basic).
_LEGACY_ROLES: Final = {
    "roles/admin": "roles/owner",
    "roles/writer": "roles/editor",
    "roles/reader": "roles/viewer",
}

_SCHEMA_VERSION: Final = 1
_POLICIES: Final = """
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
    """A role with its members, and an optional condition."""

    role: str
    members: tuple[str, ...]
    condition: dict[str, str] | None = None


@dataclass(frozen=True)
class Policy:
    """The IAM policy of one resource; ``etag`` identifies the policy's version."""

    etag: str
    bindings: tuple[Binding, ...] = field(default=())


#: The policy of a resource without grants.
EMPTY_POLICY: Final = Policy(etag="ACAB")


class Store:
    """Resources and policies of all local projects.

    A policy has the path of its resource, such as ``b/BUCKET`` or ``projects/P/secrets/S``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(
        self, type_: str, id_: str, project: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> None:
        """Write a resource, or replace the existing resource."""
        resource = StoredResource(type_, id_, project, inputs, outputs)
        with self._connect() as db:
            _RESOURCES.insert(db, resource, "INSERT OR REPLACE")

    def insert(
        self, type_: str, id_: str, project: str, inputs: dict[str, Any], outputs: dict[str, Any]
    ) -> bool:
        """Write a new resource; return False if the resource exists."""
        resource = StoredResource(type_, id_, project, inputs, outputs)
        with self._connect() as db:
            return _RESOURCES.insert(db, resource, "INSERT OR IGNORE")

    def get(self, type_: str, id_: str) -> StoredResource | None:
        """Return the resource of this type with this id, or None."""
        with self._connect() as db:
            return next(iter(_RESOURCES.select(db, "WHERE type = ? AND id = ?", type_, id_)), None)

    def delete(self, type_: str, id_: str) -> bool:
        """Delete a resource; return False if the resource does not exist."""
        with self._connect() as db:
            cursor = db.execute("DELETE FROM resources WHERE type = ? AND id = ?", (type_, id_))
            return cursor.rowcount == 1

    def list(self, type_: str | None = None, project: str | None = None) -> list[StoredResource]:
        """Return the resources of a type and a project, or of all, ordered by type and id."""
        selected = "(?1 IS NULL OR type = ?1) AND (?2 IS NULL OR project = ?2)"
        with self._connect() as db:
            return _RESOURCES.select(db, f"WHERE {selected} ORDER BY type, id", type_, project)

    def projects(self) -> set[str]:
        """Return the ids of the projects with resources."""
        with self._connect() as db:
            return {row[0] for row in db.execute("SELECT DISTINCT project FROM resources")}

    def service_enabled(self, project: str, service: str) -> bool:
        """Return whether an API (``aiplatform.googleapis.com``) is enabled in a project (id)."""
        return self.get(SERVICE, f"{project}/{service}") is not None

    def account(self, email: str) -> dict[str, Any] | None:
        """Return the outputs of the service account with this address, or None."""
        condition = "WHERE type = ? AND json_extract(outputs, '$.email') = ?"
        with self._connect() as db:
            accounts = _RESOURCES.select(db, condition, ACCOUNT, email)
        return accounts[0].outputs if accounts else None

    def bucket(self, name: str) -> dict[str, Any] | None:
        """Return the outputs of a bucket, or None. A client's bucket belongs to no project."""
        if resource := self.get(BUCKET, name):
            return resource.outputs
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):  # such as ``..``
            return None
        folder = self.path.with_name("storage") / name  # where the emulator stores the bucket
        return {"name": name} if folder.is_dir() else None

    def roles(self, resource: str, member: str) -> set[str]:
        """Return the roles of a member in the policy of this resource, with any condition."""
        bindings = self.policy(resource).bindings
        return {_LEGACY_ROLES.get(b.role, b.role) for b in bindings if member in b.members}

    def policy(self, resource: str) -> Policy:
        """Return the resource's IAM policy; an empty policy if it has no grants."""
        with self._connect() as db:
            row = db.execute("SELECT * FROM policies WHERE resource = ?", (resource,)).fetchone()
        return _policy(row) if row else EMPTY_POLICY

    def policies(self, prefix: str = "") -> dict[str, Policy]:
        """Return the policies of all paths that begin with ``prefix``, by path."""
        with self._connect() as db:
            rows = db.execute("SELECT * FROM policies ORDER BY resource").fetchall()
        return {row["resource"]: _policy(row) for row in rows if row["resource"].startswith(prefix)}

    def set_policy(
        self, resource: str, bindings: tuple[Binding, ...], *, expected_etag: str
    ) -> Policy:
        """Replace a policy with this etag; return the new policy. Raises PolicyConflictError."""
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
        """Remove a deleted member from all policies."""
        with self._connect() as db:
            for row in db.execute("SELECT * FROM policies").fetchall():
                before = _policy(row).bindings
                left = tuple(
                    replace(b, members=tuple(m for m in b.members if m != member)) for b in before
                )
                if left != before:
                    _replace_policy(db, row["resource"], left)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        # `vt local down --clean` may delete the file between two calls. The next call creates an
        # empty file.
        make_folder(self.path.parent)
        with connection(self.path, "PRAGMA synchronous = NORMAL") as db:
            if db.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA_VERSION:
                _initialise(db)
            # A deferred transaction that reads before it writes would not wait for other writers.
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")


@contextmanager
def connection(path: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """Open a connection to a database file; ``schema`` creates missing tables."""
    touch_private(path)
    db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        db.row_factory = sqlite3.Row
        db.executescript(schema)
        yield db
    finally:
        db.close()  # rolls back an uncommitted transaction


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
    tables = f"{_RESOURCES.schema} {_POLICIES}"
    db.executescript(f"BEGIN IMMEDIATE; {tables} PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;")


def _policy(row: sqlite3.Row) -> Policy:
    bindings = (
        Binding(b["role"], tuple(b["members"]), b["condition"]) for b in json.loads(row["bindings"])
    )
    return Policy(row["etag"], tuple(bindings))


def _replace_policy(db: sqlite3.Connection, resource: str, bindings: tuple[Binding, ...]) -> Policy:
    kept = tuple(b for b in bindings if b.members)
    if not kept:
        db.execute("DELETE FROM policies WHERE resource = ?", (resource,))
        return EMPTY_POLICY
    policy = Policy("Bw" + secrets.token_urlsafe(7), kept)
    values = (resource, policy.etag, json.dumps([vars(b) for b in kept]))
    db.execute("INSERT OR REPLACE INTO policies VALUES (?, ?, ?)", values)
    return policy


project_number: Final = resource_paths.project_number

T = TypeVar("T")


class Rows(Generic[T]):
    """The rows of one dataclass in one table, with a column for each field.

    ``keys`` are the fields of the primary key. Connections and transactions belong to the caller.
    """

    def __init__(self, type_: type[T], table: str, *keys: str, unique: str = "") -> None:
        self.type, self.table = type_, table
        hints = typing.get_type_hints(type_)
        self._kinds: dict[str, Any] = {}
        columns = []
        for column in dataclasses.fields(type_):  # pyright: ignore[reportArgumentType]
            hint = hints[column.name]
            arguments = typing.get_args(hint)
            optional = type(None) in arguments
            kind = next(a for a in arguments if a is not type(None)) if optional else hint
            self._kinds[column.name] = kind
            sql = {int: "INTEGER", float: "REAL"}.get(kind, "TEXT")
            columns.append(f"{column.name} {sql}{'' if optional else ' NOT NULL'}")
        columns += [f"PRIMARY KEY ({', '.join(keys)})", *([f"UNIQUE ({unique})"] if unique else [])]
        self.schema = f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)}) WITHOUT ROWID;"

    def insert(self, db: sqlite3.Connection, row: T, verb: str = "INSERT") -> bool:
        """Add a row. With the verb ``INSERT OR IGNORE``, return False if the key exists."""
        values = [_encoded(getattr(row, name)) for name in self._kinds]
        marks = ", ".join("?" * len(values))
        query = f"{verb} INTO {self.table} ({', '.join(self._kinds)}) VALUES ({marks})"
        return db.execute(query, values).rowcount == 1

    def select(self, db: sqlite3.Connection, rest: str = "", *values: Any) -> list[T]:
        """Return the rows of a query; ``rest`` has the query's joins, conditions and order."""
        rows = db.execute(f"SELECT {self.table}.* FROM {self.table} {rest}", values)
        return [
            self.type(**{name: _decoded(kind, row[name]) for name, kind in self._kinds.items()})
            for row in rows
        ]

    def update(self, db: sqlite3.Connection, row: T, where: str, *values: Any) -> bool:
        """Write all fields of the row that meets a condition; return False without such a row."""
        sets = ", ".join(f"{name} = ?" for name in self._kinds)
        new = [_encoded(getattr(row, name)) for name in self._kinds]
        query = f"UPDATE {self.table} SET {sets} WHERE {where}"
        return db.execute(query, [*new, *values]).rowcount == 1


_RESOURCES: Final = Rows(StoredResource, "resources", "type", "id")


def _encoded(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return json.dumps(dataclasses.asdict(value))
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _decoded(kind: Any, value: Any) -> Any:
    if value is None or kind in (str, int, float):
        return value
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    document = json.loads(value)
    make: Any = kind if dataclasses.is_dataclass(kind) else dict
    return make(**document) if isinstance(document, dict) else document


#: Roles with one permission that a service checks.
NETWORK_ADMIN: Final = frozenset({"roles/compute.networkAdmin", "roles/compute.admin"})
NETWORK_USER: Final = NETWORK_ADMIN | {"roles/compute.networkUser"}
VIEWER: Final = frozenset({"roles/compute.viewer", "roles/compute.admin", "roles/viewer"})
DNS_PEER: Final = frozenset({"roles/dns.peer", "roles/dns.admin"})
IMAGE_READER: Final = frozenset(
    {
        *("roles/artifactregistry.reader", "roles/artifactregistry.writer", "roles/viewer"),
        *("roles/artifactregistry.repoAdmin", "roles/artifactregistry.admin"),
    }
)
LOG_WRITERS: Final = frozenset({"roles/logging.logWriter", "roles/logging.admin"})
# Roles that contain the permissions of all other roles here.
_PRIMITIVE: Final = frozenset({"roles/owner", "roles/editor"})


def service_agent(project: str) -> str:
    """Return the address of a project's Vertex AI Service Agent (project id)."""
    return f"service-{project_number(project)}@gcp-sa-aiplatform.iam.gserviceaccount.com"


def has_role(store: Store, email: str, roles: frozenset[str], *places: str) -> bool:
    """Return whether the account has one of these roles on one of these resources."""
    member = f"serviceAccount:{email}"
    wanted = roles | _PRIMITIVE
    return any(not wanted.isdisjoint(store.roles(place, member)) for place in places)
