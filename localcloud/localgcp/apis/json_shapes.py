"""Check that a JSON document fits a message and report every mistake in Google's words (pure).

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

#: Levels of nesting at most, as protobuf's own parsers take.
_DEEPEST: Final = 100


class Scalar(StrEnum):
    """A type of value, as the errors name it."""

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
    """Whatever JSON has; ``Shape.parses`` decides."""


#: Texts of a parameter of the query that are a boolean.
BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False, "1": True}
_RANGES: Final = {
    Scalar.INT32: (-(2**31), 2**31 - 1),
    Scalar.UINT32: (0, 2**32 - 1),
    Scalar.INT64: (-(2**63), 2**63 - 1),
    Scalar.UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True)
class Shape:
    """The JSON accepted at a place: a message, a list, a map or a value."""

    fields: Callable[[str], Shape | None] | None = None
    """Of a message: the field of a name, None if it has none."""
    item: Shape | None = None
    value: Shape | None = None
    scalar: Scalar = Scalar.ANY
    values: frozenset[str] = frozenset()
    """Names of an enum."""
    name: str = ""
    """Of a message or an enum, for errors."""
    parses: Callable[[Any], bool] = lambda _value: True
    """True if a value of ``ANY`` is valid for its type."""


def check(found: Any, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Place and text of each mistake; ``path`` names the document within its request."""
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


def _list(found: Any, item: Shape, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(found, list):
        yield path, _invalid(found, item, path)
        return
    for index, each in enumerate(found):
        yield from check(each, item, f"{path}[{index}]")


def _object(found: Any, shape: Shape, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(found, dict):
        yield path, _invalid(found, shape, path)
        return
    for key, each in found.items():
        field = shape.value or (shape.fields and shape.fields(key))
        if field is None:
            at = f" at '{path}'" if path else ""
            yield path, f'Unknown name "{key}"{at}: Cannot find field.'
            continue
        own = f"[{key}]" if shape.value else re.sub(r"[A-Z]", lambda c: f"_{c[0].lower()}", key)
        yield from check(each, field, f"{path}.{own}" if path else own)


def _invalid(found: Any, shape: Shape, path: str) -> str:
    kind = f"type.googleapis.com/{shape.name}" if shape.name else shape.scalar
    given = json.dumps(found, ensure_ascii=False)[:200]
    return f"Invalid value at '{path}' ({kind}), {given}"


def _is_one(found: Any, shape: Shape) -> bool:
    match shape.scalar:
        case Scalar.STRING:
            return isinstance(found, str) and _is_text(found)
        case Scalar.BOOL:
            return isinstance(found, bool)
        case Scalar.DOUBLE:
            return _number(found) is not None
        case Scalar.BYTES:
            return isinstance(found, str) and _is_base64(found)
        case Scalar.ENUM:
            is_number = isinstance(found, int) and not isinstance(found, bool)
            return found in shape.values if isinstance(found, str) else is_number
        case Scalar.ANY:
            return shape.parses(found)
        case integer:
            low, high = _RANGES[integer]
            number = _number(found)
            return number is not None and number == int(number) and low <= int(number) <= high


def _number(found: Any) -> int | float | None:
    """A number, or a text of one; no infinity."""
    if isinstance(found, str) and re.fullmatch(r"-?\d{1,400}", found):
        return int(found)
    if isinstance(found, str) and re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", found):
        found = float(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return found if isinstance(found, int) or math.isfinite(found) else None


def _is_text(found: str) -> bool:
    try:
        found.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_base64(found: str) -> bool:
    text = found.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # also of a character that is not ASCII
        return False
    return True
