"""Scalars of TensorBoard's event files, decoded in bounds: a job may write what it likes.

A file is a sequence of TFRecords, each an Event message (event.proto, summary.proto, tensor.proto
below https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core). PyTorch writes a scalar
as ``simple_value``, TensorFlow 2 as a tensor of one number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import google_crc32c

from vertex_training_cli.jobs.objects import MOST, MOST_BYTES, Objects, StoredFile

#: What the names of event files have, as TensorBoard finds them.
EVENTS: Final = "tfevents"
#: Files that are read at most, and tags that are kept.
MOST_FILES: Final = 32
MOST_TAGS: Final = 1000
#: Where a record may begin: a length above 0 and below 16 MiB, in eight bytes.
_LENGTH: Final = re.compile(rb"(?s)(?=(?!\0{3}).{3}\0{5})")
#: A record's length and its checksum; a checksum of the content follows that.
_HEAD: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
#: Wire types: https://protobuf.dev/programming-guides/encoding/#structure
_VARINT, _BYTES = 0, 2
_FIXED: Final = {1: 8, 5: 4}
#: Fields, with their wire types: of Event, Summary, Summary.Value and TensorProto.
_STEP, _SUMMARY = 2 << 3 | _VARINT, 5 << 3 | _BYTES
_VALUE: Final = 1 << 3 | _BYTES
_TAG, _SIMPLE_VALUE, _TENSOR = 1 << 3 | _BYTES, 2 << 3 | 5, 8 << 3 | _BYTES
_DTYPE, _CONTENT, _LAST = 1 << 3 | _VARINT, 4 << 3 | _BYTES, 7 << 3
#: Types of tensors: a number's form, and its field, packed or alone.
_NUMBERS: Final = {
    1: (struct.Struct("<f"), (5 << 3 | _BYTES, 5 << 3 | 5)),
    2: (struct.Struct("<d"), (6 << 3 | _BYTES, 6 << 3 | 1)),
}


def read(
    objects: Objects, folder: str, files: Sequence[StoredFile], *, more: bool
) -> tuple[dict[str, list[float]], list[str]]:
    """Values of each tag by step, the later file's of the same step; and what was not read.

    A tag below a subfolder has its name in front, as TensorBoard names runs. ``more``: whether
    there may be files that are not among these.

    Raises:
        OperatorError: a file cannot be read.
    """
    points: dict[str, dict[int, float]] = {}
    unread: dict[str, None] = {}
    chosen = _newest(files)
    if more:
        unread[f"only the first {MOST} objects are listed"] = None
    if sum(chosen.values()) < sum(file.size for file in files):
        unread[f"only the newest {MOST_BYTES >> 20} MiB or {MOST_FILES} files are read"] = None
    for file, size in sorted(chosen.items(), key=lambda each: each[0].name):
        run = file.name[: file.name.rfind("/") + 1]
        data = objects.end_of(f"{folder}{file.name}", file.size, size)
        for number, record in enumerate(records(data)):
            # The end of a file begins within a record.
            if record is None and (number or size == file.size):
                unread["damaged records are left out"] = None
            try:
                for tag, step, value in scalars(record or b""):
                    name = f"{run}{tag}"
                    if name in points or len(points) < MOST_TAGS:
                        points.setdefault(name, {})[step] = value
                    else:
                        unread[f"only {MOST_TAGS} tags are kept"] = None
            except (ValueError, IndexError):
                unread["damaged records are left out"] = None
    return {tag: [by[step] for step in sorted(by)] for tag, by in points.items()}, [*unread]


def _newest(files: Sequence[StoredFile]) -> dict[StoredFile, int]:
    """The files that were written last, with how many bytes of their ends are read."""
    chosen: dict[StoredFile, int] = {}
    first = datetime.min.replace(tzinfo=UTC)
    for file in sorted(files, key=lambda each: each.updated or first, reverse=True)[:MOST_FILES]:
        if size := min(file.size, MOST_BYTES - sum(chosen.values())):
            chosen[file] = size
    return chosen


def records(data: bytes) -> Iterator[bytes | None]:
    """Contents of the records; None where damaged ones are left out.

    A last record that is cut short is none: the job goes on writing.
    """
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        if checksum != _masked(data[at : at + 8]):
            yield None
            found = (each.start() for each in _LENGTH.finditer(data, at + 1))
            at = next((each for each in found if _is_head(data, each)), len(data))
            continue
        end = at + _HEAD.size + length
        if end + _CHECKSUM.size > len(data):
            return
        content = data[at + _HEAD.size : end]
        yield content if _CHECKSUM.unpack_from(data, end)[0] == _masked(content) else None
        at = end + _CHECKSUM.size


def _is_head(data: bytes, at: int) -> bool:
    head = data[at : at + _HEAD.size]
    return len(head) == _HEAD.size and _HEAD.unpack(head)[1] == _masked(head[:8])


def _masked(data: bytes) -> int:
    """The checksum of TFRecords: https://www.tensorflow.org/tutorials/load_data/tfrecord."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def scalars(event: bytes) -> Iterator[tuple[str, int, float]]:
    """Tag, step and value of each scalar of an Event message.

    Raises:
        ValueError, IndexError: it is no such message.
    """
    step = next((number for key, number, _ in _fields(event) if key == _STEP), 0)
    step -= step >> 63 << 64  # a negative one
    for summary in (body for key, _, body in _fields(event) if key == _SUMMARY):
        for value in (body for key, _, body in _fields(summary) if key == _VALUE):
            tag, found = "", None
            for key, _, body in _fields(value):
                if key == _TAG:
                    tag = body.decode("utf-8", errors="replace")
                elif key == _SIMPLE_VALUE:
                    found = float(_NUMBERS[1][0].unpack(body)[0])
                elif key == _TENSOR:
                    found = _only_number(body)
            if found is not None:
                yield tag, step, found


def _only_number(tensor: bytes) -> float | None:
    """The number of a tensor that has one; None of text, images and histograms."""
    fields = {key: (number, body) for key, number, body in _fields(tensor) if key < _LAST}
    form, keys = _NUMBERS.get(fields.get(_DTYPE, (0, b""))[0], (None, ()))
    for key in (_CONTENT, *keys):
        _, body = fields.get(key, (0, b""))
        if form and len(body) == form.size:
            return float(form.unpack(body)[0])
    return None


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Key, number and bytes of each field of a message; one of both is empty.

    Never recurses: groups within groups of a damaged file overflow the stack of protobuf's parser.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, size = 0, 0
        if key & 7 == _VARINT:
            number, at = _varint(message, at)
        elif key & 7 == _BYTES:
            size, at = _varint(message, at)
        elif key & 7 in _FIXED:
            size = _FIXED[key & 7]
        else:
            raise ValueError  # groups: none of these messages has one
        if at + size > len(message):
            raise ValueError
        yield key, number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number below 2^64, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError
