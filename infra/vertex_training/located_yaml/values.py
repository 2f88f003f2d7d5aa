"""Values of a YAML file with their places, built from PyYAML's nodes under bounds."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Final

import yaml

from vertex_training.errors import ConfigError, Location, Problem

#: Bounds of a job file, so that no bytes take more than a second or 200 MB to judge. The largest
#: legal request has 100,000 characters of arguments, and 100 variables in each of 4 pools.
MAX_BYTES: Final = 500_000
MAX_DEPTH: Final = 40
MAX_NODES: Final = 20_000
#: Characters of all values together, aliases expanded.
MAX_TEXT: Final = 2 * MAX_BYTES
#: The longest number accepted; YAML's own rules for numbers take quadratic time.
MAX_NUMBER: Final = 40
#: The longest key: fields and labels have less.
MAX_KEY: Final = 200
#: Mistakes reported for one file. A file with more is no job file.
MAX_PROBLEMS: Final = 100


#: Content of a value that could not be read; it stands among the document's problems.
UNREADABLE: Final = object()


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it stands. ``content`` is a scalar, a list or a dict of values, or
    ``UNREADABLE`` if a problem was recorded for it.

    ``text`` is a scalar as written, so that messages can show what YAML made of it.
    """

    content: Any
    line: int
    column: int
    text: str = ""
    keys: dict[str, tuple[int, int]] | None = None
    """Of a mapping: line and column of each key."""

    def plain(self) -> Any:
        """The value without places: scalars, lists and dicts."""
        if isinstance(self.content, dict):
            return {key: value.plain() for key, value in self.content.items()}
        if isinstance(self.content, list):
            return [value.plain() for value in self.content]
        return self.content


def unreadable(
    rule: str, location: Location, what: str, value: str = "", hint: str = ""
) -> ConfigError:
    """A file that cannot be read any further."""
    return ConfigError([Problem(what, value, hint, location=location, rule=rule)])


def location_of(file: str, mark: Any) -> Location:
    """A mark of PyYAML, of its parser in C or in Python, as a location."""
    return Location(file, mark.line + 1, mark.column + 1)


def too_deep(location: Location) -> ConfigError:
    """Nested beyond the bound."""
    what = f"nested more than {MAX_DEPTH} levels deep"
    hint = "no job needs more than 10; does it hold itself?"
    return unreadable("too-deep", location, what, hint=hint)


def too_much(location: Location) -> ConfigError:
    """More values or characters than the bound."""
    what = f"grows to more than {MAX_NODES:,} values or {MAX_TEXT:,} characters"
    return unreadable("too-large", location, what, hint="use fewer aliases and values")


class Builder:
    """Turns PyYAML's nodes into values. Aliases are expanded, and counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = self._characters = 0

    def build(self, node: yaml.Node, depth: int) -> Value:
        """The value of ``node``, which stands ``depth`` levels deep."""
        location = self._location(node)
        if depth > MAX_DEPTH:  # also what an alias of its own parent runs into
            raise too_deep(location)
        self._count(node, 1, len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if isinstance(node, yaml.SequenceNode):
            return Value([self.build(item, depth + 1) for item in node.value], line, column)
        if isinstance(node, yaml.MappingNode):
            content, keys = self._mapping(node, depth)
            return Value(content, line, column, keys=keys)
        assert isinstance(node, yaml.ScalarNode)  # there is no other kind
        return Value(self._scalar(node), line, column, text=node.value)

    def _location(self, node: yaml.Node) -> Location:
        return location_of(self.file, node.start_mark)

    def _count(self, node: yaml.Node, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MAX_NODES or self._characters > MAX_TEXT:
            raise too_much(self._location(node))

    def _add(self, rule: str, node: yaml.Node, what: str, value: str = "", hint: str = "") -> None:
        location = self._location(node)
        self.problems.append(Problem(what, value, hint, location=location, rule=rule))

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value  # the API has no dates; `2026-01-31` was meant as text
        number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if not (number and len(node.value) > MAX_NUMBER):
            # PyYAML lets whatever its conversions raise pass: `!!bool x` is a KeyError.
            with contextlib.suppress(yaml.YAMLError, ArithmeticError, LookupError, ValueError):
                return self._constructor.construct_object(node)
        self._add("bad-value", node, "not a value YAML knows", node.tag, "quote it")
        return UNREADABLE

    def _mapping(
        self, node: yaml.MappingNode, depth: int
    ) -> tuple[dict[str, Value], dict[str, tuple[int, int]]]:
        content: dict[str, Value] = {}
        keys: dict[str, tuple[int, int]] = {}
        for key, item in self._pairs(node):
            name = key.value
            self._count(key, 1, len(name))
            if len(name) > MAX_KEY:
                what = f"a key has at most {MAX_KEY} characters"
                self._add("bad-key", key, what, name, "is a quote or a line break missing?")
                continue
            if name in keys:
                first = keys[name][0]
                hint = f"the other stands in line {first}; YAML would silently keep one of them"
                self._add("duplicate-key", key, "the same key twice", name, hint)
            else:
                content[name] = self.build(item, depth + 1)
                keys[name] = (key.start_mark.line + 1, key.start_mark.column + 1)
        return content, keys

    def _pairs(self, node: yaml.MappingNode) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """Keys and values, with ``<<`` merged in: own keys win over merged ones."""
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, item in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                own.append((key, item))
                continue
            for source in item.value if isinstance(item, yaml.SequenceNode) else [item]:
                if isinstance(source, yaml.MappingNode) and source is not node:
                    self._count(item, len(source.value), 0)
                    merged += source.value
                else:
                    hint = "write <<: *NAME, where &NAME stands before a mapping"
                    self._add("bad-merge", item, "<< merges mappings only", "", hint)
        pairs = self._plain(own)
        names = {key.value for key, _ in pairs}
        for key, item in self._plain(merged):
            if key.value not in names:
                names.add(key.value)
                pairs.append((key, item))
        return pairs

    def _plain(
        self, pairs: list[tuple[yaml.Node, yaml.Node]]
    ) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """The pairs whose key is text; a problem is recorded for each of the others."""
        plain: list[tuple[yaml.ScalarNode, yaml.Node]] = []
        for key, item in pairs:
            if isinstance(key, yaml.ScalarNode):
                plain.append((key, item))
            else:
                self._add("bad-key", key, "a key must be plain text", "", "write `name: value`")
        return plain


# The safe loader in C is ten times as fast; not every build of PyYAML has it.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
