"""What a snapshot is asked to be, and its identity. Pure: known before anything exists."""

from __future__ import annotations

import hashlib
import pathlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.request.job_file import ID_LENGTH, canonical
from vertex_training.naming import SNAPSHOTS
from vertex_training.settings.model import Settings
from vertex_training.settings.snapshots import AS_OF, Scalar
from vertex_training.snapshots import statement

#: Name of the last object of a snapshot, in its folder.
MANIFEST: Final = "manifest.json"
#: The folder of any request: ``SnapshotRequest.prefix``.
_FOLDER: Final = re.compile(rf"{SNAPSHOTS}/[^/]+/[^/]+/[0-9a-f]{{{ID_LENGTH}}}/")


def is_of_snapshot(name: str) -> bool:
    """Whether an object of this name is a file of a snapshot, of any stack and run."""
    return bool(_FOLDER.match(name))


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """One run of one snapshot. ``name`` is its first key."""

    project: str
    stack: str
    name: str
    run: int
    location: str
    bucket: str
    """Name of the bucket that keeps the files."""
    sql: str
    """The query without comments, which is what is sent."""
    parameters: Mapping[str, Scalar]
    as_of: str | None
    format: str
    max_bytes_billed: int

    @property
    def sql_digest(self) -> str:
        """SHA-256 of the canonical query, in hex."""
        return hashlib.sha256(statement.canonical(self.sql).encode()).hexdigest()

    @property
    def request_id(self) -> str:
        """Digest of all that decides what the files hold and where they are.

        Not the bytes that may be billed: a higher bound asks for nothing else.
        """
        content = {
            "project": self.project,
            "stack": self.stack,
            "name": self.name,
            "run": self.run,
            "location": self.location,
            "bucket": self.bucket,
            "sql": self.sql_digest,
            "parameters": [
                (name, type(value).__name__, value)
                for name, value in sorted(self.parameters.items())
            ],
            "asOf": self.as_of,
            "format": self.format,
        }
        return hashlib.sha256(canonical(content).encode()).hexdigest()[:ID_LENGTH]

    @property
    def prefix(self) -> str:
        """Names of its objects begin with it; without a ``/`` at the end."""
        return f"{SNAPSHOTS}/{self.stack}/{self.name}/{self.request_id}"

    @property
    def uri(self) -> str:
        """The folder, which ``${snapshots.KEY}`` stands for."""
        return f"gs://{self.bucket}/{self.prefix}"

    @property
    def all_parameters(self) -> dict[str, Scalar]:
        """The parameters that are sent, by name; ``as_of`` among them."""
        return {**self.parameters, **({AS_OF: self.as_of} if self.as_of else {})}


def plan_snapshots(settings: Settings, root: pathlib.Path) -> dict[str, SnapshotRequest]:
    """The snapshots of a stack by the keys of ``settings``, which are first keys."""
    return {
        key: SnapshotRequest(
            project=settings.project,
            stack=settings.stack,
            name=key,
            run=snapshot.run,
            location=snapshot.location or settings.region,
            bucket=settings.names.bucket(snapshot.bucket),
            sql=statement.without_comments((root / snapshot.query).read_text(encoding="utf-8")),
            parameters=snapshot.parameters,
            as_of=snapshot.as_of,
            format=snapshot.format,
            max_bytes_billed=snapshot.max_bytes_billed,
        )
        for key, snapshot in settings.snapshots.items()
    }
