"""Convert REST requests to messages, and check JSON documents as Google's front end does."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from localgcp.apis.client import HttpRule
from localgcp.errors import InvalidRequestError, RefusedRequestError


class Scalar(StrEnum):
    """A scalar type with its name in error messages."""

    STRING = "TYPE_STRING"
    BOOL = "TYPE_BOOL"
    INT32 = "TYPE_INT32"
    UINT32 = "TYPE_UINT32"
    INT64 = "TYPE_INT64"
    UINT64 = "TYPE_UINT64"
    DOUBLE = "TYPE_DOUBLE"
    BYTES = "TYPE_BYTES"
    ENUM = "TYPE_ENUM"
    ANY = "TYPE_MESSAGE"
    """Any JSON value that ``Shape.parses`` accepts."""


#: Text of a boolean query parameter -> value.
BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False, "1": True}
_RANGES: Final = {
    Scalar.INT32: (-(2**31), 2**31 - 1),
    Scalar.UINT32: (0, 2**32 - 1),
    Scalar.INT64: (-(2**63), 2**63 - 1),
    Scalar.UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True)
class Shape:
    """The accepted JSON value: a message, a list, a map or a scalar."""

    fields: Callable[[str], Shape | None] | None = None
    """For a message, a function that returns the shape of a field; None for an unknown field."""
    item: Shape | None = None
    value: Shape | None = None
    scalar: Scalar = Scalar.ANY
    values: frozenset[str] = frozenset()
    """The names of an enum's values."""
    name: str = ""
    """The name of a message or an enum in errors."""
    parses: Callable[[Any], bool] = lambda _value: True
    """Returns whether a value of ``ANY`` is valid for its type."""


