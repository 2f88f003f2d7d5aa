"""YAML as people write it, with the place of every value and without YAML's surprises.

PyYAML alone keeps the last of two equal keys, reads ``no`` as false, ``012`` as ten and
``22:22`` as 1342, and lets a few lines of anchors grow into gigabytes. Here a duplicate key is a
mistake, every scalar keeps the text it was written as, and the whole document is bounded.
"""

from __future__ import annotations

from typing import Final

import yaml

from vertex_training.errors import ConfigError, Location, Path, Problem
from vertex_training.located_yaml.values import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    MAX_PROBLEMS,
    UNREADABLE,
    Builder,
    Loader,
    Value,
    location_of,
    too_deep,
    too_much,
    unreadable,
)

__all__ = [
    "MAX_BYTES",
    "MAX_PROBLEMS",
    "UNREADABLE",
    "Document",
    "Value",
    "parse",
    "read",
]

#: What most often keeps a file from being YAML.
YAML_HINT: Final = (
    "indent with spaces, not tabs; close brackets and quotes; quote text with ': ' or ' #'"
)


class Document:
    """One parsed file; ``file`` is its path as messages show it."""

    def __init__(self, file: str, root: Value, problems: tuple[Problem, ...] = ()) -> None:
        self.file = file
        self.root = root
        self.problems = problems
        """Mistakes in YAML that could be read, like a duplicate key."""

    def location(self, path: Path, *, key: bool = False) -> Location:
        """Return the location of the value at ``path``, of its key, or of the nearest parent."""
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
        return Location(self.file, line, column)


def parse(data: bytes, file: str) -> Document:
    """Parse one YAML document.

    Raises:
        ConfigError: not UTF-8, not YAML, too large, too deep, several documents, no mapping, or
            the same key twice.
    """
    document = read(data, file)
    if document.problems:
        raise ConfigError(document.problems)
    return document


def read(data: bytes, file: str) -> Document:
    """Like ``parse``, but leaves in ``problems`` what does not keep the file from being read.

    Of a file that may be huge, passing ``MAX_BYTES + 1`` bytes is enough.

    Raises:
        ConfigError: see ``parse``; not for keys given twice and single bad values.
    """
    if len(data) > MAX_BYTES:
        what = f"a job file has at most {MAX_BYTES:,} bytes"
        raise unreadable("too-large", Location(file, 1, 1), what, f"{len(data):,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        hint = "save it as UTF-8; what is binary belongs into a bucket"
        raise unreadable(
            "not-text", Location(file, line, 1), "not text in UTF-8", "", hint
        ) from None
    try:
        _bound(text, file)
        node = yaml.compose(text, Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        location = location_of(file, bad.problem_mark)
        several = bad.problem == "but found another document"
        hint = "one file is one job" if several else YAML_HINT
        raise unreadable("not-yaml", location, f"not YAML: {bad.problem}", "", hint) from None
    except yaml.YAMLError as bad:  # a control character: the reader gives no mark
        what = f"not YAML: {str(bad).splitlines()[0]}"
        hint = "remove control characters; write them as \\x1b in double quotes"
        raise unreadable("not-yaml", Location(file, 1, 1), what, "", hint) from None
    if not isinstance(node, yaml.MappingNode):
        hint = "start with workerPoolSpecs: (gcloud's form) or displayName: and jobSpec: (REST)"
        raise unreadable("not-a-mapping", Location(file, 1, 1), "a job file is a mapping", "", hint)
    builder = Builder(file)
    root = builder.build(node, depth=0)
    return Document(file, root, tuple(builder.problems[:MAX_PROBLEMS]))


def _bound(text: str, file: str) -> None:
    """Refuse what is deep or much before anything is built; libyaml's composer recurses, and
    crashes the process on deep nesting.
    """
    depth = count = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            continue
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            location = location_of(file, event.start_mark)
            raise too_deep(location) if depth > MAX_DEPTH else too_much(location)
