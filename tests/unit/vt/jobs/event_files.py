"""Event files of TensorBoard, made by hand: also those that no writer of it makes."""

from __future__ import annotations

import struct

from vertex_training_cli.jobs import scalars


def file(*events: bytes) -> bytes:
    """A file of these records."""
    return b"".join(map(record, events))


def record(content: bytes) -> bytes:
    """A TFRecord. Files of the fixtures prove the checksum, which is the product's here."""
    length = struct.pack("<Q", len(content))
    sums = [struct.pack("<I", scalars._masked(each)) for each in (length, content)]
    return length + sums[0] + content + sums[1]


def event(step: int, *values: bytes) -> bytes:
    """An Event message."""
    return b"\x10" + varint(step % (1 << 64)) + part(5, b"".join(part(1, v) for v in values))


def scalar(tag: str, value: float) -> bytes:
    """A Summary.Value with a ``simple_value``."""
    return part(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def part(field: int, content: bytes) -> bytes:
    """A field of bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """A number of a message."""
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])
