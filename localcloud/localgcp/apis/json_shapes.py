"""Checks that a JSON document fits a message; reports every mistake in Google's wording (pure).

Google's front end words them so for all of its APIs
(https://protobuf.dev/programming-guides/json/ has the forms of values).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

#: Maximum levels of nesting, as in protobuf's own parsers.
_DEEPEST: Final = 100


class Scalar(StrEnum):
    """A scalar type with its name in error messages."""

    STRING = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    UINT32 = "TYPE_UINT32"
    INT64 = "TYPE_INT64"
    UINT64 = "TYPE_UINT64"
    DOUBLE = "TYPE_DOUBLE"
    BYTES = "TYPE_BYTES"
    ENUM = "TYPE_ENUM"
    ANY = "TYPE_MESSAGE"
    """Any JSON value that ``Shape.parses`` accepts."""


#: Text of a boolean query parameter -> value.
BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False, "1": True}
_RANGES: Final = {
    Scalar.INT32: (-(2**31), 2**31 - 1),
    Scalar.UINT32: (0, 2**32 - 1),
    Scalar.INT64: (-(2**63), 2**63 - 1),
    Scalar.UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True)
class Shape:
    """The JSON accepted at a place: a message, a list, a map or a scalar."""

    fields: Callable[[str], Shape | None] | None = None
    """For a message: returns the shape of a field by name; None for an unknown field."""
    item: Shape | None = None
    value: Shape | None = None
    scalar: Scalar = Scalar.ANY
    values: frozenset[str] = frozenset()
    """For an enum: the names of its values."""
    name: str = ""
    """Name of a message or an enum in error texts."""
    parses: Callable[[Any], bool] = lambda _value: True
    """True if a value of ``ANY`` is valid for its type."""


def check(found: Any, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and text of each mistake; ``path`` is the document's path in its request."""
    if path.count(".") + path.count("[") > _DEEPEST:
        yield path, f"Message too deep. Max recursion depth reached for key '{path[-40:]}'"
    elif found is None:
        return
    elif shape.item is not None:
        yield from _list(found, shape.item, path)
    elif shape.value is not None or shape.fields is not None:
        yield from _object(found, shape, path)
    elif isinstance(found, list) and shape.scalar is not Scalar.ANY:
        parent, _, last = path.rpartition(".")
        at = f" at '{parent}'" if parent else ""
        text = f'Unknown name "{last}"{at}: Proto field is not repeating, cannot start list.'
        yield parent, text
    elif not _is_one(found, shape):
        yield path, _invalid(found, shape, path)


def _list(value: Any, item: Shape, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield path, _invalid(value, item, path)
        return
    for index, element in enumerate(value):
        yield from check(element, item, f"{path}[{index}]")


def _object(value: Any, shape: Shape, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, _invalid(value, shape, path)
        return
    for key, member in value.items():
        field = shape.value or (shape.fields and shape.fields(key))
        if field is None:
            at = f" at '{path}'" if path else ""
            yield path, f'Unknown name "{key}"{at}: Cannot find field.'
            continue
        own = f"[{key}]" if shape.value else re.sub(r"[A-Z]", lambda c: f"_{c[0].lower()}", key)
        yield from check(member, field, f"{path}.{own}" if path else own)


def _invalid(value: Any, shape: Shape, path: str) -> str:
    kind = f"type.googleapis.com/{shape.name}" if shape.name else shape.scalar
    text = json.dumps(value, ensure_ascii=False)[:200]
    return f"Invalid value at '{path}' ({kind}), {text}"


def _is_one(value: Any, shape: Shape) -> bool:
    match shape.scalar:
        case Scalar.STRING:
            return isinstance(value, str) and _is_text(value)
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.DOUBLE:
            return _number(value) is not None
        case Scalar.BYTES:
            return isinstance(value, str) and _is_base64(value)
        case Scalar.ENUM:
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return value in shape.values if isinstance(value, str) else is_number
        case Scalar.ANY:
            return shape.parses(value)
        case integer:
            low, high = _RANGES[integer]
            number = _number(value)
            return number is not None and number == int(number) and low <= int(number) <= high


def _number(value: Any) -> int | float | None:
    """Return whether the value is a finite number, possibly as text."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,400}", value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_base64(encoded: str) -> bool:
    text = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # also of a character that is not ASCII
        return False
    return True
