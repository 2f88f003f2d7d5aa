"""How event files of TensorBoard are read: records, messages and bounds, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.unit.vt.jobs.event_files import record
from vertex_training_cli.jobs import scalars
from vertex_training_cli.jobs.objects import StoredFile


class Stored:
    """Objects with these contents; remembers which ends of them were asked for."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = {name.replace("__", "/"): data for name, data in contents.items()}
        self.asked: list[tuple[str, int, int]] = []

    def end_of(self, uri: str, size: int, count: int) -> bytes:
        self.asked.append((uri, size, count))
        return self.contents[uri.removeprefix("gs://b/logs/")][:size][-count:]

    def files(self) -> list[StoredFile]:
        return [
            StoredFile(name, len(data), datetime(2026, 11, 1, 0, number, tzinfo=UTC))
            for number, (name, data) in enumerate(self.contents.items())
        ]


def read(stored: Stored, files: list[StoredFile] | None = None, *, more: bool = False):
    chosen = stored.files() if files is None else files
    return scalars.read(stored, "gs://b/logs/", chosen, more=more)  # type: ignore[arg-type]


def test_records_are_found_again_behind_what_is_none() -> None:
    assert list(scalars.records(record(b"a") + record(b"") + record(b"b"))) == [b"a", b"", b"b"]
    assert list(scalars.records(b"\1" * 20 + record(b"a"))) == [None, b"a"]
    assert list(scalars.records(b"\1" * 20)) == [None]
    assert list(scalars.records(b"\1" * 11)) == []
    # a length with a right checksum alone: its end is beyond the file
    head = record(b"x" * 300)[:12]
    assert list(scalars.records(b"\1" * 20 + head)) == [None]
