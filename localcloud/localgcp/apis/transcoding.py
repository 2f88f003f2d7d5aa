"""A request of HTTP as the message of its method, by the message's descriptor (pure).

Source: google/api/http.proto. Fields of the path and of the body are taken out of the query; names
are those of JSON or of the message; a field that the message does not have is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from localgcp.apis.client import HttpRule
from localgcp.errors import RefusedRequestError

#: Parameters of every method (cloud.google.com/apis/docs/system-parameters).
_SYSTEM: Final = frozenset(
    {"alt", "fields", "key", "prettyPrint", "quotaUser", "userProject", "uploadType"}
    | {"upload_protocol", "access_token", "oauth_token", "callback", "xgafv", "bearer_token", "pp"}
)
_BOOLEANS: Final = {"true": True, "false": False, "True": True, "False": False, "1": True}
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
    _parse(_of_body(rule, body, descriptor), message)
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
        raise _refused(f"Invalid JSON payload received. {error}") from None
    if not isinstance(document, dict):
        raise _refused("Invalid JSON payload received. Root element must be a message.")
    if rule.body == "*":
        return document
    return {descriptor.fields_by_name[rule.body].json_name: document}


def _add(
    found: dict[str, Any], key: str, value: str, descriptor: Descriptor, taken: set[str]
) -> None:
    """Add a parameter of the query; ``a.b`` is a field of the message in field ``a``."""
    *parents, last = key.split(".")
    target, kind = found, descriptor
    for name in parents:
        field = _field(kind, name, key)
        if field.message_type is None or field.is_repeated:
            raise _unknown(key)
        target, kind = target.setdefault(field.json_name, {}), field.message_type
    field = _field(kind, last, key)
    if "*" in taken or _field(descriptor, key.split(".")[0], key).name in taken:
        raise _refused(f'Invalid JSON payload received. "{key}" is part of the path or the body.')
    if field.type == FieldDescriptor.TYPE_BOOL and value not in _BOOLEANS:
        raise _refused(f"Invalid value at '{key}' (TYPE_BOOL), {json.dumps(value)}")
    given = _BOOLEANS[value] if field.type == FieldDescriptor.TYPE_BOOL else value
    if field.is_repeated:
        target.setdefault(field.json_name, []).append(given)
    else:
        target[field.json_name] = given


def _field(descriptor: Descriptor, name: str, key: str) -> FieldDescriptor:
    for field in descriptor.fields:
        if name in (field.name, field.json_name):
            return field
    raise _unknown(key)


def _parse(document: dict[str, Any], message: Message) -> None:
    try:
        json_format.ParseDict(document, message)
    except (json_format.ParseError, RecursionError) as error:
        raise _refused(f"Invalid JSON payload received. {error}") from None
    except (ValueError, TypeError, AttributeError) as error:  # some values get past its checks
        raise _refused(f"Invalid JSON payload received. {error}") from None


def _unknown(key: str) -> RefusedRequestError:
    text = f'Invalid JSON payload received. Unknown name "{key}": Cannot bind query parameter.'
    return _refused(text)


def _refused(text: str) -> RefusedRequestError:
    return RefusedRequestError(400, text)


def response_body(message: Message) -> bytes:
    """The answer as JSON."""
    return json_format.MessageToJson(message, ensure_ascii=False).encode() + b"\n"
