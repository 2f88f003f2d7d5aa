"""Scalars of TensorBoard's event files, decoded in bounds: a job may write what it likes.

A file is a sequence of TFRecords, each an Event message (event.proto, summary.proto, tensor.proto
below https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core). PyTorch writes a scalar
as ``simple_value``, TensorFlow 2 as a tensor of one number.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import google_crc32c
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

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
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
#: The messages of an event file, with the fields that a scalar needs. Each field is repeated, which
#: also says whether it is there; a tag may be no UTF-8.
_MESSAGES: Final[Mapping[str, Sequence[tuple[str, int, int | str]]]] = {
    "Event": (("step", 2, Field.TYPE_INT64), ("summary", 5, ".vt.Summary")),
    "Summary": (("value", 1, ".vt.Value"),),
    "Value": (
        ("tag", 1, Field.TYPE_BYTES),
        ("simple_value", 2, Field.TYPE_FLOAT),
        ("tensor", 8, ".vt.TensorProto"),
    ),
    "TensorProto": (
        ("dtype", 1, Field.TYPE_INT32),
        ("tensor_content", 4, Field.TYPE_BYTES),
        ("float_val", 5, Field.TYPE_FLOAT),
        ("double_val", 6, Field.TYPE_DOUBLE),
    ),
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
            except ValueError:
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
        ValueError: it is no such message.
    """
    try:
        parsed = _event_class().FromString(event)
    except DecodeError as error:
        raise ValueError(str(error)) from None
    step = parsed.step[0] if parsed.step else 0
    for value in (value for summary in parsed.summary for value in summary.value):
        found = [float(number) for number in value.simple_value]
        found += [number for each in value.tensor if (number := _only_number(each)) is not None]
        if found:
            tag = value.tag[-1] if value.tag else b""
            yield tag.decode("utf-8", errors="replace"), step, found[-1]


def _only_number(tensor: Any) -> float | None:
    """The number of a tensor that has one; None of text, images and histograms."""
    kinds = {1: (_FLOAT, tensor.float_val), 2: (_DOUBLE, tensor.double_val)}
    form, numbers = kinds.get(tensor.dtype[-1] if tensor.dtype else 0, (None, ()))
    content = tensor.tensor_content[-1] if tensor.tensor_content else b""
    if form and len(content) == form.size:
        return float(form.unpack(content)[0])
    return float(numbers[0]) if len(numbers) == 1 else None


@functools.cache
def _event_class() -> Any:
    """The class of Event, of a description of its own: TensorBoard's is not installed here."""
    file = FileDescriptorProto(name="vt/event.proto", package="vt", syntax="proto3")
    for message, fields in _MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            field = described.field.add(name=name, number=number, label=Field.LABEL_REPEATED)
            if isinstance(kind, str):
                field.type, field.type_name = Field.TYPE_MESSAGE, kind
            else:
                field.type = kind
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("vt.Event"))
