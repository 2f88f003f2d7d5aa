"""Rows of a file, in batches below the size limit of a request, and their predictions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from vertex_training.errors import CommandError

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Value

#: Maximum bytes of the rows of a request. The limits of requests are 1.5 MB at a shared public
#: endpoint, and 10 MB at a dedicated one: predictions/choose-endpoint-type, read on 2026-08-22.
SHARED_BYTES: Final = 1_400_000
DEDICATED_BYTES: Final = 9_500_000
#: Maximum rows of a request, since a container may handle them in sequence within the timeout.
MOST_ROWS: Final = 256


@dataclass(frozen=True, slots=True)
class Batch:
    """Values of consecutive lines, the first of which is ``line``."""

    line: int
    values: list[Any]

    def __str__(self) -> str:
        last = self.line + len(self.values) - 1
        return f"line {last}" if last == self.line else f"lines {self.line} to {last}"


def batches(file: IO[bytes], most_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a file, one JSON value a line, in requests of at most ``most_bytes``.

    Raises:
        CommandError: a line is not a JSON value, or exceeds the size of a request.
    """
    batch, size, line = Batch(1, []), 0, 0
    while text := file.readline(most_bytes + 1):
        line += 1
        if len(text) > most_bytes:
            raise CommandError(f"line {line}: longer than the limit of a request: {most_bytes} B.")
        value, length = _parsed(line, text)
        if batch.values and (len(batch.values) >= MOST_ROWS or size + length > most_bytes):
            yield batch
            batch, size = Batch(line, []), 0
        batch.values.append(value)
        size += length + 1
    if batch.values:
        yield batch


def _parsed(line: int, text: bytes) -> tuple[Any, int]:
    """Return the value of a line, and its size in a request."""
    try:
        value = json.loads(text)
        # NaN, 1e999 and half a surrogate can be parsed, but not sent.
        return value, len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "unsupported value"
        raise CommandError(f"line {line}: not a JSON value: {reason}.") from None


def to_plain(value: Value) -> Any:
    """Return a protobuf ``Value`` as plain data, with whole numbers as integers."""
    match value.WhichOneof("kind"):
        case "struct_value":
            return {key: to_plain(field) for key, field in value.struct_value.fields.items()}
        case "list_value":
            return [to_plain(item) for item in value.list_value.values]
        case "number_value" if value.number_value.is_integer() and abs(value.number_value) < 2**53:
            return int(value.number_value)
        case "number_value":
            return value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None
