"""Values of each type of field, in bodies and in queries: what is taken, and what is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, wrappers_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.message_factory import GetMessageClass

from localgcp.apis.client import HttpRule
from localgcp.apis.transcoding import request_message
from localgcp.errors import InvalidRequestError
from tests.unit.localcloud.apis.served import METHODS

METHOD = METHODS["google.cloud.aiplatform.v1.JobService/GetCustomJob"]
WELL_KNOWN = (
    *("Any", "Duration", "FieldMask", "ListValue", "Struct", "Timestamp", "Value"),
    *("BoolValue", "BytesValue", "DoubleValue", "FloatValue", "Int32Value", "Int64Value"),
    *("StringValue", "UInt32Value", "UInt64Value"),
)
SCALARS = (
    *("string", "bool", "bytes", "double", "float", "int32", "sint32", "sfixed32", "uint32"),
    *("fixed32", "int64", "sint64", "sfixed64", "uint64", "fixed64"),
)


def message_class() -> Any:
    """A message that has a field of each type, called as the type."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    for name in ("any", "duration", "field_mask", "struct", "timestamp", "wrappers"):
        file.dependency.append(f"google/protobuf/{name}.proto")
        found = descriptor_pool.Default().FindFileByName(file.dependency[-1])
        pool.AddSerializedFile(found.serialized_pb)
    file.enum_type.add(name="Colour").value.add(name="RED", number=0)
    file.enum_type[0].value.add(name="BLUE", number=1)
    message = file.message_type.add(name="Message")

    def add(name: str, kind: int, type_name: str = "", label: int = Field.LABEL_OPTIONAL) -> None:
        number = len(message.field) + 1
        made = message.field.add(name=name, number=number, type=kind, label=label)  # pyright: ignore[reportArgumentType]
        if type_name:
            made.type_name = type_name

    for name in SCALARS:
        add(f"a_{name}", getattr(Field, f"TYPE_{name.upper()}"))
    for name in WELL_KNOWN:
        add(name.lower(), Field.TYPE_MESSAGE, f".google.protobuf.{name}")
    add("colour", Field.TYPE_ENUM, ".t.Colour")
    add("inner", Field.TYPE_MESSAGE, ".t.Message")
    add("texts", Field.TYPE_STRING, label=Field.LABEL_REPEATED)
    add("inners", Field.TYPE_MESSAGE, ".t.Message", Field.LABEL_REPEATED)
    entry = message.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), start=1):
        entry.field.add(name=name, number=number, type=Field.TYPE_STRING,
                        label=Field.LABEL_OPTIONAL)  # fmt: skip
    add("labels", Field.TYPE_MESSAGE, ".t.Message.LabelsEntry", Field.LABEL_REPEATED)
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("t.Message"))


MESSAGE = message_class()


def sent(
    body: Any = None, *query: tuple[str, str], rule: str = "*", **fields: str
) -> dict[str, Any] | list[tuple[str, str]]:
    """The message in the form of JSON, or place and text of each mistake."""
    made = MESSAGE()
    template = "".join(f"/{{{name}}}" for name in fields)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    data = b"" if body is None else data
    try:
        request_message(HttpRule(METHOD, "POST", template, rule), fields, query, data, made)
    except InvalidRequestError as error:
        begin = "Invalid JSON payload received. "
        return [(e.get("field", ""), e["description"].removeprefix(begin))
                for e in error.violations]  # fmt: skip
    return json_format.MessageToDict(made)


