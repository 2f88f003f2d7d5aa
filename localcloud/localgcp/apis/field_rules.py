"""Field rules that all services share, for a resource in the API's JSON form (pure).

``errors`` walks a document along its description in ``discovery.json``. There the generator marks
fields that Google's discovery documents call required, and labels. ``documented`` adds rows for
rules that the documents state in prose. gRPC, REST and the gcp plugin call the same function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from localgcp.apis import discovery
from localgcp.apis.documented import ROWS

REQUIRED: Final = "Required field is not set."
FieldErrors = Iterator[tuple[str, str]]
_LABEL_KEY: Final = re.compile(r"[^\W_A-Z][\w-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[\w-]{0,63}")
_MAX_LABELS: Final = 64


def errors(
    schema: str, document: Mapping[str, Any], at: str = "", only: Collection[str] | None = None
) -> FieldErrors:
    """Yield field and message of each mistake in a document; ``only`` selects top-level fields."""
    described = discovery.fields_of(schema)
    for name, field in described.items():
        if only is not None and name not in only:
            continue
        here, value = f"{at}.{snake(name)}".lstrip("."), document.get(name)
        if is_empty(value) and not (value == {} and "$ref" in field):
            if is_required(field):
                yield here, REQUIRED
        elif isinstance(value, Mapping) and field.get("labels"):
            yield from label_errors(here, value)
        else:
            yield from _nested(field, value, here)
    for row in ROWS.get(schema, ()):
        if only is None or row.field in only:
            for text in row.check(document):
                yield f"{at}.{snake(row.field)}".lstrip("."), text


def _nested(field: Mapping[str, Any], value: Any, at: str) -> FieldErrors:
    """Yield mistakes in a field's nested messages: one message, a list or a map."""
    if "$ref" in field and isinstance(value, Mapping):
        yield from errors(field["$ref"], value, at)
    elif "items" in field and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested(field["items"], item, f"{at}[{index}]")
    elif "additionalProperties" in field and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nested(field["additionalProperties"], item, f"{at}[{key}]")


def is_required(field: Mapping[str, Any]) -> bool:
    """True if the field is required to create a resource."""
    marked = field.get("required", ())
    return marked is True or any(method.endswith(".insert") for method in marked or ())


def is_empty(value: Any) -> bool:
    """True if protobuf cannot distinguish the value from an unset one; numbers may be 0."""
    return value is None or value in ("", [], {})


def label_errors(at: str, labels: Mapping[str, str]) -> FieldErrors:
    """Yield mistakes in labels."""
    if len(labels) > _MAX_LABELS:
        yield at, "No more than 64 labels can be associated with one resource."
    for key, value in labels.items():
        good = _LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(str(value))
        if not good or (key + str(value)) != (key + str(value)).lower():
            yield at, f"Label {key}={value} is not valid: lowercase letters, digits, _ and -."


def snake(name: str) -> str:
    """Return a JSON field name in its snake-case form, such as ``display_name``."""
    return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def json_name(field: str) -> str:
    """Return a field's JSON name, such as ``displayName``."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), field)
