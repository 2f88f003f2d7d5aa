"""Sends a file's rows in batches below the size limit of a request; returns answers in order.

A failed batch is halved until the faulty row is isolated, so that the other rows get answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from google.protobuf.struct_pb2 import Value

#: Maximum bytes of the rows of a request. The limits of requests are 1.5 MB at a shared public
#: endpoint, and 10 MB at a dedicated one: predictions/choose-endpoint-type, read on 2026-08-22.
SHARED_BYTES: Final = 1_400_000
DEDICATED_BYTES: Final = 9_500_000
#: Maximum rows of a request, since a container may handle them in sequence within the timeout.
MOST_ROWS: Final = 256
#: Failed rows in succession after which the rest is not sent.
MOST_FAILURES: Final = 20


@dataclass(frozen=True, slots=True)
class InputRow:
    """One line of the input. ``problem`` is the reason why it cannot be sent; else empty."""

    line: int
    value: Any = None
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one row, or the ``problem`` of the row."""

    line: int
    value: Any = None
    problem: str = ""


class RowsRefusedError(Exception):
    """A request was refused, possibly because of one of its rows."""


#: Function that sends rows and returns one prediction for each row.
Send = Callable[[Sequence[Any]], Sequence[Any]]


def read_rows(file: IO[bytes], most_bytes: int) -> Iterator[InputRow]:
    """Yield the rows of a file, one JSON value a line; skip lines that exceed a request's size."""
    line = 0
    while text := file.readline(most_bytes + 1):
        line += 1
        if len(text) > most_bytes and not text.endswith(b"\n"):
            while text and not text.endswith(b"\n"):
                text = file.readline(most_bytes)
            yield InputRow(line, problem=f"longer than the limit of a request, {most_bytes} bytes")
            continue
        yield _parsed(line, text)


def _parsed(line: int, text: bytes) -> InputRow:
    if not text.strip():
        return InputRow(line, problem="empty line; each line must have one JSON value")
    try:
        value = json.loads(text)
        # NaN, 1e999 and half a surrogate can be parsed, but not sent.
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "unsupported value"
        return InputRow(line, problem=f"not a JSON value: {reason}")
    return InputRow(line, value, size)


def answer(rows: Iterable[InputRow], send: Send, most_bytes: int) -> Iterator[Prediction]:
    """Yield one prediction for each row, in order.

    Stops after ``MOST_FAILURES`` failed rows in succession.
    """
    failed = 0
    for batch in _batches(rows, most_bytes):
        for prediction in _of_batch(batch, send):
            failed = failed + 1 if prediction.problem else 0
            yield prediction
            if failed >= MOST_FAILURES:
                return


def _batches(rows: Iterable[InputRow], most_bytes: int) -> Iterator[list[InputRow]]:
    """Yield batches of rows; a row that cannot be sent is a batch of its own."""
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
