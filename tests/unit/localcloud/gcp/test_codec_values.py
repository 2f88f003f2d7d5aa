"""Property values, kind by kind: on the wire, plain, stored, and what is in them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2

from localgcp.gcp.codec import (
    UNKNOWN,
    Asset,
    Secret,
    base64_of,
    decode,
    encode,
    has_secret,
    has_unknown,
    plain,
    stored,
)

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
ASSET = "c44067f5952c0a294b673a41bacd8c17"
RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_WIRE = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
FILE = Asset("h", (("path", "a.txt"),))


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (None, None),
        (True, True),
        (False, False),
        (3, 3.0),
        (1.5, 1.5),
        ("", ""),
        ("text", "text"),
        (UNKNOWN, UNKNOWN_WIRE),
        ([1, [UNKNOWN], {}], [1.0, [UNKNOWN_WIRE], {}]),
        ({"a": {"b": None}}, {"a": {"b": None}}),
        (Secret("s"), {SIGNATURE: SECRET, "value": "s"}),
        ([Secret([UNKNOWN])], [{SIGNATURE: SECRET, "value": [UNKNOWN_WIRE]}]),
        (FILE, {SIGNATURE: ASSET, "hash": "h", "path": "a.txt"}),
        (Asset("h", ()), {SIGNATURE: ASSET, "hash": "h"}),
    ],
)
def test_a_value_has_one_form_on_the_wire(value: Any, wire: Any) -> None:
    message = encode({"x": value})
    assert json_format.MessageToDict(message) == {"x": wire}
    back = decode(message)
    assert back == {"x": value}
    assert repr(back) == repr({"x": value})


def test_nothing_is_a_value_of_its_own() -> None:
    assert encode({"x": None}).fields["x"].WhichOneof("kind") == "null_value"
    assert decode(struct_pb2.Struct(fields={"x": struct_pb2.Value()})) == {"x": None}


def test_a_tuple_is_a_list_and_what_is_no_value_is_refused() -> None:
    assert encode({"x": ("a", 1)}) == encode({"x": ["a", 1]})
    with pytest.raises(TypeError) as failed:
        encode({"x": [b"bytes"]})
    assert str(failed.value) == "bytes is not a property value"


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        ({SIGNATURE: SECRET}, Secret(None)),
        ({SIGNATURE: OUTPUT}, UNKNOWN),
        ({SIGNATURE: OUTPUT, "value": "v"}, "v"),
        ({SIGNATURE: OUTPUT, "value": "v", "secret": False}, "v"),
        ({SIGNATURE: OUTPUT, "value": "v", "secret": True}, Secret("v")),
        ({SIGNATURE: OUTPUT, "secret": True}, Secret(UNKNOWN)),
        ({SIGNATURE: RESOURCE, "urn": "u", "id": "i"}, "i"),
        ({SIGNATURE: RESOURCE, "urn": "u"}, UNKNOWN),
        ({SIGNATURE: ASSET, "text": "t"}, Asset("", (("text", "t"),))),
        (2.0, 2),
        (2.5, 2.5),
    ],
)
def test_what_the_engine_sends_is_read(wire: Any, value: Any) -> None:
    message = struct_pb2.Struct()
    message.update({"x": wire})
    [found] = decode(message).values()
    assert (found, repr(found)) == (value, repr(value))


def test_a_kind_of_value_that_the_plugin_does_not_take_is_named() -> None:
    message = struct_pb2.Struct()
    message.update({"x": {SIGNATURE: "0def"}})
    with pytest.raises(ValueError, match=r"\Aa property value of kind 0def is not supported\Z"):
        decode(message)


def test_what_is_unknown_is_one_thing_however_it_is_copied() -> None:
    assert copy.copy(UNKNOWN) is copy.deepcopy([UNKNOWN])[0] is UNKNOWN
    assert repr(UNKNOWN) == "UNKNOWN"


@pytest.mark.parametrize(
    ("value", "bare", "kept", "unknown", "secret"),
    [
        ("a", "a", "a", False, False),
        ([], [], [], False, False),
        (UNKNOWN, UNKNOWN, UNKNOWN, True, False),
        (FILE, FILE, {"asset": "h"}, False, False),
        (Secret(Secret("a")), "a", "a", False, True),
        (Secret(FILE), FILE, {"asset": "h"}, False, True),
        (Secret([UNKNOWN]), [UNKNOWN], [UNKNOWN], True, True),
        ({"a": 1, "b": [2, Secret(3)]}, {"a": 1, "b": [2, 3]}, {"a": 1, "b": [2, 3]}, False, True),
        ([1, {"a": UNKNOWN}], [1, {"a": UNKNOWN}], [1, {"a": UNKNOWN}], True, False),
        ({"a": [FILE]}, {"a": [FILE]}, {"a": [{"asset": "h"}]}, False, False),
    ],
)
def test_a_value_is_looked_through_at_any_depth(
    value: Any, bare: Any, kept: Any, unknown: bool, secret: bool
) -> None:
    assert plain(value) == bare
    assert stored(value) == kept
    assert (has_unknown(value), has_secret(value)) == (unknown, secret)


def test_the_content_of_an_asset_is_where_it_says(tmp_path: Path) -> None:
    file = tmp_path / "a b.txt"
    file.write_bytes(b"\xffhi")
    assert Asset("h", (("text", "é"),)).read() == b"\xc3\xa9"
    assert Asset("h", (("text", ""),)).read() == b""
    assert Asset("h", (("path", str(file)),)).read() == b"\xffhi"
    assert Asset("h", (("uri", file.as_uri()),)).read() == b"\xffhi"
    with pytest.raises(OSError, match=r"\Athe engine sent only the hash of an asset\Z"):
        Asset("h", ()).read()


def test_assets_are_equal_by_their_hash_alone() -> None:
    assert Asset("h", (("text", "a"),)) == Asset("h", ())
    assert Asset("h", ()) != Asset("i", ())


def test_checksums_are_written_as_cloud_storage_does() -> None:
    assert base64_of(b"\xff\xfe\xfd\xfc") == "//79/A=="
