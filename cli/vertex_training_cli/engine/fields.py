"""Two values -> the fields that differ, by their paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

#: Stands for a field that one side does not have. It is no JSON value.
ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that differs. ``None`` for a side that does not have it."""

    path: str
    old: str | None
    new: str | None


def diff_fields(old: Any, new: Any) -> list[FieldDifference]:
    """Fields in which ``old`` and ``new`` differ, in the order of their paths.

    >>> [field.path for field in diff_fields({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}], "c": 0})]
    ['a[1].b', 'c']
    """
    return [
        FieldDifference(path, _text(before), _text(after))
        for path, before, after in _walk("", old, new)
    ]


def added_fields(value: Any) -> list[FieldDifference]:
    """All fields of a value, as added ones."""
    return diff_fields({}, value)


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(new, dict) and (isinstance(old, dict) or (old is ABSENT and new)):
        before = {} if old is ABSENT else old
        for key in sorted({*before, *new}):
            inside = f"{path}.{key}" if path else key
            yield from _walk(inside, before.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from _walk(f"{path}[{index}]", _item(old, index), _item(new, index))
    elif old != new or isinstance(old, bool) != isinstance(new, bool):  # to Python, 1 is True
        yield path, old, new


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else ABSENT


def _text(value: Any) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
