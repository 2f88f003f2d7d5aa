"""How values of the engine are shown: secrets withheld, files by their digest."""

import pytest

from localgcp.gcp import codec
from vertex_training_cli.engine import values
from vertex_training_cli.engine.values import redact

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "value": "hidden"}
FILE = {SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "path": "/home/somebody/a.txt"}


def test_a_file_is_shown_by_its_digest_and_without_its_path():
    assert redact(FILE | {"hash": "0123456789abcdef" * 4}) == "[file sha256:0123456789abcdef]"
    assert redact(FILE) == "[file]"


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


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (("a", ["b"]), ["a", ["b"]]),
        ({"_a": 1, "__a": 2, "a__": 3}, {"_a": 1, "a__": 3}),
        ({"name": "DB_PASS", "value": "hunter2"}, {"name": "DB_PASS", "value": "[secret]"}),
        (["--password", "hunter2", "--epochs", "3"], ["--password", "[secret]", "--epochs", "3"]),
        (["--password=hunter2", "x"], ["--password=[secret]", "x"]),
        (FILE | {"urn": "urn:x"}, "urn:x"),
    ],
)
def test_a_value_is_shown_as_it_is_but_for_secrets_and_what_is_unknown(value, shown):
    assert redact(value) == shown


def test_a_job_is_known_by_its_id_and_by_those_of_its_rungs():
    outputs = {"ladder": ["b", ""], "earlierRungs": ["c"]}
    resources = [("a", outputs), ("", {}), ("d", {"ladder": None, "earlierRungs": None})]
    assert values.known_ids(resources) == {"a", "b", "c", "d"}
    deployment = {"resources": [{"id": "a", "outputs": outputs}, {"outputs": None}, {"id": "d"}]}
    assert values.ids_in(deployment) == {"a", "b", "c", "d"}
    assert values.ids_in({}) == values.ids_in({"resources": None}) == frozenset()
