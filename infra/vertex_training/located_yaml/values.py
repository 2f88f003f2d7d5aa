"""Values of a YAML file with their locations, built from PyYAML's nodes within limits."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Final

import yaml

from vertex_training.errors import ConfigError, Location, Problem

#: Limits of a file: a check takes at most a second and 200 MB. The largest valid request has
#: 100,000 characters of arguments, and 100 variables in each of 4 pools.
MAX_BYTES: Final = 500_000
MAX_DEPTH: Final = 40
MAX_NODES: Final = 20_000
#: Maximum characters of all values, with expanded aliases.
MAX_TEXT: Final = 2 * MAX_BYTES
#: Maximum length of a number, since YAML's patterns for numbers take quadratic time.
MAX_NUMBER: Final = 40
#: Maximum length of a key.
MAX_KEY: Final = 200
#: Maximum number of reported mistakes per file.
MAX_PROBLEMS: Final = 100


#: Content of an invalid value, which is among the document's problems.
UNREADABLE: Final = object()


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its location. ``text`` is the original text of a scalar, for messages."""

    content: Any
    """Scalar, list or dict of values, or ``UNREADABLE`` for an invalid value."""
    line: int
    column: int
    text: str = ""
    keys: dict[str, tuple[int, int]] | None = None
    """Line and column of each key of a mapping."""

    def plain(self) -> Any:
        """Return the value as scalars, lists and dicts without locations."""
        if isinstance(self.content, dict):
            return {key: value.plain() for key, value in self.content.items()}
        if isinstance(self.content, list):
            return [value.plain() for value in self.content]
        return self.content


def unreadable(
    rule: str, location: Location, what: str, value: str = "", hint: str = ""
) -> ConfigError:
    """Build the error about a file that cannot be parsed further."""
    return ConfigError([Problem(what, value, hint, location=location, rule=rule)])


def location_of(file: str, mark: Any) -> Location:
    """Convert a mark of PyYAML to a location."""
    return Location(file, mark.line + 1, mark.column + 1)


def too_deep(location: Location) -> ConfigError:
    """Build the error about too deep nesting."""
    what = f"the file is nested more than {MAX_DEPTH} levels deep"
    hint = "use fewer levels, and check for an alias inside of its own anchor"
    return unreadable("too-deep", location, what, hint=hint)


def too_much(location: Location) -> ConfigError:
    """Build the error about too many values or characters."""
    what = f"the file expands to more than {MAX_NODES:,} values or {MAX_TEXT:,} characters"
    return unreadable("too-large", location, what, hint="use fewer aliases and values")


class Builder:
    """Converter of PyYAML's nodes to values. Expands and counts aliases."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = self._characters = 0

    def build(self, node: yaml.Node, depth: int) -> Value:
        """Convert ``node`` at a nesting depth to a value."""
        location = self._location(node)
        if depth > MAX_DEPTH:  # an alias of its own parent has unlimited depth
            raise too_deep(location)
        self._count(node, 1, len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if isinstance(node, yaml.SequenceNode):
            return Value([self.build(item, depth + 1) for item in node.value], line, column)
        if isinstance(node, yaml.MappingNode):
            content, keys = self._mapping(node, depth)
            return Value(content, line, column, keys=keys)
        assert isinstance(node, yaml.ScalarNode)  # YAML has no other kind of node
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
            return node.value  # the API has no dates, so `2026-01-31` is text
        number = node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
        if not (number and len(node.value) > MAX_NUMBER):
            # PyYAML does not catch errors of its conversions: `!!bool x` is a KeyError.
            with contextlib.suppress(yaml.YAMLError, ArithmeticError, LookupError, ValueError):
                return self._constructor.construct_object(node)
        self._add(
            "bad-value", node, "YAML cannot convert this value", node.tag, "put the value in quotes"
        )
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
                what = f"the key is longer than {MAX_KEY} characters"
                hint = "check for a missing quote or line break"
                self._add("bad-key", key, what, name, hint)
                continue
            if name in keys:
                first = keys[name][0]
                hint = f"remove one of the two keys; the first key is in line {first}"
                self._add("duplicate-key", key, "this key is duplicated", name, hint)
            else:
                content[name] = self.build(item, depth + 1)
                keys[name] = (key.start_mark.line + 1, key.start_mark.column + 1)
        return content, keys

    def _pairs(self, node: yaml.MappingNode) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """Return the entries, with ``<<`` merged. Own keys override merged keys."""
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
                    hint = "write <<: *NAME, where &NAME marks a mapping"
                    self._add("bad-merge", item, "<< supports only mappings", "", hint)
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
        for key, _ in pairs:
            if not isinstance(key, yaml.ScalarNode):
                self._add("bad-key", key, "keys must be plain text", "", "write `name: value`")
        return [(key, item) for key, item in pairs if isinstance(key, yaml.ScalarNode)]


# The C loader is ten times faster, but some builds of PyYAML lack it.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
