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


@pytest.mark.parametrize(("mend", "text"), KEPT.values(), ids=KEPT)
def test_what_cannot_be_mended_alone_is_left(mend, text):
    assert mended(text, path_of(text), mend) is None


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
