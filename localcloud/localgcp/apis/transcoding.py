"""Converts HTTP requests to the method's message, using the message's descriptor (pure).

Source: google/api/http.proto. Fields of the path and of the body are taken out of the query; names
are those of JSON or of the message; a field that the message does not have is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from localgcp.apis.client import HttpRule
from localgcp.apis.json_shapes import BOOLEANS, Scalar, Shape, check
from localgcp.errors import InvalidRequestError, RefusedRequestError

#: Query parameters of every method (cloud.google.com/apis/docs/system-parameters).
_SYSTEM: Final = frozenset(
    {"alt", "fields", "key", "prettyPrint", "quotaUser", "userProject", "uploadType"}
    | {"upload_protocol", "access_token", "oauth_token", "callback", "xgafv", "bearer_token", "pp"}
)
#: Messages with a special JSON form (protobuf.dev/programming-guides/json).
_WELL_KNOWN: Final = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"),
        *("BoolValue", "BytesValue", "DoubleValue", "FloatValue", "Int32Value", "Int64Value"),
        *("StringValue", "UInt32Value", "UInt64Value"),
    )
)
_SCALARS: Final = {
    FieldDescriptor.CPPTYPE_STRING: Scalar.STRING,
    FieldDescriptor.CPPTYPE_BOOL: Scalar.BOOL,
    FieldDescriptor.CPPTYPE_DOUBLE: Scalar.DOUBLE,
    FieldDescriptor.CPPTYPE_FLOAT: Scalar.DOUBLE,
    FieldDescriptor.CPPTYPE_INT32: Scalar.INT32,
    FieldDescriptor.CPPTYPE_UINT32: Scalar.UINT32,
    FieldDescriptor.CPPTYPE_INT64: Scalar.INT64,
    FieldDescriptor.CPPTYPE_UINT64: Scalar.UINT64,
}
_M = TypeVar("_M", bound=Message)


def request_message(
    rule: HttpRule,
    path_fields: dict[str, str],
    query: Iterable[tuple[str, str]],
    body: bytes,
    message: _M,
) -> _M:
    """Fill ``message``, the method's empty request. Raises RefusedRequestError (400)."""
    descriptor: Any = message.DESCRIPTOR
    document = _of_body(rule, body, descriptor)
    if mistakes := list(_mistakes(rule, document, descriptor)):
        raise InvalidRequestError(mistakes)
    _parse(document, message)
    taken = {*rule.fields, *([rule.body] if rule.body else [])}
    parameters: dict[str, Any] = {}
    for key, value in query:
        if key.removeprefix("$").removeprefix(".") not in _SYSTEM:
            _add(parameters, key, value, descriptor, taken)
    _parse(parameters, message)
    for path, value in path_fields.items():
        target: Any = message
        *parents, last = path.split(".")
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, last, value)
    return message


def _of_body(rule: HttpRule, body: bytes, descriptor: Descriptor) -> dict[str, Any]:
    if not rule.body or not body.strip():
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _refused(str(error)) from None
    if not isinstance(document, dict):
        raise _refused("Root element must be a message.")
    if rule.body == "*":
        return document
    return {descriptor.fields_by_name[rule.body].json_name: document}


def _mistakes(
    rule: HttpRule, document: dict[str, Any], descriptor: Descriptor
) -> Iterator[tuple[str, str]]:
    if rule.body == "*":
        yield from check(document, message_shape(descriptor))
    elif rule.body:
        field = descriptor.fields_by_name[rule.body]
        yield from check(document.get(field.json_name), _field_shape(field), rule.body)


@cache
def message_shape(descriptor: Descriptor) -> Shape:
    """Return the JSON shape that a message accepts."""
    name = descriptor.full_name
    if name in _WELL_KNOWN:
        return Shape(name=name, parses=lambda document: _parses(document, descriptor))
    fields = {field.name: field for field in descriptor.fields}
    fields |= {field_.json_name: field_ for field_ in descriptor.fields}
    return Shape(fields=lambda key: fields.get(key) and _field_shape(fields[key]), name=name)


@cache
def _field_shape(field: FieldDescriptor) -> Shape:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return Shape(value=_field_shape(kind.fields_by_name["value"]))
    one = message_shape(kind) if kind is not None else _scalar_shape(field)
    return Shape(item=one) if field.is_repeated else one


def _scalar_shape(field: FieldDescriptor) -> Shape:
    if field.enum_type is None:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return Shape(scalar=Scalar.BYTES if is_bytes else _SCALARS[field.cpp_type])
    values = frozenset(value.name for value in field.enum_type.values)
    return Shape(scalar=Scalar.ENUM, values=values, name=field.enum_type.full_name)


def _parses(document: Any, descriptor: Descriptor) -> bool:
    try:
        json_format.ParseDict(document, GetMessageClass(descriptor)())
    except (json_format.ParseError, RecursionError, ValueError, TypeError, AttributeError):
        return False
    return True


def _add(
    document: dict[str, Any], key: str, value: str, descriptor: Descriptor, taken: set[str]
) -> None:
    """Add a query parameter; ``a.b`` is field ``b`` of the message in field ``a``."""
    *parents, last = key.split(".")
    target, kind = document, descriptor
    for name in parents:
        field = _field(kind, name, key)
        if field.message_type is None or is_repeated(field):
            raise _unknown(key)
        target, kind = target.setdefault(field.json_name, {}), field.message_type
        if not isinstance(target, dict):
            raise _refused(f'"{key}" belongs to a field that already has a value.', key)
    field = _field(kind, last, key)
    if "*" in taken or _field(descriptor, key.split(".")[0], key).name in taken:
        raise _refused(f'"{key}" is already set by the path or the body.', key)
    if field.type == FieldDescriptor.TYPE_BOOL and value not in BOOLEANS:
        raise _refused(f"Invalid value at '{key}' (TYPE_BOOL), {json.dumps(value)}", key)
    argument = BOOLEANS[value] if field.type == FieldDescriptor.TYPE_BOOL else value
    if is_repeated(field):
        target.setdefault(field.json_name, []).append(argument)
    else:
        target[field.json_name] = argument


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is repeated, in protobuf 5 and in later versions."""
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == FieldDescriptor.LABEL_REPEATED  # pyright: ignore[reportAttributeAccessIssue]


def _field(descriptor: Descriptor, name: str, key: str) -> FieldDescriptor:
    for field in descriptor.fields:
        if name in (field.name, field.json_name):
            return field
    raise _unknown(key)


def _parse(document: dict[str, Any], message: Message) -> None:
    try:
        json_format.ParseDict(document, message)
    except (json_format.ParseError, RecursionError) as error:
        raise _refused(str(error)) from None
    except (ValueError, TypeError, AttributeError) as error:  # some values get past its checks
        raise _refused(str(error)) from None


def _unknown(key: str) -> RefusedRequestError:
    text = f"Cannot bind query parameter. Field '{key}' could not be found in request message."
    return _refused(f'Unknown name "{key}": {text}')


def _refused(text: str, field: str = "") -> InvalidRequestError:
    return InvalidRequestError([(field, text)])


def response_body(message: Message) -> bytes:
    """Return the response's JSON."""
    return json_format.MessageToJson(message, ensure_ascii=False).encode() + b"\n"
