"""Google's own descriptions: discovery documents, and what an answer has that they do not say."""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tools.generate import discovery as documents

_DURATION: Final = re.compile(r"-?\d+(\.\d{1,9})?s")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_RANGES: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
}


@dataclass(frozen=True)
class Described:
    """A method as Google describes it."""

    id: str
    """``compute.v1.firewalls.insert``."""
    verb: str
    template: str
    body: str
    """Names of messages in the document; empty: none."""
    response: str

    @property
    def document(self) -> str:
        return ".".join(self.id.split(".")[:2])


@functools.cache
def methods(name: str) -> tuple[Described, ...]:
    """All methods of a document."""
    document = documents.read_document(name)
    return tuple(
        Described(
            f"{name}.{place}",
            method["httpMethod"],
            documents.path_of(document, method),
            method.get("request", {}).get("$ref", ""),
            method.get("response", {}).get("$ref", ""),
        )
        for place, method in documents.described_methods(document)
    )


def skeleton(template: str) -> str:
    """A template of a path with ``{}`` for what varies, in the forms of both descriptions.

    >>> skeleton("/v1/{name=projects/*/locations/*}:wait")
    '/v1/projects/{}/locations/{}:wait'
    """
    named = re.sub(r"\{[\w.]+=([^}]+)\}", lambda found: found[1].replace("*", "{}"), template)
    return re.sub(r"\{\w+\}", "{}", re.sub(r"\{v\d\w*Id\}", "projects", named))


def find(name: str, verb: str, template: str) -> Described | None:
    """The method of a document that has this verb and path."""
    found = skeleton(template)
    return next(
        (each for each in methods(name) if (each.verb, skeleton(each.template)) == (verb, found)),
        None,
    )


def schema(name: str, message: str) -> Mapping[str, Any]:
    """A message of a document."""
    return documents.read_document(name)["schemas"][message]


def differences(
    value: Any, form: Mapping[str, Any], name: str, compared: Counter[str], path: str = ""
) -> Iterator[str]:
    """What a value has that its schema, of the document ``name``, does not say.

    Places that differ in numbers or keys of maps are one. ``compared`` counts fields.
    """
    if "$ref" in form:
        form = schema(name, form["$ref"])
    kind = form.get("type", "any")
    if kind == "any":
        return
    if not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool)):
        yield f"{path}: {type(value).__name__} where there is {kind}"
    elif isinstance(value, list):
        for each in value:
            yield from differences(each, form["items"], name, compared, f"{path}[]")
    elif isinstance(value, dict):
        yield from _fields(value, form, name, compared, path)
    elif not _has_format(value, form.get("format", "")):
        yield f"{path}: {value!r} is no {form['format']}"
    elif "enum" in form and value not in form["enum"]:
        yield f"{path}: {value!r} is no value of the enum"


def _fields(
    value: dict[str, Any], form: Mapping[str, Any], name: str, compared: Counter[str], path: str
) -> Iterator[str]:
    known = form.get("properties", {})
    if "@type" in value and not known:  # google.protobuf.Any
        yield from _packed(value, name, compared, path)
        return
    for key, each in value.items():
        place = f"{path}.{key}" if path else key
        if key in known:
            compared[f"{name} {form.get('id', path)}.{key}"] += 1
            yield from differences(each, known[key], name, compared, place)
        elif "additionalProperties" in form:
            inner = form["additionalProperties"]
            yield from differences(each, inner, name, compared, f"{path}{{}}")
        else:
            yield f"{place}: unknown field"


def _packed(value: dict[str, Any], name: str, compared: Counter[str], path: str) -> Iterator[str]:
    """The same of a message that says itself which one it is."""
    type_ = str(value["@type"]).removeprefix("type.googleapis.com/")
    schemas, words = documents.read_document(name)["schemas"], type_.split(".")
    known = ("".join(each[:1].upper() + each[1:] for each in words), words[-1])
    message = next((each for each in known if each in schemas), None)
    if message is None and type_ != "google.protobuf.Empty":
        yield f"{path}: {type_} is no message of the description"
        return
    form = schemas[message] if message else {"type": "object"}
    content = {key: each for key, each in value.items() if key != "@type"}
    yield from differences(content, form, name, compared, path)


def _has_format(value: Any, form: str) -> bool:
    if form in _RANGES:
        low, high = _RANGES[form]
        if isinstance(value, str):
            return bool(re.fullmatch(r"-?\d+", value)) and low <= int(value) <= high
        return low <= value <= high
    if form in ("google-datetime", "date-time"):
        return bool(_TIME.fullmatch(value)) and datetime.fromisoformat(value).tzinfo is not None
    if form == "google-duration":
        return bool(_DURATION.fullmatch(value))
    if form == "byte":
        return _is_base64(value)
    return True


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except binascii.Error:
        return False
    return True
