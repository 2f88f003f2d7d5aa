"""How event files of TensorBoard are read: records, messages and bounds, byte for byte."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from tests.unit.vt.jobs.event_files import event, file, part, record, scalar, tensor, varint
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


def test_a_tag_has_its_folder_in_front_and_a_later_file_wins_by_name() -> None:
    stored = Stored(
        z=file(event(2, scalar("loss", 9))),
        a=file(event(2, scalar("loss", 2)), event(1, scalar("loss", 1))),
        run__deep__a=file(event(0, scalar("x", 5))),
    )
    assert read(stored) == ({"loss": [1.0, 9.0], "run/deep/x": [5.0]}, [])
    assert [uri for uri, *_ in stored.asked] == [
        "gs://b/logs/a", "gs://b/logs/run/deep/a", "gs://b/logs/z",
    ]  # fmt: skip


def test_more_objects_than_a_page_are_told() -> None:
    assert read(Stored(), more=True) == ({}, ["only the first 1000 objects are listed"])
    assert read(Stored()) == ({}, [])


@pytest.mark.parametrize(("count", "told"), [(32, []), (33, [CUT])])
def test_so_many_files_are_read_the_newest_first(count: int, told: list[str]) -> None:
    names = [f"f{number:02}" for number in range(count)]
    stored = Stored(**{name: file(event(0, scalar(name, 1))) for name in names})
    found, unread = read(stored)
    assert (list(found), unread) == (names[-32:], told)


def test_a_file_without_a_time_is_the_oldest() -> None:
    stored = Stored(**{f"f{number:02}": file(event(0, scalar("x", 1))) for number in range(33)})
    first, second, *others = stored.files()
    aged = [first, StoredFile(second.name, second.size, None), *others]
    read(stored, aged)
    assert "gs://b/logs/f01" not in [uri for uri, *_ in stored.asked]
    assert len(stored.asked) == 32


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


def test_the_end_of_a_file_may_begin_within_a_record() -> None:
    whole = file(*(event(n, scalar("loss", n)) for n in range(3)))
    broken = bytearray(whole)
    broken[len(whole) // 3 + 14] ^= 1
    large = [StoredFile("a", 9 * MIB, None)]
    assert read(Stored(a=b"\1" * 20 + whole), large) == ({"loss": [0.0, 1.0, 2.0]}, [CUT])
    assert read(Stored(a=b"\1" * 20 + whole)) == ({"loss": [0.0, 1.0, 2.0]}, [DAMAGED])
    found = read(Stored(a=b"\1" * 20 + bytes(broken)), large)
    assert found == ({"loss": [0.0, 2.0]}, [CUT, DAMAGED])


@pytest.mark.parametrize("kept", [0, 3, 11, 12, 20, -1])
def test_a_record_that_is_cut_short_is_none(kept: int) -> None:
    whole, last = record(b"first"), record(b"second, of some length")
    assert list(scalars.records(whole + last[:kept])) == [b"first"]


def test_records_are_found_again_behind_what_is_none() -> None:
    assert list(scalars.records(record(b"a") + record(b"") + record(b"b"))) == [b"a", b"", b"b"]
    assert list(scalars.records(b"\1" * 20 + record(b"a"))) == [None, b"a"]
    assert list(scalars.records(b"\1" * 20)) == [None]
    assert list(scalars.records(b"\1" * 11)) == []
    # a length with a right checksum alone: its end is beyond the file
    head = record(b"x" * 300)[:12]
    assert list(scalars.records(b"\1" * 20 + head)) == [None]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"", []),
        (event(3), []),
        (event(3, scalar("a", 0.5), scalar("b", 2)), [("a", 3, 0.5), ("b", 3, 2.0)]),
        (event(-(1 << 63), scalar("a", 1)), [("a", -(1 << 63), 1.0)]),
        (event((1 << 63) - 1, scalar("a", 1)), [("a", (1 << 63) - 1, 1.0)]),
        # an event without a step is the first one
        (part(5, part(1, scalar("a", 1))), [("a", 0, 1.0)]),
        # other fields of each message: wall time, file version, metadata, a node's name
        (b"\x09" + b"\0" * 8 + event(1, part(7, b"node") + scalar("a", 1)), [("a", 1, 1.0)]),
        (part(3, b"brain.Event:2"), []),
        (b"\x10\x01" + part(5, part(2, scalar("no", 1)) + part(1, scalar("a", 1))),
         [("a", 1, 1.0)]),
        (b"\x10\x01" + part(4, part(1, scalar("no", 1))), []),
        # a value without a tag, and one with a tag that is no text
        (event(1, b"\x15" + struct.pack("<f", 1)), [("", 1, 1.0)]),
        (event(1, part(1, b"\xff") + b"\x15" + struct.pack("<f", 1)), [("\ufffd", 1, 1.0)]),
    ],
)  # fmt: skip
def test_the_scalars_of_an_event(message: bytes, told: list[tuple[str, int, float]]) -> None:
    assert list(scalars.scalars(message)) == told


FLOAT, DOUBLE = struct.pack("<f", 0.5), struct.pack("<d", 0.5)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (tensor("x", 1, 4, FLOAT), 0.5),
        (tensor("x", 1, 5, FLOAT), 0.5),
        (tensor("x", 2, 4, DOUBLE), 0.5),
        (tensor("x", 2, 6, DOUBLE), 0.5),
        # alone, not packed: fields 5 and 6 of four and of eight bytes
        (part(1, b"x") + part(8, b"\x08\x01" + varint(5 << 3 | 5) + FLOAT), 0.5),
        (part(1, b"x") + part(8, b"\x08\x02" + varint(6 << 3 | 1) + DOUBLE), 0.5),
        # the type follows, other fields are between
        (part(1, b"x") + part(8, part(2, b"shape") + part(4, FLOAT) + b"\x08\x01"), 0.5),
        # of another type than its bytes, in another type's field, without a type, of other types
        (tensor("x", 2, 4, FLOAT), None),
        (tensor("x", 1, 6, FLOAT), None),
        (tensor("x", 2, 5, DOUBLE), None),
        (part(1, b"x") + part(8, part(4, FLOAT)), None),
        (tensor("x", 3, 4, FLOAT), None),
        (tensor("x", 7, 8, b"text"), None),
        (tensor("x", 1, 7, FLOAT), None),
        (tensor("x", 1, 4, FLOAT) + part(8, b"\x08\x01"), None),  # the last one counts
    ],
)
def test_a_tensor_of_one_number_is_a_scalar(value: bytes, number: float | None) -> None:
    expected = [] if number is None else [("x", 1, number)]
    assert list(scalars.scalars(event(1, value))) == expected


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


@pytest.mark.parametrize(
    ("message", "value", "end"),
    [
        (b"\0", 0, 1),
        (b"\x7f", 127, 1),
        (b"\x80\x01", 128, 2),
        (b"\xff" * 9 + b"\x01", (1 << 64) - 1, 10),
        (b"\xff" * 9 + b"\x03", (1 << 64) - 1, 10),  # what is above 2^64 is lost
        (b"\x80" * 9 + b"\x01", 1 << 63, 10),
    ],
)
def test_a_number_has_seven_bits_a_byte(message: bytes, value: int, end: int) -> None:
    assert scalars._varint(message, 0) == (value, end)
    assert scalars._varint(b"\x80" + message, 1) == (value, end + 1)


def test_the_checksum_is_that_of_tfrecords() -> None:
    # CRC-32C of "123456789" is 0xE3069283 (RFC 3720, B.4 has others), turned by 15 bits
    turned = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF
    assert scalars._masked(b"123456789") == (turned + 0xA282EAD8) % (1 << 32)
