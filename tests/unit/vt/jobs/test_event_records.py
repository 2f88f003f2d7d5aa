"""How event files of TensorBoard are read: records, messages and bounds, byte for byte."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from tests.unit.vt.jobs.event_files import event, file, record, scalar
from vertex_training_cli.jobs import scalars
from vertex_training_cli.jobs.objects import StoredFile

MIB = 1 << 20
CUT = "only the newest 8 MiB or 32 files are read"
DAMAGED = "damaged records are left out"


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


def test_more_objects_than_a_page_are_told() -> None:
    assert read(Stored(), more=True) == ({}, ["only the first 1000 objects are listed"])
    assert read(Stored()) == ({}, [])


@pytest.mark.parametrize(("count", "told"), [(32, []), (33, [CUT])])
def test_so_many_files_are_read_the_newest_first(count: int, told: list[str]) -> None:
    names = [f"f{number:02}" for number in range(count)]
    stored = Stored(**{name: file(event(0, scalar(name, 1))) for name in names})
    found, unread = read(stored)
    assert (list(found), unread) == (names[-32:], told)


def test_so_many_bytes_are_read_of_the_newest_files_and_of_the_last_its_end() -> None:
    stored = Stored(old=b"", middle=b"", new=b"")
    day = datetime(2026, 11, 1, tzinfo=UTC)
    sizes = {"new": 5 * MIB, "middle": 4 * MIB, "old": 3 * MIB}
    files = [
        StoredFile(name, size, day.replace(hour=3 - number))
        for number, (name, size) in enumerate(sizes.items())
    ]
    assert read(stored, files) == ({}, [CUT])
    assert stored.asked == [
        ("gs://b/logs/middle", 4 * MIB, 3 * MIB),
        ("gs://b/logs/new", 5 * MIB, 5 * MIB),
    ]
    stored.asked.clear()
    fitting = [StoredFile("new", 8 * MIB, day), StoredFile("old", 0, None)]
    assert read(stored, fitting) == ({}, [])
    assert stored.asked == [("gs://b/logs/new", 8 * MIB, 8 * MIB)]


def test_so_many_tags_are_kept_and_those_go_on() -> None:
    tags = [scalar(f"t{number}", number) for number in range(1001)]
    stored = Stored(a=file(event(0, *tags), event(1, scalar("t0", 7))))
    found, unread = read(stored)
    assert (len(found), found["t0"], unread) == (1000, [0.0, 7.0], ["only 1000 tags are kept"])
    assert "t999" in found
    assert read(Stored(a=file(event(0, *tags[:1000]))))[1] == []


def test_a_damaged_record_is_told_and_the_others_are_read() -> None:
    good = file(event(1, scalar("loss", 1)))
    spoilt = bytearray(good)
    spoilt[14] ^= 1  # of the content
    assert read(Stored(a=bytes(spoilt) + good)) == ({"loss": [1.0]}, [DAMAGED])
    spoilt = bytearray(good)
    spoilt[9] ^= 1  # of the checksum of the length
    later = file(event(2, scalar("loss", 2)))
    assert read(Stored(a=bytes(spoilt) + good + later)) == ({"loss": [1.0, 2.0]}, [DAMAGED])
    assert read(Stored(a=record(b"\xff\xff") + good)) == ({"loss": [1.0]}, [DAMAGED])


def test_records_are_found_again_behind_what_is_none() -> None:
    assert list(scalars.records(record(b"a") + record(b"") + record(b"b"))) == [b"a", b"", b"b"]
    assert list(scalars.records(b"\1" * 20 + record(b"a"))) == [None, b"a"]
    assert list(scalars.records(b"\1" * 20)) == [None]
    assert list(scalars.records(b"\1" * 11)) == []
    # a length with a right checksum alone: its end is beyond the file
    head = record(b"x" * 300)[:12]
    assert list(scalars.records(b"\1" * 20 + head)) == [None]


FLOAT, DOUBLE = struct.pack("<f", 0.5), struct.pack("<d", 0.5)


@pytest.mark.parametrize(
    "message",
    [
        b"\x2a\x05abc",  # shorter than it says
        b"\x0b",  # a group
        b"\x0f",  # no wire type
        b"\x0d\0\0\0",  # three bytes of four
        b"\x09\0\0\0\0\0\0\0",  # seven of eight
        b"\x10",  # a number that is missing
        b"\x10" + b"\x80" * 10 + b"\x01",  # one of more than ten bytes
    ],
)
def test_what_is_no_message_is_refused(message: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        list(scalars.scalars(message))
