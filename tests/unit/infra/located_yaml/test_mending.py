"""One entry is mended, and every other byte stays."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import Mend
from vertex_training.located_yaml.mending import mended

RENAME = Mend("rename", "new")
VALUE = Mend("value", "86400s")
REMOVE = Mend("remove")

CASES = {
    "a key": (RENAME, "a: 1 # c\nold: 2  # d\nz: 3\n", "a: 1 # c\nnew: 2  # d\nz: 3\n"),
    "a quoted key": (RENAME, '{"old": 2, "z": 1}', '{"new": 2, "z": 1}'),
    "a key behind a dash": (RENAME, "- old: 1\n  b: 2\n", "- new: 1\n  b: 2\n"),
    "a key of a block": (RENAME, "old:\n  # why\n  b: 2\n", "new:\n  # why\n  b: 2\n"),
    "a plain value": (VALUE, "old: 24h # day\n", "old: 86400s # day\n"),
    "a quoted value": (VALUE, "old: '24h'\r\nz: 1\r\n", "old: '86400s'\r\nz: 1\r\n"),
    "a value of JSON": (VALUE, '{"old": 86400}', '{"old": "86400s"}'),
    "a number": (Mend("value", 4), "old: 4.0\n", "old: 4\n"),
    "a truth": (Mend("value", True), 'old: "true"\n', "old: true\n"),
    "text that YAML would read otherwise": (Mend("value", "no"), "old: no\n", 'old: "no"\n'),
    "a line": (REMOVE, "a: 1\nold:\nz: 3\n", "a: 1\nz: 3\n"),
    "the last line": (REMOVE, "a: 1\nold: null", "a: 1\n"),
    "several lines": (REMOVE, "a: 1\nold:\n  b: 2\n  c: 3\n# end\nz: 1\n", "a: 1\n# end\nz: 1\n"),
    "behind a dash": (REMOVE, "- old: ~\n  b: 2\n", "- b: 2\n"),
    "of one line": (REMOVE, "x: {old: null, b: 2}\n", "x: {b: 2}\n"),
    "the last of one line": (REMOVE, "x: {b: 2, old: null}\n", "x: {b: 2}\n"),
    "the key of an alias": (RENAME, "a: &a x\nold: *a # c\n", "a: &a x\nnew: *a # c\n"),
    "beside a date": (RENAME, "2026-01-01: x\nold: 2\n", "2026-01-01: x\nnew: 2\n"),
    "a key in single quotes": (RENAME, "'old': 1\n", "'new': 1\n"),
    "a key that needs quotes": (Mend("rename", "a: b"), "old: 1\n", '"a: b": 1\n'),
    "a quote in quotes": (Mend("value", "it's"), "old: 'x'\n", "old: 'it''s'\n"),
    "letters in JSON": (Mend("value", "größe"), '{"old": 1}', '{"old": "größe"}'),
    "letters in quotes": (Mend("value", "größe"), 'old: "x"\n', 'old: "größe"\n'),
    "as in JSON in one line": (Mend("value", "y"), "\n {old: x}", '\n {old: "y"}'),
    "as in JSON behind a mark": (Mend("value", "y"), "\ufeff{old: x}", '\ufeff{old: "y"}'),
    "words": (Mend("value", "a-b c"), "old: x\n", "old: a-b c\n"),
    "text with a space around": (Mend("value", "a "), "old: x\n", 'old: "a "\n'),
    "text like a list": (Mend("value", "- a"), "old: x\n", 'old: "- a"\n'),
    "no text": (Mend("value", ""), "old: x\n", 'old: ""\n'),
    "a number of JSON": (Mend("value", 4), '{"old": "4"}', '{"old": 4}'),
    "a truth for a number": (Mend("value", True), "old: 1\n", "old: true\n"),
    "a number for a truth": (Mend("value", 1), "old: true\n", "old: 1\n"),
    "lines of JSON": (
        REMOVE, '{\n  "a": 1,\n  "old": 2,\n  "z": 3\n}', '{\n  "a": 1,\n  "z": 3\n}',
    ),
    "the last line of JSON": (REMOVE, '{\n  "a": 1,\n  "old": 2\n}\n', '{\n  "a": 1\n}\n'),
    "a line of Windows": (REMOVE, "a: 1\r\nold: 2\r\nz: 3\r\n", "a: 1\r\nz: 3\r\n"),
    "the last lines": (REMOVE, "a: 1\nold:\n  b: 2", "a: 1\n"),
    "a list": (REMOVE, "a: 1\nold:\n- 1\n- 2\nz: 1\n", "a: 1\nz: 1\n"),
    "the first line": (REMOVE, "old:\nz: 1\n", "z: 1\n"),
    "a line below a comment": (REMOVE, "x: # c\n  old: 1\n  b: 1\n", "x: # c\n  b: 1\n"),
}  # fmt: skip
KEPT = {
    "a comment would go": (REMOVE, "a: 1\nold:  # decide\nz: 3\n"),
    "a comment of a block would go": (REMOVE, "a: 1\nold:\n  # decide\n  b: 2\n"),
    "the only entry": (REMOVE, "old: null\n"),
    "the other one is there": (RENAME, "old: 1\nnew: 2\n"),
    "an anchor": (VALUE, "old: &a 24h\nz: *a\n"),
    "an alias": (VALUE, "a: &a 24h\nold: *a\n"),
    "a tag": (VALUE, "old: !x 24h\n"),
    "a text of several lines": (VALUE, "old: |\n  24h\n"),
    "a list": (VALUE, "old: [24h]\n"),
    "it is not there": (RENAME, "a: 1\n"),
    "no YAML": (RENAME, "old: [\n"),
    "no value": (VALUE, "old:\n"),
    "a folded text": (VALUE, "old: >\n  24h\n"),
    "an anchor of a key": (RENAME, "&a old: 1\nz: 2\n"),
    "a mapping": (VALUE, "old: {a: 1}\n"),
    "what looks like a comment would go": (REMOVE, "a: 1\nold: '#x'\n"),
    "the only entry behind a dash": (REMOVE, "- old: 1\n- b: 1\n"),
}


def path_of(text):
    if text.startswith("- "):
        return (0, "old")
    return ("x", "old") if text.startswith("x:") else ("old",)


@pytest.mark.parametrize(("mend", "before", "after"), CASES.values(), ids=CASES)
def test_one_entry_is_mended(mend, before, after):
    assert mended(before, path_of(before), mend) == after


@pytest.mark.parametrize(("mend", "text"), KEPT.values(), ids=KEPT)
def test_what_cannot_be_mended_alone_is_left(mend, text):
    assert mended(text, path_of(text), mend) is None


@pytest.mark.parametrize("mark", ",[]{}#:&*!|>'\"%@`")
def test_text_with_a_mark_of_yaml_gets_quotes(mark):
    text = f"a{mark}b"
    assert mended("old: x\n", ("old",), Mend("value", text)) == f"old: {json.dumps(text)}\n"


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (("a", 1), "a: [x, y]\n", "a: [x, z]\n"),
        (("a", 2), "a: [x, y]\n", None),
        (("a", "b", 1, "c"), "a:\n  b:\n  - c: 1\n  - c: x\n", "a:\n  b:\n  - c: 1\n  - c: z\n"),
        (("a", "b"), "a: x\n", None),
        ((1,), "1: x\n", "1: z\n"),
        ((), "a: x\n", None),
    ],
)  # fmt: skip
def test_a_value_is_found_by_its_path(path, before, after):
    assert mended(before, path, Mend("value", "z")) == after


@pytest.mark.parametrize("mend", [REMOVE, RENAME])
def test_an_item_of_a_list_has_no_key(mend):
    assert mended("a: [x, y]\n", ("a", 0), mend) is None


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
KEYS = st.text("abcxyz", min_size=1, max_size=4)


@given(
    st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=4),
    VALUES,
    st.booleans(),
    st.sampled_from([RENAME, VALUE, REMOVE, Mend("value", "a: b #"), Mend("value", False)]),
)
def test_a_mend_changes_nothing_else_whatever_the_file(others, value, flow, mend):
    text = yaml.safe_dump({**others, "old": value, "tail": 1}, default_flow_style=flow)
    done = mended(text, ("old",), mend)
    if done is None:
        return
    expected = yaml.safe_load(text)
    taken = expected.pop("old")
    found = yaml.safe_load(done)
    if mend.action == "rename":
        assert found.pop("new") == taken
    elif mend.action == "value":
        assert found.pop("old") == mend.to
    assert found == expected
