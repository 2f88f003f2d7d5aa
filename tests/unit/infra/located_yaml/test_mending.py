"""One entry is mended, and every other byte stays."""

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
}
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
