"""A value is set, and every other byte stays."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.located_yaml.editing import set_value

PATH = ("config", "p:images", "x", "digest")
NEW = "sha256:" + "b" * 64
OLD = "sha256:" + "a" * 64

#: before -> after; N stands for the new digest, O for the old one.
CASES = {
    "double quotes": (
        'config: # c\n  p:images: # d\n    x: {context: a, digest: "O"} # e\n  z: 1\n',
        'config: # c\n  p:images: # d\n    x: {context: a, digest: "N"} # e\n  z: 1\n',
    ),
    "single quotes": (
        "config:\n  p:images:\n    x:\n      digest: 'O' # pin\n",
        "config:\n  p:images:\n    x:\n      digest: 'N' # pin\n",
    ),
    "plain": (
        "config:\n  p:images:\n    x:\n      digest: O   # pin\n      context: a\n",
        "config:\n  p:images:\n    x:\n      digest: N   # pin\n      context: a\n",
    ),
    "added to one line": (
        "config:\n  p:images:\n    x: {context: jobs/x} # c\n",
        'config:\n  p:images:\n    x: {context: jobs/x, digest: "N"} # c\n',
    ),
    "added to a block, before what follows": (
        "config:\n  p:images:\n    x:\n      context: a # c\n\n    # about y\n    y: {}\n",
        'config:\n  p:images:\n    x:\n      context: a # c\n      digest: "N"\n\n    # about y\n'
        "    y: {}\n",
    ),
    "added after a nested block": (
        "config:\n  p:images:\n    x:\n      buildArgs:\n        A: '1'\n  # end\n",
        "config:\n  p:images:\n    x:\n      buildArgs:\n        A: '1'\n"
        '      digest: "N"\n  # end\n',
    ),
    "added after a text of several lines": (
        "config:\n  p:images:\n    x:\n      a: |\n        text\n        more\n  z: 1\n",
        'config:\n  p:images:\n    x:\n      a: |\n        text\n        more\n      digest: "N"\n'
        "  z: 1\n",
    ),
    "an image more": (
        "config:\n  p:images:\n    # first\n    a: {digest: O}\n  p:jobs: {}\n",
        'config:\n  p:images:\n    # first\n    a: {digest: O}\n    x: {digest: "N"}\n'
        "  p:jobs: {}\n",
    ),
    "the first image": (
        "config:\n  p:a: 1\n# end\n",
        'config:\n  p:a: 1\n  p:images: {x: {digest: "N"}}\n# end\n',
    ),
    "an empty section": (
        "config:\n  p:images: {}\n",
        'config:\n  p:images: {x: {digest: "N"}}\n',
    ),
    "a section without a value": (
        "config:\n  p:images: # none yet\n  p:jobs: {}\n",
        'config:\n  p:images: {x: {digest: "N"}} # none yet\n  p:jobs: {}\n',
    ),
    "no end of line": (
        "config:\n  p:images:\n    x:\n      context: a",
        'config:\n  p:images:\n    x:\n      context: a\n      digest: "N"',
    ),
    "line ends of Windows": (
        "config:\r\n  p:images:\r\n    x:\r\n      context: a\r\n  z: 1\r\n",
        'config:\r\n  p:images:\r\n    x:\r\n      context: a\r\n      digest: "N"\r\n  z: 1\r\n',
    ),
    "a mark at the beginning, and letters of several bytes": (
        "\ufeffconfig:\n  ä: größe 😀\n  p:images: {x: {digest: O}}\n",
        "\ufeffconfig:\n  ä: größe 😀\n  p:images: {x: {digest: N}}\n",
    ),
    "a flow mapping on several lines": (
        "config:\n  p:images:\n    x: {\n      context: a, # c\n      digest: O,\n    }\n",
        "config:\n  p:images:\n    x: {\n      context: a, # c\n      digest: N,\n    }\n",
    ),
    "other aliases stay": (
        "config:\n  a: &l {t: 1}\n  b: *l\n  p:images: {x: {digest: O}}\n",
        "config:\n  a: &l {t: 1}\n  b: *l\n  p:images: {x: {digest: N}}\n",
    ),
}


def filled(text: str) -> bytes:
    return text.replace("N", NEW).replace("O", OLD).encode()


@pytest.mark.parametrize("case", CASES)
def test_a_value_is_set_and_nothing_else(case):
    before, after = CASES[case]
    edited = set_value(filled(before), PATH, NEW, "Pulumi.dev.yaml")
    assert edited.decode() == filled(after).decode()
    assert set_value(edited, PATH, NEW, "Pulumi.dev.yaml") == edited


#: Text, path and value -> text.
SET = [
    ("a: 1\n", "b", {"z": 1, "c": {"y": 2, "d": 3}}, "a: 1\nb: {z: 1, c: {y: 2, d: 3}}\n"),
    ("a: 1 # c\n", "a", 5, "a: 5 # c\n"),
    ("a: 1\n", "a", True, "a: true\n"),
    ("a: true\n", "a", 1, "a: 1\n"),
    ("a: x\n", "a", 1.5, "a: 1.5\n"),
    ("a: x\n", "a", None, "a: null\n"),
    ("a: x\n", "a", 'q"', 'a: q"\n'),
    ("a: 'x'\n", "a", "x y", "a: 'x y'\n"),
    ('{"a": "x"}', "a", "n", '{"a": "n"}'),
    ("a: 1\n", "a", ["x", "y z"], "a: [x, y z]\n"),
    ("b: 1\n", "a", {"k": [1, "b"]}, "b: 1\na: {k: [1, b]}\n"),
    ("b: 1\n", "a", ["n" * 90, "m"], f"b: 1\na: [{'n' * 90}, m]\n"),
    ("b: 1\n", "a", ["größe"], "b: 1\na: [größe]\n"),
    ("a: ~\n", "a.b", "n", 'a: {b: "n"}\n'),
    ("a: null # c\n", "a.b", "n", 'a: {b: "n"} # c\n'),
    ("a: # c\n  b: 1\n", "a.c", "n", 'a: # c\n  b: 1\n  c: "n"\n'),
    ("{a: 1}\n", "b", "n", '{a: 1, b: "n"}\n'),
    ("{}\n", "b", "n", '{b: "n"}\n'),
    ("a:\n\n\nb: 1\n", "a", "n", 'a: "n"\n\n\nb: 1\n'),
    ("a:\n  b:\n  - 1\n  - 2\nz: 1\n", "a.c", 3, "a:\n  b:\n  - 1\n  - 2\n  c: 3\nz: 1\n"),
    ("a:\n  b: [1,\n    2]\nz: 1\n", "a.c", 3, "a:\n  b: [1,\n    2]\n  c: 3\nz: 1\n"),
    ("a: &x {b: 1}\nc: *x\n", "d", 1, "a: &x {b: 1}\nc: *x\nd: 1\n"),
    ("a: {b: 1}\nc:\n  d: \n", "c.e", 1, "a: {b: 1}\nc:\n  d: \n  e: 1\n"),
]


@pytest.mark.parametrize(("before", "path", "value", "after"), SET)
def test_a_value_of_any_kind_is_set(before, path, value, after):
    edited = set_value(before.encode(), tuple(path.split(".")), value, "f.yaml")
    assert edited.decode() == after


#: Text, path and value that has no place there.
REFUSED = [
    ("config:\n  a: &d O\n  p:images: {x: {digest: *d}}\n", PATH, NEW),
    ("config:\n  a: &x {digest: O}\n  p:images: {x: *x}\n", PATH, NEW),
    ("config:\n  p:images:\n    x: {digest: &d O}\n    y: {digest: *d}\n", PATH, NEW),
    ("config:\n  p:images:\n    x: {digest: !!str O}\n", PATH, NEW),
    ("config:\n  p:images:\n    x:\n      digest: >-\n        O\n", PATH, NEW),
    ("config:\n  p:images:\n    x:\n      digest: |-\n        O\n", PATH, NEW),
    ("a: x\n", ("a",), "true"),
    ("a: 1\n", ("a",), "5"),
    ("a: x\n", ("a",), "a: b"),
    ("a: 'x'\n", ("a",), "it's"),
    ("a: [1]\n", ("a",), "n"),
    ("a: {b: 1}\n", ("a",), "n"),
    ("a: x\n", ("a", "b"), "n"),
    ('a: ""\n', ("a", "b"), "n"),
    ("a:\n- b: 1\n", ("a", "c"), "n"),
]


@pytest.mark.parametrize(("text", "path", "value"), REFUSED)
def test_what_would_change_more_is_refused(text, path, value):
    with pytest.raises(ConfigError) as failed:
        set_value(filled(text), path, value, "Pulumi.dev.yaml")
    what = "cannot be edited in place: an alias, an anchor or a form of YAML is in the way"
    assert failed.value.problems == (
        Problem(what, "", f"write it by hand: {value}", path[1:], Location("Pulumi.dev.yaml")),
    )


@pytest.mark.parametrize("text", ["config: [\n", "- a\n", "a: 1\na: 2\n", "config: \xff"])
def test_what_is_no_stack_file_is_refused(text):
    with pytest.raises(ConfigError):
        set_value(text.encode("latin-1"), PATH, NEW, "Pulumi.dev.yaml")


WORDS = st.sampled_from(["a", "b", "x", "digest", "context", "p:images", "config"])
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["t", "a b", "x: y", "#"])),
    lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=20,
)


@given(st.dictionaries(WORDS, TREES, min_size=1), st.sampled_from([True, False, None]))
def test_any_file_is_edited_exactly_or_refused(tree, flow):
    text = yaml.safe_dump(tree, default_flow_style=flow, sort_keys=False)
    path = ("config", "p:images", "x", "digest")
    try:
        edited = set_value(text.encode(), path, NEW, "f.yaml")
    except ConfigError:
        return
    after = yaml.safe_load(edited)
    assert after["config"]["p:images"]["x"]["digest"] == NEW
    kept = [line for line in text.splitlines() if line in edited.decode().splitlines()]
    assert len(kept) >= len(text.splitlines()) - 1
