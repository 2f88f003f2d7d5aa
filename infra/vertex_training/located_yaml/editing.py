"""Sets single values in a YAML text: comments, order, quotes and line ends stay as they are.

The text is edited at the places that the parser reports, and parsed again: an edit that would
change anything else is refused.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

import yaml

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.located_yaml import document

_BY_HAND: Final = "write it by hand"
#: Line breaks of YAML 1.1 that a block of text does not keep: a reader makes others of them.
_OTHER_BREAKS: Final = re.compile("[\x85\u2028\u2029]")


def set_value(data: bytes, path: tuple[str, ...], value: Any, file: str) -> bytes:
    """``data`` with ``value`` at ``path``, a row of keys. Missing keys are added.

    A mapping or a list is written in YAML's flow style, and takes the place of nothing else.

    Raises:
        ConfigError: the file is no YAML of mappings; or the place is behind an alias, or has a
            form that cannot be edited without changing more.
    """
    document.parse(data, file)  # bounded, and each key once
    text = data.decode("utf-8-sig")
    before = yaml.load(text, Loader=yaml.SafeLoader)
    expected = _with_value(before, path, value)
    if is_same(expected, before):
        return data
    # In Python, since marks of the C parser count otherwise on some systems.
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    edited = _edited(text, node, path, value)
    if edited is not None and is_same(_parsed(edited), expected):
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        return mark + edited.encode()
    what = "cannot be edited in place: an alias, an anchor or a form of YAML is in the way"
    hint = f"{_BY_HAND}: {value}"
    raise ConfigError([Problem(what, hint=hint, path=path[1:], location=Location(file))])


def block_style(text: str, otherwise: str | None) -> str | None:
    """The style of a scalar: a block for text of several lines that reads back from one."""
    if _OTHER_BREAKS.search(text):
        return '"'
    return "|" if "\n" in text else otherwise


def is_same(one: Any, other: Any) -> bool:
    """Whether documents are equal, also in the order of keys and in types: 1 is not true."""
    return repr(one) == repr(other)


def _parsed(text: str) -> Any:
    try:
        return yaml.load(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None


def _with_value(before: Any, path: tuple[str, ...], value: Any) -> Any:
    after = copy.deepcopy(before)
    inner = after
    for key in path[:-1]:
        if not isinstance(inner.get(key), dict):
            inner[key] = {}
        inner = inner[key]
    inner[path[-1]] = value
    return after


def _edited(text: str, node: yaml.Node | None, path: tuple[str, ...], value: Any) -> str | None:
    """The text with the value set; None if the place has no form that is known here."""
    for depth, key in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            return None
        pair = next(((k, v) for k, v in node.value if k.value == key), None)
        rest = _nested(path[depth + 1 :], value)
        if pair is None:
            return _with_key(text, node, f"{key}: {rest}")
        name, child = pair
        if child.start_mark.index < name.end_mark.index:
            return None  # an alias: the node stands elsewhere
        last = depth == len(path) - 1
        empty = isinstance(child, yaml.ScalarNode) and child.value in ("", "~", "null")
        if last or (empty and not child.style):
            return _with_scalar(text, name, child, rest)
        node = child
    return None


def _nested(keys: tuple[str, ...], value: Any) -> str:
    """The value below ``keys``, in YAML's flow style."""
    inner = _flow(value)
    for key in reversed(keys):
        inner = f"{{{key}: {inner}}}"
    return inner


def _flow(value: Any) -> str:
    """A value in YAML's flow style, without quotes where none are needed."""
    text = yaml.safe_dump(
        value, default_flow_style=True, width=2**31, allow_unicode=True, sort_keys=False
    )
    plain = text.removesuffix("\n").removesuffix("\n...")
    return json.dumps(value) if isinstance(value, str) else plain


def _with_scalar(text: str, name: yaml.Node, child: yaml.Node, new: str) -> str | None:
    start, end = child.start_mark.index, child.end_mark.index
    if not isinstance(child, yaml.ScalarNode) or text[start : start + 1] in ("&", "!", "|", ">"):
        return None
    if start == end:  # no value at all: the mark may stand on a later line
        colon = text.index(":", name.end_mark.index) + 1
        return f"{text[:colon]} {new}{text[colon:]}"
    if child.style == "'" and new.startswith('"'):
        new = f"'{json.loads(new)}'"
    elif child.style is None and new.startswith('"'):
        new = json.loads(new)  # as it was: without quotes; parsed again below
    return f"{text[:start]}{new}{text[end:]}"


def _with_key(text: str, node: yaml.MappingNode, entry: str) -> str | None:
    """The text with an entry more at the end of a mapping."""
    if node.flow_style:
        if not node.value:
            start = text.index("{", node.start_mark.index) + 1
            return f"{text[:start]}{entry}{text[start:]}"
        end = end_of(node.value[-1]).index
        return f"{text[:end]}, {entry}{text[end:]}"
    return with_entry(text, node, entry)


def with_entry(text: str, node: yaml.MappingNode, entry: str) -> str:
    """``entry`` on lines of its own, behind the last one of a mapping that is a block."""
    lines = " " * node.value[0][0].start_mark.column + entry
    mark = end_of(node.value[-1])
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find("\n", mark.index - (mark.column == 0)) + 1
    return f"{text[:end]}{lines}{newline}{text[end:]}" if end else f"{text}{newline}{lines}"


def end_of(pair: tuple[yaml.Node, yaml.Node]) -> yaml.Mark:
    """Where an entry ends, without the comments and empty lines behind it."""
    name, value = pair
    if value.start_mark.index < name.end_mark.index:
        return name.end_mark  # an alias, on the same line
    if isinstance(value, yaml.ScalarNode) and value.start_mark.index == value.end_mark.index:
        return name.end_mark
    return end_of_value(value)


def end_of_value(value: yaml.Node) -> yaml.Mark:
    """Where a value ends: that of a block is marked where the next one begins."""
    if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
        return end_of(value.value[-1])
    if isinstance(value, yaml.SequenceNode) and not value.flow_style and value.value:
        return end_of_value(value.value[-1])
    return value.end_mark
