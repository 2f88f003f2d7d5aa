"""A file in an input: by its text, by its path or by its address."""

import pytest
from google.protobuf import struct_pb2

from localgcp.gcp.codec import decode

SIGNATURE = "4dabf18193072939515e22adb298388d"
ASSET = "c44067f5952c0a294b673a41bacd8c17"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"text": "hi"}, {"text": "hi"}),
        ({"text": "", "path": "a.txt"}, {"path": "a.txt"}),
        ({"text": "", "uri": "https://example.com/a"}, {"uri": "https://example.com/a"}),
    ],
)
def test_an_asset_has_exactly_one_source(given, kept):
    wire = struct_pb2.Struct()
    wire.update({"source": {SIGNATURE: ASSET, "hash": "h", **given}})
    assert dict(decode(wire)["source"].fields) == kept
