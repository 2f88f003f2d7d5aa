"""Redact values of the engine, and compare two values field by field."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, overload

from vertex_training.customjob.protocol.ports import EARLIER_RUNGS, LADDER
from vertex_training.secret_rules.redaction import (
    is_secret_value,
    is_secret_variable,
    redacted,
    secret_words,
)

SECRET: Final = "[secret]"
#: Text for a value that is unknown before the deployment.
UNKNOWN: Final = "[known after apply]"
#: The engine's sentinels: an unknown value, and the key and the value that mark a secret.
#: pulumi/pulumi v3.259.0, sdk/go/common/resource/plugin/rpc.go and resource/sig/sig.go.
WIRE_UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE_KEY: Final = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"
#: Maximum size of a line in bytes. Longer lines are returned in parts.
MAX_LINE: Final = 2**20
_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----")
#: A line of a private key, possibly with the engine's indentation and mark of a change.
_KEY_LINE: Final = re.compile(
    r"[-+~\s]*(?:[A-Za-z0-9+/=]*|(?:Proc-Type|DEK-Info|Version|Comment): .*)[\s\"'\\]*"
)


@overload
def redact(value: str) -> str: ...
@overload
def redact(value: Any) -> Any: ...
def redact(value: Any) -> Any:
    """Return ``value`` with secrets redacted, for a report.

    Secrets become ``[secret]``, unknown values ``[known after apply]``. Files and archives become a
    text with a digest.
    """
    if isinstance(value, str):
        return UNKNOWN if value == WIRE_UNKNOWN else redacted(value, SECRET)
    if isinstance(value, Mapping):
        if value.get(SIGNATURE_KEY) == SECRET_SIGNATURE:
            return SECRET
        if SIGNATURE_KEY in value:
            # The path of a file is omitted, because it depends on the machine.
            digest = value.get("hash")
            name = (
                f"[file sha256:{digest[:16]}]" if digest else redact(value.get("urn") or "[file]")
            )
            return str(name)
        # Keys like __defaults are internal data of the engine and its plugins.
        fields = {
            redact(str(key)): SECRET
            if item != WIRE_UNKNOWN and is_secret_value(key, _text(item))
            else redact(item)
            for key, item in value.items()
            if key[:2] != "__"
        }
        if is_secret_variable(_text(value.get("name")), _text(value.get("value"))):
            fields["value"] = SECRET
        return fields
    if isinstance(value, list | tuple):
        items = [redact(item) for item in value]
        if items and all(isinstance(item, str) for item in value):
            for index in secret_words(value):  # The texts may be a command line.
                if items[index] == value[index]:
                    items[index] = SECRET
        return items
    return value


def redact_config(text: str) -> str:
    """Return a redacted config value. JSON stays JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return redact(text)
    return redact(text) if isinstance(value, str) else json.dumps(redact(value), sort_keys=True)


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping; empty for other values."""
    return value if isinstance(value, Mapping) else {}


class LineRedactor:
    """Redacts a stream of bytes line by line.

    A line is returned when it is complete, because a secret may be split. The lines of a private
    key are removed.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._in_key = False

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that ``piece`` completes, redacted."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        output = b"".join(self._line(line, b"\n") for line in lines)
        if len(self._rest) > MAX_LINE:  # Secrets contain no space, so a line is split at spaces.
            words, space, rest = self._rest.rpartition(b" ")
            self._rest = rest if space else b""
            output += self._line(words, space) if space else f"{SECRET} (a long line)".encode()
        return output

    def close(self) -> bytes:
        """Return the remaining text, redacted."""
        left, self._rest = self._rest, b""
        return self._line(left, b"") if left else b""

    def _line(self, line: bytes, end: bytes) -> bytes:
        text = line.decode(errors="surrogateescape")
        if self._in_key:
            tail = _KEY_ENDS.search(text)
            if tail is None and _KEY_LINE.fullmatch(text):
                return b""
            text = text[tail.end() :] if tail else text
        begin = _KEY_BEGINS.search(text)
        self._in_key = begin is not None and _KEY_ENDS.search(text, begin.end()) is None
        return redact(text).encode(errors="surrogateescape") + end


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def known_ids(resources: Iterable[tuple[str, Mapping[str, Any]]]) -> frozenset[str]:
    """Return the ids of jobs in a state: of resources and of the rungs of their ladders."""
    ids = set[str]()
    for id_, outputs in resources:
        ids |= {id_, *(outputs.get(LADDER) or ()), *(outputs.get(EARLIER_RUNGS) or ())}
    return frozenset(ids - {""})


def ids_in(deployment: Mapping[str, Any]) -> frozenset[str]:
    """Return ``known_ids`` of the resources in an exported deployment."""
    resources = deployment.get("resources") or []
    return known_ids(
        (str(resource.get("id", "")), resource.get("outputs") or {}) for resource in resources
    )


#: Marker for a field that one side does not have; not a JSON value.
ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field with different values. ``None`` is the value of a missing field."""

    path: str
    old: str | None
    new: str | None


def diff_fields(old: Any, new: Any) -> list[FieldDifference]:
    """Return the fields that differ between ``old`` and ``new``, ordered by path.

    >>> [field.path for field in diff_fields({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}], "c": 0})]
    ['a[1].b', 'c']
    """
    return [
        FieldDifference(path, _as_text(before), _as_text(after))
        for path, before, after in _walk("", old, new)
    ]


def _walk(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(new, dict) and (isinstance(old, dict) or (old is ABSENT and new)):
        before = {} if old is ABSENT else old
        for key in sorted({*before, *new}):
            inside = f"{path}.{key}" if path else key
            yield from _walk(inside, before.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        for index, both in enumerate(itertools.zip_longest(old, new, fillvalue=ABSENT)):
            yield from _walk(f"{path}[{index}]", *both)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):  # In Python, 1 == True.
        yield path, old, new


def _as_text(value: Any) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
