"""Rows of a file, in batches within the size of a request, and an answer for each, in order.

A batch whose answer is an error is halved until the row at fault is alone: the others are answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Value

#: Bytes of a request: of a shared public endpoint 1.5 MB, of a dedicated one 10 MB, less some for
#: what is around the rows. predictions/choose-endpoint-type, read on 2026-08-22.
SHARED_BYTES: Final = 1_400_000
DEDICATED_BYTES: Final = 9_500_000
#: Rows of one request: a container may answer one row after another, within its time.
MOST_ROWS: Final = 256
#: Rows in a row that fail before the rest is not sent.
MOST_FAILURES: Final = 20


@dataclass(frozen=True, slots=True)
class InputRow:
    """One line of the input. ``problem``: why it cannot be sent; else empty."""

    line: int
    value: Any = None
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one row; ``problem`` in its place where there is none."""

    line: int
    value: Any = None
    problem: str = ""


class RowsRefusedError(Exception):
    """A request was refused for what may be a fault of one of its rows."""


#: Sends rows, and returns one prediction for each.
Send = Callable[[Sequence[Any]], Sequence[Any]]


def read_rows(file: IO[bytes], most_bytes: int) -> Iterator[InputRow]:
    """The rows of a file, one JSON value a line. No more of a line is kept than can be sent."""
    line = 0
    while text := file.readline(most_bytes + 1):
        line += 1
        if len(text) > most_bytes and not text.endswith(b"\n"):
            while text and not text.endswith(b"\n"):
                text = file.readline(most_bytes)
            yield InputRow(line, problem=f"longer than a request may be: {most_bytes} bytes")
            continue
        yield _parsed(line, text)


def _parsed(line: int, text: bytes) -> InputRow:
    if not text.strip():
        return InputRow(line, problem="empty; a row is one JSON value")
    try:
        value = json.loads(text)
        # NaN, 1e999 and half a surrogate are read, and cannot be sent.
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "not what JSON has"
        return InputRow(line, problem=f"no JSON value: {reason}")
    return InputRow(line, value, size)


def answer(rows: Iterable[InputRow], send: Send, most_bytes: int) -> Iterator[Prediction]:
    """One prediction for each row, in order.

    Stops after ``MOST_FAILURES`` rows failed one after another; what is left has no answer.
    """
    failed = 0
    for batch in _batches(rows, most_bytes):
        for prediction in _of_batch(batch, send):
            failed = failed + 1 if prediction.problem else 0
            yield prediction
            if failed >= MOST_FAILURES:
                return


def _batches(rows: Iterable[InputRow], most_bytes: int) -> Iterator[list[InputRow]]:
    """Rows that are sent together; one that cannot be sent is a batch of its own."""
    batch: list[InputRow] = []
    size = 0
    for row in rows:
        full = len(batch) >= MOST_ROWS or size + row.size > most_bytes or row.problem
        if batch and full:
            yield batch
            batch, size = [], 0
        if row.problem:
            yield [row]
            continue
        batch.append(row)
        size += row.size + 1
    if batch:
        yield batch


def _of_batch(batch: Sequence[InputRow], send: Send) -> Iterator[Prediction]:
    first = batch[0]
    if first.problem:
        yield Prediction(first.line, problem=first.problem)
        return
    try:
        predictions = send([row.value for row in batch])
        if len(predictions) != len(batch):
            raise RowsRefusedError(f"{len(predictions)} answers for {len(batch)} rows")
    except RowsRefusedError as error:
        if len(batch) == 1:
            yield Prediction(first.line, problem=str(error))
            return
        half = len(batch) // 2
        yield from _of_batch(batch[:half], send)
        yield from _of_batch(batch[half:], send)
        return
    for row, value in zip(batch, predictions, strict=True):
        yield Prediction(row.line, value)


def to_plain(value: Value) -> Any:
    """A protobuf ``Value``, whose numbers are all floats: whole ones as integers."""
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
