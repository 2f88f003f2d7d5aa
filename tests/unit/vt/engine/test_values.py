"""How values of the engine are shown: secrets withheld, files by their digest."""

from localgcp.gcp import codec
from vertex_training_cli.engine import values
from vertex_training_cli.engine.values import redact

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "value": "hidden"}
FILE = {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "path": "/home/somebody/a.txt"}


def test_a_file_is_shown_by_its_digest_and_without_its_path():
    assert redact(FILE | {"hash": "0123456789abcdef" * 4}) == "[file sha256:0123456789abcdef]"
    assert redact(FILE) == "[file]"


def test_a_resource_is_shown_by_its_name():
    assert redact({SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "urn:x"}) == "urn:x"


def test_secrets_are_withheld_at_any_depth_and_notes_of_the_engine_left_out():
    shown = redact({"a": [{"b": SECRET}], "__defaults": ["c"]})
    assert shown == {"a": [{"b": values.SECRET}]}
    assert redact(SECRET | {"hash": "hidden", "urn": "hidden"}) == values.SECRET
    assert redact({"a": 1, "__defaults": ["c"]}) == {"a": 1}


def test_the_sentinels_are_those_of_the_stand_in_which_speaks_the_same_protocol():
    assert (values.WIRE_UNKNOWN, values.SIGNATURE_KEY, values.SECRET_SIGNATURE) == (
        codec.UNKNOWN_WIRE,
        codec.SIGNATURE,
        codec.SECRET,
    )
