"""Messages of Google's clients beside the messages of the same methods in Google's descriptions."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.contract import description
from tests.contract.served import Call, calls

_TYPE: Final = FieldDescriptor
#: Type and format of a field of protobuf in JSON (https://protobuf.dev/programming-guides/json).
SCALARS: Final = {
    _TYPE.TYPE_STRING: ("string", ""),
    _TYPE.TYPE_BOOL: ("boolean", ""),
    _TYPE.TYPE_BYTES: ("string", "byte"),
    _TYPE.TYPE_DOUBLE: ("number", "double"),
    _TYPE.TYPE_FLOAT: ("number", "float"),
    _TYPE.TYPE_INT32: ("integer", "int32"),
    _TYPE.TYPE_UINT32: ("integer", "uint32"),
    _TYPE.TYPE_INT64: ("string", "int64"),
    _TYPE.TYPE_UINT64: ("string", "uint64"),
    _TYPE.TYPE_ENUM: ("string", ""),
}
WELL_KNOWN: Final = {
    "Timestamp": ("string", "google-datetime"),
    "Duration": ("string", "google-duration"),
    "FieldMask": ("string", "google-fieldmask"),
    "Struct": ("object", ""),
    "Any": ("object", ""),
    "Value": ("any", ""),
    "ListValue": ("array", ""),
    "BoolValue": ("boolean", ""),
    "Int32Value": ("integer", "int32"),
    "Int64Value": ("string", "int64"),
    "DoubleValue": ("number", "double"),
    "StringValue": ("string", ""),
}


@functools.cache
def compared() -> tuple[Counter[str], tuple[str, ...]]:
    """Fields that were compared, and the differences, over all methods with messages of gRPC."""
    found, fields, seen = list[str](), Counter[str](), set[tuple[str, str]]()
    for call in calls():
        if call.rule is not None and call.described is not None:
            for message, name, left_out in _pairs(call):
                form = description.schema(call.document, name)
                found += _message(message, form, call.document, fields, seen, left_out)
    return fields, tuple(dict.fromkeys(found))


def message_differences(message: Descriptor, form: Mapping[str, Any], name: str) -> list[str]:
    """What a message has that a schema of the document ``name`` has not."""
    return list(_message(message, form, name, Counter(), set()))


def _pairs(call: Call) -> Iterator[tuple[Descriptor, str, frozenset[str]]]:
    """Messages of the method, the description's, and the fields that stand in its path."""
    rule, described = call.rule, call.described
    assert rule is not None
    assert described is not None
    request: Any = rule.method.plain_request().DESCRIPTOR
    if described.body and rule.body == "*":
        yield request, described.body, frozenset(rule.fields)
    elif described.body:
        yield request.fields_by_name[rule.body].message_type, described.body, frozenset()
    if described.response:
        response: Any = rule.method.plain_response().DESCRIPTOR
        yield response, described.response, frozenset()


def _message(
    message: Descriptor,
    form: Mapping[str, Any],
    name: str,
    fields: Counter[str],
    seen: set[tuple[str, str]],
    left_out: frozenset[str] = frozenset(),
) -> Iterator[str]:
    if (message.full_name, name) in seen:
        return
    seen.add((message.full_name, name))
    known = form.get("properties", {})
    for field in message.fields:
        place = f"{name} {message.full_name}.{field.json_name}"
        if field.name in left_out:
            continue
        fields[place] += 1
        if field.json_name not in known:
            yield f"{place}: the description has no such field"
            continue
        yield from _field(field, known[field.json_name], name, place, fields, seen)


def _field(
    field: FieldDescriptor,
    form: Mapping[str, Any],
    name: str,
    place: str,
    fields: Counter[str],
    seen: set[tuple[str, str]],
) -> Iterator[str]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        field = kind.fields_by_name["value"]
        form = form.get("additionalProperties", {"type": "no map"})
    elif field.is_repeated:
        form = form.get("items", {"type": "no list"})
    kind = field.message_type
    if "$ref" in form:
        form = description.schema(name, form["$ref"])
    given = form.get("type"), form.get("format", "")
    if kind is not None and not kind.full_name.startswith("google.protobuf."):
        if given[0] != "object":
            yield f"{place}: a message, where the description has {given}"
        yield from _message(kind, form, name, fields, seen)
        return
    wanted = WELL_KNOWN.get(kind.name) if kind is not None else SCALARS.get(field.type)
    if kind is not None and kind.name == "Empty":
        wanted = ("object", "")
    if wanted != given:
        yield f"{place}: {wanted}, where the description has {given}"
    if field.enum_type is not None:
        missing = {each.name for each in field.enum_type.values} - {*form.get("enum", ())}
        if missing:
            yield f"{place}: the description has no {', '.join(sorted(missing))}"
