"""Renames, removes or moves a key, or replaces a value, in YAML or JSON; all else stays as it is.

Every edit is made in the text, at the places that the parser reports, and proved: what the text
means afterwards is what it meant before, with this one change. An edit that cannot be proved is
not made.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import yaml

from vertex_training.errors import Mend, Path
from vertex_training.located_yaml import moving
from vertex_training.located_yaml.editing import end_of, is_same


def mended(text: str, path: Path, mend: Mend) -> str | None:
    """``text`` with one mend at ``path``; None if it cannot be made without changing more."""
    try:
        before = yaml.load(text, Loader=yaml.SafeLoader)
        # In Python, since marks of the C parser count otherwise on some systems.
        found = _pair(yaml.compose(text, Loader=yaml.SafeLoader), path)
        expected = _expected(before, path, mend)
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        return None
    if found is None or _is_special(text, found, mend):
        return None
    try:
        edited = _edited(text, found, path, mend)
        same = edited is not None and is_same(yaml.load(edited, Loader=yaml.SafeLoader), expected)
    except (yaml.YAMLError, ValueError):
        return None
    return edited if same else None


def _edited(text: str, found: tuple[yaml.Node, int], path: Path, mend: Mend) -> str | None:
    parent, index = found
    if mend.action == "move":
        return moving.moved(text, _without(text, parent, index), parent, index, mend.target)
    if mend.action == "split":
        return moving.split(text, path)
    if mend.action == "remove":
        return _without(text, parent, index)
    if mend.action == "rename":
        return _replaced(text, _key(parent, index), str(mend.to))
    return _replaced(text, _value(parent, index), mend.to)


def _expected(before: Any, path: Path, mend: Mend) -> Any:
    """The document with the change."""
    if mend.action in ("move", "split"):
        return moving.expected(before, path, mend)
    after = copy.deepcopy(before)
    inner = after
    for part in path[:-1]:
        inner = inner[part]
    last = path[-1]
    if mend.action == "value":
        inner[last] = mend.to
    elif not isinstance(inner, dict):
        raise TypeError
    elif mend.action == "remove":
        if len(inner) == 1:
            raise ValueError
        del inner[last]
    else:
        if mend.to in inner:
            raise ValueError
        pairs = [(mend.to if key == last else key, value) for key, value in inner.items()]
        inner.clear()
        inner.update(pairs)
    return after


def _pair(node: yaml.Node | None, path: Path) -> tuple[yaml.Node, int] | None:
    """The mapping or list that has the last part of ``path``, and where in it."""
    parent, index = node, -1
    for depth, part in enumerate(path):
        parent = node if depth == 0 else _value(parent, index)
        if isinstance(parent, yaml.MappingNode):
            keys = [key.value for key, _ in parent.value]
            index = keys.index(str(part))
        elif isinstance(parent, yaml.SequenceNode) and isinstance(part, int):
            index = part
            parent.value[index]
        else:
            return None
    return (parent, index) if parent is not None else None


def _key(parent: Any, index: int) -> yaml.Node:
    return parent.value[index][0]


def _value(parent: Any, index: int) -> yaml.Node:
    item = parent.value[index]
    return item[1] if isinstance(parent, yaml.MappingNode) else item


def _is_special(text: str, found: tuple[yaml.Node, int], mend: Mend) -> bool:
    """Whether an anchor or a tag stands there; an alias stands for the node at its anchor."""
    parent, index = found
    node = _key(parent, index) if mend.action == "rename" else _value(parent, index)
    start = node.start_mark.index
    return text[start : start + 1] in ("&", "*", "!", "|", ">")


def _replaced(text: str, node: yaml.Node, to: str | int | bool) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        return None
    start, end = node.start_mark.index, node.end_mark.index
    if start == end:
        return None
    return f"{text[:start]}{_scalar(text, node, to)}{text[end:]}"


def _scalar(text: str, node: yaml.ScalarNode, to: str | int | bool) -> str:
    """``to`` in the quotes that are there, in none, or in those that it needs."""
    if not isinstance(to, str):
        return json.dumps(to)
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{")
    if node.style == '"' or is_json:
        return json.dumps(to, ensure_ascii=False)
    if node.style == "'":
        return "'" + to.replace("'", "''") + "'"
    try:
        plain = yaml.load(to, Loader=yaml.SafeLoader) == to and to == to.strip()
    except yaml.YAMLError:
        plain = False
    return to if plain and not set(to) & set(",[]{}#:&*!|>'\"%@`") else json.dumps(to)


def _without(text: str, parent: yaml.Node, index: int) -> str | None:
    """The text without an entry of a mapping; None where a comment would go with it."""
    pairs: list[tuple[yaml.Node, yaml.Node]] = parent.value
    key, value = pairs[index]
    start, end = key.start_mark.index, end_of((key, value)).index
    if value.start_mark.index == value.end_mark.index:  # marked on a later line, maybe
        end = key.end_mark.index + 1
    following = pairs[index + 1][0].start_mark.index if index + 1 < len(pairs) else None
    line = text[:start].rfind("\n") + 1
    if isinstance(parent, yaml.MappingNode) and parent.flow_style:
        before = end_of(pairs[index - 1]).index
        cut = (before, end) if following is None else (start, following)
    elif text[line:start].strip() == "":  # the whole line, or lines
        line_end = text.find("\n", end) + 1
        cut = (line, line_end or len(text))
    elif following is not None:  # behind a dash: the next entry takes its place
        cut = (start, following)
    else:
        return None
    return None if "#" in text[cut[0] : cut[1]] else text[: cut[0]] + text[cut[1] :]
