"""Documents that do not fit a message, made from Google's description of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from tests.contract import description

#: Levels of messages to go down at most.
DEEP: Final = 3
_TOO_LARGE: Final = {
    "int32": [2**31, -(2**31) - 1],
    "uint32": [2**32, -1],
    "int64": [str(2**63), str(-(2**63) - 1)],
    "uint64": [str(2**64), "-1"],
}
_OTHERS: Final = {
    "string": [7, True, {"a": 1}],
    "boolean": ["maybe", 3, {}],
    "integer": ["many", 1.5, True, {}],
    "number": ["many", True, {}],
    "array": ["text", 5],
    "object": ["text", 5, [1]],
}


@dataclass(frozen=True)
class Wrong:
    """A document with one mistake: an unknown name, or a value that is none."""

    document: Any
    name: str
    """The field that is wrong."""
    is_unknown: bool


@st.composite
def wrong_documents(draw: st.DrawFn, name: str, message: str) -> Wrong:
    """Documents for a message of the document ``name``, each with one mistake somewhere."""
    form = description.schema(name, message)
    path: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, DEEP))):
        inner = [each for each in form.get("properties", {}).items() if _message(each[1], name)]
        if not inner:
            break
        key, field = draw(st.sampled_from(sorted(inner, key=lambda each: each[0])))
        path.append((key, "list" if field.get("type") == "array" else "one"))
        form = _message(field, name) or {}
    leaves = sorted(key for key, each in form.get("properties", {}).items() if _values(each, name))
    if leaves and draw(st.booleans()):
        key = draw(st.sampled_from(leaves))
        found = Wrong(
            {key: draw(st.sampled_from(_values(form["properties"][key], name)))}, key, False
        )
    else:
        key = draw(st.from_regex(r"[a-z]{12}Zz", fullmatch=True))
        found = Wrong({key: draw(st.sampled_from(["x", 1, {}, [], True]))}, key, True)
    document = found.document
    for outer, kind in reversed(path):
        document = {outer: [document] if kind == "list" else document}
    return Wrong(document, found.name, found.is_unknown)


def _message(field: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """The message that a field has, or that its list has."""
    if field.get("type") == "array":
        return _message(field["items"], name)
    found = description.schema(name, field["$ref"]) if "$ref" in field else field
    return found if found.get("properties") else None


def _values(field: Mapping[str, Any], name: str) -> list[Any]:
    """Values that are none of the field's."""
    if "$ref" in field:
        field = description.schema(name, field["$ref"])
    form = field.get("format", "")
    if "additionalProperties" in field or field.get("type") == "any":
        return []
    if field.get("type") == "object" and not field.get("properties"):
        return []
    if "enum" in field:
        return ["NO_SUCH_VALUE_ZZ"]
    found = [*_OTHERS[field["type"]], *_TOO_LARGE.get(form, [])]
    if form in ("int64", "uint64"):
        found = [each for each in found if not isinstance(each, int)] + ["many", {}]
    if form == "byte":
        found = [*found, "not base64!"]
    if form in ("google-datetime", "google-duration"):
        found = [*found, "yesterday"]
    if form in ("google-fieldmask", "date-time", "date"):
        return [7, {}]
    return found
