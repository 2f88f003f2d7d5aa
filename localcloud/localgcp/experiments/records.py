"""Resources of experiments as rows of SQLite: in the API's JSON form, by name."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from localgcp.inventory.store import TENSORBOARD, Store, StoredResource, connection, project_number

Body = dict[str, Any]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS experiment_resources (
    name TEXT PRIMARY KEY, parent TEXT NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS experiment_parents ON experiment_resources (parent);
CREATE TABLE IF NOT EXISTS experiment_links (
    kind TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (kind, source, target)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS experiment_points (
    series TEXT NOT NULL, step INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (series, step)
) WITHOUT ROWID;
"""
#: A name and all names below it: 0 is the character after the slash.
_BELOW: Final = "{0} = ?1 OR ({0} > ?1 || '/' AND {0} < ?1 || '0')"


class ExperimentTable:
    """Resources, links between them, and points of time series; safe across threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> Body | None:
        """The resource, or None."""
        with self._connect() as db:
            query = "SELECT body FROM experiment_resources WHERE name = ?"
            row = db.execute(query, (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def list(self, parent: str) -> list[Body]:
        """Resources whose names are ``parent`` with one more part."""
        with self._connect() as db:
            query = "SELECT body FROM experiment_resources WHERE parent = ?"
            return [json.loads(row[0]) for row in db.execute(query, (parent,))]

    def put(self, body: Body) -> None:
        """Write a resource, replacing what is there."""
        values = (body["name"], body["name"].rpartition("/")[0], json.dumps(body))
        with self._connect() as db:
            db.execute("INSERT OR REPLACE INTO experiment_resources VALUES (?, ?, ?)", values)

    def delete(self, name: str) -> None:
        """Remove a resource, what lies below it, and its links."""
        with self._connect() as db:
            for table, columns in (
                ("experiment_resources", ("name",)),
                ("experiment_points", ("series",)),
                ("experiment_links", ("source", "target")),
            ):
                for column in columns:
                    db.execute(f"DELETE FROM {table} WHERE {_BELOW.format(column)}", (name,))

    def link(self, kind: str, pairs: Iterable[tuple[str, str]], body: Body | None = None) -> None:
        """Link ``(source, target)``; again is no error."""
        rows = [(kind, *pair, json.dumps(body or {})) for pair in pairs]
        with self._connect() as db:
            db.executemany("INSERT OR REPLACE INTO experiment_links VALUES (?, ?, ?, ?)", rows)

    def unlink(self, kind: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Remove links; one that is not there is no error."""
        query = "DELETE FROM experiment_links WHERE kind = ? AND source = ? AND target = ?"
        with self._connect() as db:
            db.executemany(query, [(kind, *pair) for pair in pairs])

    def links(
        self, kind: str, *, source: str = "", target: str = ""
    ) -> list[tuple[str, str, Body]]:
        """Links of a kind: source, target and what was noted of them."""
        query = (
            "SELECT source, target, body FROM experiment_links WHERE kind = ?"
            " AND (?2 = '' OR source = ?2) AND (?3 = '' OR target = ?3)"
        )
        with self._connect() as db:
            rows = db.execute(query, (kind, source, target)).fetchall()
        return [(row[0], row[1], json.loads(row[2])) for row in rows]

    def write_points(self, series: str, points: Iterable[Body]) -> None:
        """Add points to a time series; a step that is there gets its new value."""
        rows = [(series, int(point.get("step", 0)), json.dumps(point)) for point in points]
        with self._connect() as db:
            db.executemany("INSERT OR REPLACE INTO experiment_points VALUES (?, ?, ?)", rows)

    def points(self, series: str) -> list[Body]:
        """The points of a time series, by step."""
        query = "SELECT body FROM experiment_points WHERE series = ? ORDER BY step"
        with self._connect() as db:
            return [json.loads(row[0]) for row in db.execute(query, (series,))]

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with connection(self._path, _SCHEMA) as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")


class InstanceTable:
    """TensorBoard instances of stacks and of clients, where the gcp plugin keeps its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str) -> Body | None:
        """The instance, or None."""
        found = self._store.get(TENSORBOARD, name)
        return found and _instance(found)

    def list(self, parent: str) -> list[Body]:
        """Instances whose names are ``parent`` with one more part."""
        found = self._store.list(TENSORBOARD)
        return [_instance(each) for each in found if each.id.rpartition("/")[0] == parent]

    def put(self, body: Body) -> None:
        """Write an instance; what only the plugin notes of it stays."""
        number = body["name"].split("/")[1]
        before = self._store.get(TENSORBOARD, body["name"])
        project = next((p for p in self._store.projects() if project_number(p) == number), number)
        inputs, outputs = (before.inputs, before.outputs) if before else ({}, {})
        self._store.put(TENSORBOARD, body["name"], project, inputs, {**outputs, **body})

    def delete(self, name: str) -> None:
        """Remove an instance."""
        self._store.delete(TENSORBOARD, name)


def _instance(found: StoredResource) -> Body:
    """An instance without what the plugin notes as empty: a number is none in JSON."""
    given = {key: value for key, value in found.outputs.items() if value not in ("", None)}
    return {**given, "name": found.id}