@pytest.mark.parametrize(
    ("name", "good", "wrong"),
    [
        ("Any", {"@type": "type.googleapis.com/google.protobuf.Int32Value", "value": 5}, 5),
        ("Duration", "1.500s", "x"),
        ("FieldMask", "a,bC", 5),
        ("ListValue", [1.0, "a"], 5),
        ("Struct", {"a": [True, None]}, 5),
        ("Timestamp", "2020-01-02T03:04:05Z", "yesterday"),
    ],
)
def test_some_messages_have_a_form_of_their_own(name: str, good: Any, wrong: Any) -> None:
    """https://protobuf.dev/programming-guides/json"""
    assert wrappers_pb2.DESCRIPTOR.message_types_by_name  # so that an Any of one is read
    field = name.lower()
    assert sent({field: good}) == {field: good}
    if wrong is not None:
        text = f"Invalid value at '{field}' (type.googleapis.com/google.protobuf.{name})"
        assert sent({field: wrong}) == [(field, f"{text}, {json.dumps(wrong)}")]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"colour": "BLUE"}, {"colour": "BLUE"}),
        ({"colour": "GREEN"},
         [("colour", "Invalid value at 'colour' (type.googleapis.com/t.Colour), \"GREEN\"")]),
        ({"inner": {"inner": {"aBool": True}}}, {"inner": {"inner": {"aBool": True}}}),
        ({"inner": 5},
         [("inner", "Invalid value at 'inner' (type.googleapis.com/t.Message), 5")]),
        ({"texts": "a"}, [("texts", "Invalid value at 'texts' (TYPE_STRING), \"a\"")]),
        ({"inners": [{}, {"aInt32": 5}]}, {"inners": [{}, {"aInt32": 5}]}),
        ({"inners": [{"aInt32": []}]},
         [("inners[0]", "Unknown name \"a_int32\" at 'inners[0]': Proto field is not repeating, "
           "cannot start list.")]),
        ({"labels": {"a": "b"}}, {"labels": {"a": "b"}}),
        ({"aInt32": "x", "y": 1},
         [("a_int32", "Invalid value at 'a_int32' (TYPE_INT32), \"x\""),
          ("", 'Unknown name "y": Cannot find field.')]),
        (None, {}),
        (b"[]", [("", "Root element must be a message.")]),
        (b"{", [("", "Expecting property name enclosed in double quotes: line 1 column 2 "
                 "(char 1)")]),
    ],
)  # fmt: skip
def test_a_body_is_a_message(body: Any, wanted: Any) -> None:
    assert sent(body) == wanted


SYSTEM = (
    *("alt", "fields", "key", "prettyPrint", "quotaUser", "userProject", "uploadType", "callback"),
    *("upload_protocol", "access_token", "oauth_token", "bearer_token", "pp", "$.xgafv", "$alt"),
)
PART = "is already set by the path or the body."


def unknown(name: str) -> list[tuple[str, str]]:
    text = f"Cannot bind query parameter. Field '{name}' could not be found in request message."
    return [("", f'Unknown name "{name}": {text}')]


@pytest.mark.parametrize(
    ("query", "rule", "wanted"),
    [
        *(([(name, "x")], "*", {}) for name in SYSTEM),
        ([("$alt.x", "1")], "", unknown("$alt.x")),
        ([("aString", "é"), ("a_int64", "5")], "", {"aString": "é", "aInt64": "5"}),
        ([("texts", "a"), ("texts", "b")], "", {"texts": ["a", "b"]}),
        ([("aInt32", "1"), ("aInt32", "2")], "", {"aInt32": 2}),
        ([("inner.a_string", "a"), ("inner.inner.colour", "BLUE")], "",
         {"inner": {"aString": "a", "inner": {"colour": "BLUE"}}}),
        ([("fieldmask", "a,b")], "", {"fieldmask": "a,b"}),
        *(([("aBool", text)], "", {"aBool": True}) for text in ("true", "True", "1")),
        *(([("aBool", text)], "", {}) for text in ("false", "False")),
        ([("aBool", "0")], "", [("aBool", "Invalid value at 'aBool' (TYPE_BOOL), \"0\"")]),
        ([("aInt32", "many")], "", [("", "Failed to parse aInt32 field: invalid literal for int() "
                                         "with base 10: 'many'.")]),
        ([("fieldmask", "a"), ("fieldmask.paths", "b")], "",
         [("fieldmask.paths", '"fieldmask.paths" belongs to a field that already has a value.')]),
        ([("nothing", "1")], "", unknown("nothing")),
        ([("inner.nothing", "1")], "", unknown("inner.nothing")),
        ([("aString.x", "1")], "", unknown("aString.x")),
        ([("inners.aString", "1")], "", unknown("inners.aString")),
        ([("aString", "x")], "*", [("aString", f'"aString" {PART}')]),
        ([("inner.aString", "x")], "inner", [("inner.aString", f'"inner.aString" {PART}')]),
        ([("aString", "x")], "inner", {"aString": "x"}),
    ],
)  # fmt: skip
def test_a_parameter_of_the_query_is_a_field(
    query: list[tuple[str, str]], rule: str, wanted: Any
) -> None:
    assert sent(None, *query, rule=rule) == wanted


def test_a_field_of_the_path_is_in_nothing_else() -> None:
    assert sent({"a_string": "b", "aBool": True}, a_string="a") == {"aString": "a", "aBool": True}
    assert sent(None, ("aString", "x"), rule="", a_string="a") == [("aString", f'"aString" {PART}')]
    assert sent(None, rule="", **{"inner.a_string": "a"}) == {"inner": {"aString": "a"}}
