"""Moves an entry to another mapping, and makes two items of one with a count.

The text is edited where the parser finds it;
:mod:`vertex_training.located_yaml.mending` proves the edit.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import yaml

from vertex_training.errors import Mend, Path
from vertex_training.located_yaml.editing import end_of, end_of_value, with_entry


def expected(before: Any, path: Path, mend: Mend) -> Any:
    """The document with the change.

    Raises:
        LookupError: there is no such place.
        TypeError: it is of another kind.
        ValueError: the change would lose something.
    """
    after = copy.deepcopy(before)
    *outer, last = path
    inner = _at(after, tuple(outer))
    if mend.action == "split":
        return _expected_split(after, path)
    target = _at(after, mend.target)
    if last in target or len(inner) == 1:
        raise ValueError
    target[last] = inner.pop(last)
    return after


def _expected_split(after: Any, path: Path) -> Any:
    *outer, index, last = path
    items = _at(after, tuple(outer))
    count = int(items[index][last])
    if count < 2 or not isinstance(items, list) or not isinstance(index, int):
        raise ValueError
    rest = copy.deepcopy(items[index])
    items[index][last], rest[last] = 1, count - 1
    items.insert(index + 1, rest)
    return after


def _at(inner: Any, path: Path) -> Any:
    for part in path:
        inner = inner[part]
    return inner


def moved(
    text: str, without: str | None, parent: yaml.Node, index: int, target: Path
) -> str | None:
    """``without``, which is ``text`` without an entry, and that entry at the end of ``target``.

    None where the entry or the target is written in one line, or where the edit cannot be made.
    """
    if without is None or not isinstance(parent, yaml.MappingNode) or parent.flow_style:
        return None
    key = parent.value[index][0]
    entry = text[key.start_mark.index : end_of(parent.value[index]).index].rstrip()
    node = _node(without, target)
    if node.flow_style:
        return None
    shifted = _shifted(entry, node.value[0][0].start_mark.column - key.start_mark.column)
    return None if shifted is None else with_entry(without, node, shifted)


def _node(text: str, path: Path) -> Any:
    """The mapping or list at ``path``, which is there by :func:`expected`.

    Raises:
        ValueError: it is there by a merge, so its text stands elsewhere.
    """
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in path:
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            node = node.value[keys.index(part)][1]
        else:
            node = node.value[part]
    return node


def _shifted(entry: str, by: int) -> str | None:
    """The lines of an entry but the first, farther in or out."""
    first, *lines = entry.split("\n")
    shifted = [first]
    for line in lines:
        blank = not line.strip()
        if by < 0 and not blank and line[:-by].strip(" "):
            return None
        shifted.append(line if blank else " " * by + line if by > 0 else line[-by:])
    return "\n".join(shifted)


def split(text: str, path: Path) -> str | None:
    """The text with two items of the one whose count is at ``path``: one, and the others.

    Raises:
        ValueError: the count is no whole number as it is written.
    """
    *_, index, last = path
    items = _node(text, path[:-2])
    item = items.value[index]
    count = next(value for key, value in item.value if key.value == last)
    start, end = item.start_mark.index, end_of_value(item).index
    counts = 1, int(count.value) - 1
    one, rest = (_with_count(text[start:end], count, start, number) for number in counts)
    dash = re.fullmatch(r" *- +", text[:start].rpartition("\n")[2])
    if items.flow_style:
        joint = ", "
    elif dash is None:
        return None
    else:
        joint = ("" if one.endswith("\n") else "\r\n" if "\r\n" in text else "\n") + dash[0]
    return f"{text[:start]}{one}{joint}{rest}{text[end:]}"


def _with_count(item: str, count: yaml.Node, start: int, number: int) -> str:
    begin, end = count.start_mark.index - start, count.end_mark.index - start
    return f"{item[:begin]}{number}{item[end:]}"