def check(value: Any, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and text of each mistake in a value, which is at ``path`` in the request."""
    if path.count(".") + path.count("[") > 100:  # as in protobuf's parsers
        yield path, f"Message too deep. Max recursion depth reached for key '{path[-40:]}'"
    elif value is None:
        return
    elif shape.item is not None:
        if not isinstance(value, list):
            yield path, _invalid(value, shape.item, path)
            return
        for index, element in enumerate(value):
            yield from check(element, shape.item, f"{path}[{index}]")
    elif shape.value is not None or shape.fields is not None:
        yield from _object(value, shape, path)
    elif isinstance(value, list) and shape.scalar is not Scalar.ANY:
        parent, _, last = path.rpartition(".")
        at = f" at '{parent}'" if parent else ""
        text = f'Unknown name "{last}"{at}: Proto field is not repeating, cannot start list.'
        yield parent, text
    elif not _is_scalar(value, shape):
        yield path, _invalid(value, shape, path)


def _object(value: Any, shape: Shape, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, _invalid(value, shape, path)
        return
    for key, member in value.items():
        field = shape.value or (shape.fields and shape.fields(key))
        if field is None:
            at = f" at '{path}'" if path else ""
            yield path, f'Unknown name "{key}"{at}: Cannot find field.'
            continue
        own = f"[{key}]" if shape.value else re.sub(r"[A-Z]", lambda c: f"_{c[0].lower()}", key)
        yield from check(member, field, f"{path}.{own}" if path else own)


def _invalid(value: Any, shape: Shape, path: str) -> str:
    kind = f"type.googleapis.com/{shape.name}" if shape.name else shape.scalar
    text = json.dumps(value, ensure_ascii=False)[:200]
    return f"Invalid value at '{path}' ({kind}), {text}"


def _is_scalar(value: Any, shape: Shape) -> bool:
    match shape.scalar:
        case Scalar.STRING:
            return isinstance(value, str) and not re.search(r"[\ud800-\udfff]", value)
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.DOUBLE:
            return _number(value) is not None
        case Scalar.BYTES:
            return isinstance(value, str) and _is_base64(value)
        case Scalar.ENUM:
            is_number = isinstance(value, int) and not isinstance(value, bool)
            return value in shape.values if isinstance(value, str) else is_number
        case Scalar.ANY:
            return shape.parses(value)
        case integer:
            low, high = _RANGES[integer]
            number = _number(value)
            return number is not None and number == int(number) and low <= int(number) <= high


def _number(value: Any) -> int | float | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,400}", value):
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def _is_base64(encoded: str) -> bool:
    text = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:  # also for a character outside of ASCII
        return False
    return True


#: Query parameters of every method (cloud.google.com/apis/docs/system-parameters).
_SYSTEM: Final = frozenset(
    {"alt", "fields", "key", "prettyPrint", "quotaUser", "userProject", "uploadType"}
    | {"upload_protocol", "access_token", "oauth_token", "callback", "xgafv", "bearer_token", "pp"}
)
#: Package of messages with a special JSON form (protobuf.dev/programming-guides/json).
_WELL_KNOWN: Final = "google.protobuf"
#: Errors that ParseDict raises for some wrong values instead of ParseError.
_WRONG_VALUE: Final = (ValueError, TypeError, AttributeError)
_M = TypeVar("_M", bound=Message)


def request_message(
    rule: HttpRule,
    path_fields: dict[str, str],
    query: Iterable[tuple[str, str]],
    body: bytes,
    message: _M,
) -> _M:
    """Fill in ``message``, an empty request of the method. Raises RefusedRequestError (400)."""
    descriptor: Any = message.DESCRIPTOR
    document, mistakes = _document(body) if rule.body else {}, []
    if rule.body == "*":
        mistakes = list(check(document, message_shape(descriptor)))
    elif rule.body and body.strip():
        field = descriptor.fields_by_name[rule.body]
        mistakes = list(check(document, _field_shape(field), rule.body))
        document = {field.json_name: document}
    if mistakes:
        raise InvalidRequestError(mistakes)
    _parse(document, message)
    taken = {*rule.fields, *([rule.body] if rule.body else [])}
    parameters: dict[str, Any] = {}
    for path, value in path_fields.items():
        _add(parameters, path, value, descriptor, set())
    for key, value in query:
        if key.removeprefix("$").removeprefix(".") not in _SYSTEM:
            _add(parameters, key, value, descriptor, taken)
    _parse(parameters, message)
    return message


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise _refused(str(error)) from None
    if not isinstance(document, dict):
        raise _refused("Root element must be a message.")
    return document


@cache
def message_shape(descriptor: Descriptor) -> Shape:
    """Return the JSON shape that a message accepts."""
    name = descriptor.full_name
    if descriptor.file.package == _WELL_KNOWN:

        def parses(document: Any) -> bool:
            try:
                json_format.ParseDict(document, GetMessageClass(descriptor)())
            except (json_format.ParseError, RecursionError, *_WRONG_VALUE):
                return False
            return True

        return Shape(name=name, parses=parses)
    fields = {field.name: field for field in descriptor.fields}
    fields |= {field_.json_name: field_ for field_ in descriptor.fields}
    return Shape(fields=lambda key: fields.get(key) and _field_shape(fields[key]), name=name)


@cache
def _field_shape(field: FieldDescriptor) -> Shape:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return Shape(value=_field_shape(kind.fields_by_name["value"]))
    if kind is not None:
        one = message_shape(kind)
    elif enum := field.enum_type:
        values = frozenset(value.name for value in enum.values)
        one = Shape(scalar=Scalar.ENUM, values=values, name=enum.full_name)
    else:
        number: Any = field.type
        name = FieldDescriptorProto.Type.Name(number)
        one = Shape(scalar=Scalar(name.replace("FLOAT", "DOUBLE")))
    return Shape(item=one) if is_repeated(field) else one


def _add(
    document: dict[str, Any], key: str, value: str, descriptor: Descriptor, taken: set[str]
) -> None:
    # The parameter ``a.b`` is the field ``b`` of the message in the field ``a``.
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
    """Return whether a field is repeated; protobuf 5 has no attribute ``is_repeated``."""
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
    except (json_format.ParseError, RecursionError, *_WRONG_VALUE) as error:
        raise _refused(str(error)) from None


def _unknown(key: str) -> RefusedRequestError:
    text = f"Cannot bind query parameter. Field '{key}' could not be found in request message."
    return _refused(f'Unknown name "{key}": {text}')


def _refused(text: str, field: str = "") -> InvalidRequestError:
    return InvalidRequestError([(field, text)])


def response_body(message: Message) -> bytes:
    """Return a response as JSON."""
    return json_format.MessageToJson(message, ensure_ascii=False).encode() + b"\n"
