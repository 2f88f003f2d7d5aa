"""Parser of YAML that returns the location of every value, and refuses surprising syntax.

PyYAML keeps the last of two equal keys, reads ``no`` as false, ``012`` as ten and ``22:22`` as
1342, and expands a few lines of anchors to gigabytes. This parser reports duplicate keys, keeps the
text of every scalar, and limits the size of the document.
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

__all__ = ["MAX_BYTES", "MAX_PROBLEMS", "UNREADABLE", "Document", "Value", "parse", "read"]

#: Hint on the most frequent mistakes in YAML.
YAML_HINT: Final = (
    "indent with spaces, not tabs; close brackets and quotes; quote text with ': ' or ' #'"
)


class Document:
    """A parsed file. ``file`` is its path in messages."""

    def __init__(self, file: str, root: Value, problems: tuple[Problem, ...] = ()) -> None:
        self.file = file
        self.root = root
        self.problems = problems
        """Mistakes that do not prevent parsing, like duplicate keys."""

    def location(self, path: Path, *, key: bool = False) -> Location:
        """Return the location of a value or key, or else of its nearest existing parent."""
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
    """Parse one YAML document. Raises ConfigError if it has any mistake."""
    document = read(data, file)
    if document.problems:
        raise ConfigError(document.problems)
    return document


def read(data: bytes, file: str) -> Document:
    """Parse like ``parse``, but keep duplicate keys and invalid values in ``problems``.

    For a huge file, the first ``MAX_BYTES + 1`` bytes are enough. Raises ConfigError for text that
    is not UTF-8, not YAML, too large, too deep, or not a single mapping.
    """
    if len(data) > MAX_BYTES:
        what = f"the file is larger than {MAX_BYTES:,} bytes"
        raise unreadable("too-large", Location(file, 1, 1), what, f"{len(data):,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = data.count(b"\n", 0, bad.start) + 1
        hint = "save the file as UTF-8; store binary data in a bucket"
        what = "the file is not UTF-8 text"
        raise unreadable("not-text", Location(file, line, 1), what, "", hint) from None
    try:
        _bound(text, file)
        node = yaml.compose(text, Loader=Loader)
    except yaml.MarkedYAMLError as bad:
        location = location_of(file, bad.problem_mark)
        several = bad.problem == "but found another document"
        hint = "write one job per file" if several else YAML_HINT
        what = f"the file is not valid YAML: {bad.problem}"
        raise unreadable("not-yaml", location, what, "", hint) from None
    except yaml.YAMLError as bad:  # an error about a control character has no position
        what = f"the file is not valid YAML: {str(bad).splitlines()[0]}"
        hint = "remove control characters; write them as \\x1b in double quotes"
        raise unreadable("not-yaml", Location(file, 1, 1), what, "", hint) from None
    if not isinstance(node, yaml.MappingNode):
        hint = "start with workerPoolSpecs: (gcloud's form) or displayName: and jobSpec: (REST)"
        what = "the file must be a mapping"
        raise unreadable("not-a-mapping", Location(file, 1, 1), what, "", hint)
    builder = Builder(file)
    root = builder.build(node, depth=0)
    return Document(file, root, tuple(builder.problems[:MAX_PROBLEMS]))


def _bound(text: str, file: str) -> None:
    """Check depth and size first, since libyaml's composer crashes on deep nesting."""
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
