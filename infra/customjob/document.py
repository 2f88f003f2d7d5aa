"""YAML as people write it, with the place of every value and without YAML's surprises.

PyYAML alone keeps the last of two equal keys, reads ``no`` as false, ``012`` as ten and
``22:22`` as 1342, and lets a few lines of anchors grow into gigabytes. Here a duplicate key is a
mistake, every scalar keeps the text it was written as, and the whole document is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from infra.errors import ConfigError, Problem

#: Bounds of a job file. The largest legal request has 100,000 characters of arguments and 4 pools.
MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_NODES = 50_000

Path = tuple[str | int, ...]
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def dotted(path: Path) -> str:
    """A path as people write it.

    >>> dotted(("workerPoolSpecs", 0, "replicaCount"))
    'workerPoolSpecs[0].replicaCount'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands. ``content`` is a scalar, a list or a dict of values.

    ``text`` is a scalar as written, so that messages can show what YAML made of it.
    """

    content: Any
    line: int
    column: int
    text: str = ""
    keys: dict[str, tuple[int, int]] | None = None
    """Of a mapping: line and column of each key."""


class Document:
    """One parsed file; ``file`` is its path as messages show it."""

    def __init__(self, file: str, root: Value) -> None:
        self.file = file
        self.root = root

    def where(self, path: Path, *, key: bool = False) -> str:
        """``file:line:column`` of the value at ``path``, of its key, or of the nearest parent."""
        value = self.root
        line, column = value.line, value.column
        for index, part in enumerate(path):
            if isinstance(value.content, dict) and part in value.content:
                if key and index == len(path) - 1 and value.keys:
                    line, column = value.keys[str(part)]
                    break
                value = value.content[part]
            elif isinstance(value.content, list) and isinstance(part, int):
                if part >= len(value.content):
                    break
                value = value.content[part]
            else:
                break
            line, column = value.line, value.column
        return f"{self.file}:{line}:{column}"


def parse(data: bytes, file: str) -> Document:
    """Parse one YAML document.

    Raises:
        ConfigError: not UTF-8, not YAML, too large, too deep, several documents, no mapping, or
            the same key twice.
    """
    if len(data) > MAX_BYTES:
        raise _refused(
            f"{file}:1:1", f"a job file has at most {MAX_BYTES:,} bytes", f"{len(data):,}"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        raise _refused(f"{file}:{line}:1", "not text in UTF-8") from None
    try:
        _bound_depth(text, file)
        node = yaml.compose(text, Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else f"{file}:1:1"
        raise _refused(place, f"not YAML: {bad.problem or bad.context}") from None
    except yaml.YAMLError as bad:  # a control character: the reader gives no mark
        raise _refused(f"{file}:1:1", f"not YAML: {str(bad).splitlines()[0]}") from None
    if not isinstance(node, yaml.MappingNode):
        hint = "start with workerPoolSpecs: (gcloud's form) or displayName: and jobSpec: (REST)"
        raise _refused(f"{file}:1:1", "a job file is a mapping", hint=hint)
    builder = _Builder(file)
    root = builder.build(node, depth=0)
    if builder.problems:
        raise ConfigError(builder.problems)
    return Document(file, root)


def _refused(where: str, what: str, got: str = "", hint: str = "") -> ConfigError:
    return ConfigError([Problem(where, what, got, hint)])


def _bound_depth(text: str, file: str) -> None:
    """Refuse deep nesting before anything recurses: libyaml's composer would crash on it."""
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            mark = event.start_mark
            place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else f"{file}:1:1"
            raise _refused(place, f"nested more than {MAX_DEPTH} levels deep")


class _Builder:
    """Turns PyYAML's nodes into values. Aliases are expanded, and counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = 0

    def build(self, node: yaml.Node, depth: int) -> Value:
        self._nodes += 1
        place = f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        if depth > MAX_DEPTH:  # also what an alias of its own parent runs into
            raise _refused(place, f"nested more than {MAX_DEPTH} levels deep")
        if self._nodes > MAX_NODES:
            raise _refused(
                place, f"grows to more than {MAX_NODES:,} values", hint="use fewer aliases"
            )
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if isinstance(node, yaml.SequenceNode):
            return Value([self.build(item, depth + 1) for item in node.value], line, column)
        if isinstance(node, yaml.MappingNode):
            content, keys = self._mapping(node, depth)
            return Value(content, line, column, keys=keys)
        return Value(self._scalar(node, place), line, column, text=str(node.value))

    def _scalar(self, node: yaml.Node, place: str) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value  # the API has no dates; `2026-01-31` was meant as text
        try:
            return self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self.problems.append(Problem(place, "not a value YAML knows", node.tag, "quote it"))
            return None

    def _mapping(
        self, node: yaml.MappingNode, depth: int
    ) -> tuple[dict[str, Value], dict[str, tuple[int, int]]]:
        content: dict[str, Value] = {}
        keys: dict[str, tuple[int, int]] = {}
        for key, item in self._pairs(node):
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            place = f"{self.file}:{line}:{column}"
            name = str(key.value)
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(Problem(place, "a key must be plain text"))
            elif name in keys:
                first = keys[name][0]
                hint = f"the other stands in line {first}; YAML would silently keep one of them"
                self.problems.append(Problem(place, "the same key twice", name, hint))
            else:
                content[name] = self.build(item, depth + 1)
                keys[name] = (line, column)
        return content, keys

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """Keys and values, with ``<<`` merged in: own keys win over merged ones."""
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, item in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                own.append((key, item))
                continue
            for source in item.value if isinstance(item, yaml.SequenceNode) else [item]:
                if isinstance(source, yaml.MappingNode) and source is not node:
                    self._nodes += len(source.value)
                    merged += source.value
                else:
                    place = f"{self.file}:{item.start_mark.line + 1}:{item.start_mark.column + 1}"
                    self.problems.append(Problem(place, "<< merges mappings only"))
        names = {str(key.value) for key, _ in own}
        for key, item in merged:
            if str(key.value) not in names:
                names.add(str(key.value))
                own.append((key, item))
        return iter(own)
