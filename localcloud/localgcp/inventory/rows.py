"""Maps dataclasses to SQLite tables: one column for each field.

Fields that are neither text nor a number are JSON. Connections and transactions are the caller's.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import typing
from enum import Enum
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
_SQL: Final = {int: "INTEGER", float: "REAL"}


class Rows(Generic[T]):
    """The rows of one dataclass in one table."""

    def __init__(self, type_: type[T], table: str, *keys: str, unique: str = "") -> None:
        """``keys`` are the fields of the primary key; ``unique`` is another field with unique
        values.
        """
        self.type, self.table = type_, table
        hints = typing.get_type_hints(type_)
        self._kinds = {field.name: _kind(hints[field.name]) for field in dataclasses.fields(type_)}  # pyright: ignore[reportArgumentType]
        columns = [
            f"{name} {_SQL.get(kind, 'TEXT')}{'' if optional else ' NOT NULL'}"
            for name, (kind, optional) in self._kinds.items()
        ]
        columns += [f"PRIMARY KEY ({', '.join(keys)})", *([f"UNIQUE ({unique})"] if unique else [])]
        made = f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns)})"
        self.schema = f"{made} WITHOUT ROWID;"

    def insert(self, db: sqlite3.Connection, row: T, verb: str = "INSERT") -> bool:
        """Add a row; with the verb ``INSERT OR IGNORE``, return False if the key exists."""
        values = [_encoded(getattr(row, name)) for name in self._kinds]
        marks = ", ".join("?" * len(values))
        query = f"{verb} INTO {self.table} ({', '.join(self._kinds)}) VALUES ({marks})"
        return db.execute(query, values).rowcount == 1

    def select(self, db: sqlite3.Connection, rest: str = "", *values: Any) -> list[T]:
        """Return rows selected by ``rest``, the joins, conditions and order of a query."""
        rows = db.execute(f"SELECT {self.table}.* FROM {self.table} {rest}", values)
        return [self._row(row) for row in rows]

    def update(self, db: sqlite3.Connection, row: T, where: str, *values: Any) -> bool:
        """Write all fields of the row that meets a condition; return False if no row meets it."""
        sets = ", ".join(f"{name} = ?" for name in self._kinds)
        new = [_encoded(getattr(row, name)) for name in self._kinds]
        query = f"UPDATE {self.table} SET {sets} WHERE {where}"
        return db.execute(query, [*new, *values]).rowcount == 1

    def _row(self, row: sqlite3.Row) -> T:
        return self.type(**{
            name: _decoded(kind, row[name]) for name, (kind, _) in self._kinds.items()
        })  # fmt: skip


def _kind(hint: Any) -> tuple[Any, bool]:
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    optional = type(None) in typing.get_args(hint)
    return (parts[0] if optional else hint), optional


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
