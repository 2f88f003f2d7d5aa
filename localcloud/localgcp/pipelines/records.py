"""Training pipelines as rows of SQLite: which CustomJob each one runs."""

from __future__ import annotations

import builtins
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localgcp.home import touch_private
from localgcp.inventory.store import BUSY_SECONDS

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS training_pipelines (
    pipeline_id TEXT PRIMARY KEY, number TEXT NOT NULL, region TEXT NOT NULL,
    job_id TEXT NOT NULL, request TEXT NOT NULL, create_time TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True)
class PipelineRecord:
    """One row. Its state is that of the job."""

    pipeline_id: str
    number: str
    """Of the project."""
    region: str
    job_id: str
    request: dict[str, Any]
    """The TrainingPipeline as it was sent, in the API's JSON form."""
    create_time: str

    @property
    def name(self) -> str:
        place = f"projects/{self.number}/locations/{self.region}"
        return f"{place}/trainingPipelines/{self.pipeline_id}"


class PipelineTable:
    """The table ``training_pipelines``; safe across threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def insert(self, record: PipelineRecord) -> None:
        """Add a pipeline."""
        values = [*vars(record).values()]
        values[4] = json.dumps(record.request)
        with self._connect() as db:
            db.execute("INSERT INTO training_pipelines VALUES (?, ?, ?, ?, ?, ?)", values)

    def get(self, pipeline_id: str) -> PipelineRecord | None:
        """The pipeline, or None."""
        query = "SELECT * FROM training_pipelines WHERE pipeline_id = ?"
        with self._connect() as db:
            row = db.execute(query, (pipeline_id,)).fetchone()
        return _record(row) if row else None

    def list(self, number: str, region: str) -> builtins.list[PipelineRecord]:
        """Pipelines of a project and a region, newest first."""
        query = (
            "SELECT * FROM training_pipelines WHERE number = ? AND region = ?"
            " ORDER BY create_time DESC, pipeline_id DESC"
        )
        with self._connect() as db:
            return [_record(row) for row in db.execute(query, (number, region))]

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        touch_private(self._path)
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            db.row_factory = sqlite3.Row
            db.execute(_SCHEMA)
            yield db
        finally:
            db.close()


def _record(row: sqlite3.Row) -> PipelineRecord:
    values = dict(row)
    return PipelineRecord(**{**values, "request": json.loads(values["request"])})
