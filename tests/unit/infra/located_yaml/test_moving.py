"""An entry moves to another mapping, an item becomes two, and every other byte stays."""

import pytest

from vertex_training.errors import Mend
from vertex_training.located_yaml.mending import mended

UP = Mend("move", target=())
DOWN = Mend("move", target=("spec",))
IN_LIST = ("pools", 0, "old")

MOVED = {
    "out of an item": (
        UP, IN_LIST, "pools:\n  - a: 1  # one\n    old: x\n    b: 2\n",
        "pools:\n  - a: 1  # one\n    b: 2\nold: x\n",
    ),
    "from behind the dash": (
        UP, IN_LIST, "pools:\n- old: x\n  b: 2\nz: 3\n# end\n",
        "pools:\n- b: 2\nz: 3\nold: x\n# end\n",
    ),
    "a list of mappings": (
        UP, IN_LIST, "pools:\n- old:\n  - n: 1\n    v: 2\n  b: 2\n",
        "pools:\n- b: 2\nold:\n- n: 1\n  v: 2\n",
    ),
    "farther in": (
        DOWN, ("old",), "old:\n  a: 1\nspec:\n  # first\n  b: 2\nz: 3\n",
        "spec:\n  # first\n  b: 2\n  old:\n    a: 1\nz: 3\n",
    ),
    "behind a text of several lines": (
        UP, IN_LIST, "pools:\n- old: x\n  b: |\n    c\n    d\n",
        "pools:\n- b: |\n    c\n    d\nold: x\n",
    ),
    "with the line ends of Windows": (
        UP, IN_LIST, "pools:\r\n- a: 1\r\n  old:\r\n    c: 1\r\n",
        "pools:\r\n- a: 1\r\nold:\r\n  c: 1\r\n",
    ),
    "to another item": (
        Mend("move", target=("pools", 1)), IN_LIST, "pools:\n- old: x\n  a: 1\n- b: 1\n",
        "pools:\n- a: 1\n- b: 1\n  old: x\n",
    ),
    "with its empty lines": (
        DOWN, ("old",), "old:\n  a: 1\n\n  b: 2\nspec:\n  c: 1\n# end\n",
        "spec:\n  c: 1\n  old:\n    a: 1\n\n    b: 2\n# end\n",
    ),
    "to the mapping of a mapping": (
        Mend("move", target=("spec", "x")), ("old",), "old: 1\nspec:\n  x:\n    b: 1\n  y: 2\n",
        "spec:\n  x:\n    b: 1\n    old: 1\n  y: 2\n",
    ),
    "without a line end": (DOWN, ("old",), "old: 1\nspec:\n  b: 2", "spec:\n  b: 2\n  old: 1"),
}  # fmt: skip
LEFT = {
    "the other one is there": (UP, IN_LIST, "pools:\n- old: x\n  b: 2\nold: y\n"),
    "it is the only entry": (UP, IN_LIST, "pools:\n- old: x\n"),
    "a comment would go": (UP, IN_LIST, "pools:\n- a: 1\n  old: x  # why\n"),
    "it stands in one line": (UP, IN_LIST, "pools:\n- {a: 1, old: x}\n"),
    "the target is one line": (DOWN, ("old",), "old: 1\nspec: {b: 2}\n"),
    "the target is empty": (DOWN, ("old",), "old: 1\nspec:\n"),
    "the target is a list": (DOWN, ("old",), "old: 1\nspec:\n- b\n"),
    "there is no target": (DOWN, ("old",), "old: 1\nz: 2\n"),
    "a line of it is farther out": (
        UP,
        IN_LIST,
        "pools:\n    - a: 1\n      old: [1,\n 2]\n",
    ),
    "an anchor": (DOWN, ("old",), "old: &a x\nspec:\n  b: *a\n"),
    "an alias": (DOWN, ("old",), "a: &a x\nold: *a\nspec:\n  b: 1\n"),
    "a merge gives the target": (
        DOWN,
        ("old",),
        "a: &a\n  spec:\n    b: 1\nold: 1\n<<: *a\n",
    ),
    "the target is a text": (DOWN, ("old",), "old: 1\nspec: text\n"),
}

SPLIT = Mend("split")
COUNT = ("pools", 0, "n")
TWO = {
    "a block": (
        "pools:\n  # all\n  - n: 4  # nodes\n    a: {b: 1}\n  # end\nz: 1\n",
        "pools:\n  # all\n  - n: 1  # nodes\n    a: {b: 1}\n  - n: 3  # nodes\n    a: {b: 1}\n"
        "  # end\nz: 1\n",
    ),
    "the last lines": ("pools:\n- a: 1\n  n: 2", "pools:\n- a: 1\n  n: 1\n- a: 1\n  n: 1"),
    "a text of several lines": (
        "pools:\n- n: 2\n  a: |\n    x\nz: 1\n",
        "pools:\n- n: 1\n  a: |\n    x\n- n: 1\n  a: |\n    x\nz: 1\n",
    ),
    "JSON": (
        '{"pools": [{"n": "4", "a": [1]}]}', '{"pools": [{"n": 1, "a": [1]}, {"n": 3, "a": [1]}]}',
    ),
    "one line": (
        "pools: [{n: 2, a: x}, {n: 9}]\n", "pools: [{n: 1, a: x}, {n: 1, a: x}, {n: 9}]\n",
    ),
    "far from its dash": (
        "pools:\n-   n: 2\n    a: 1\n- n: 5\n",
        "pools:\n-   n: 1\n    a: 1\n-   n: 1\n    a: 1\n- n: 5\n",
    ),
    "below an empty line": (
        "\npools:\n- n: 2\n  a: 1\n", "\npools:\n- n: 1\n  a: 1\n- n: 1\n  a: 1\n",
    ),
    "Windows": ("pools:\r\n- n: 3\r\n", "pools:\r\n- n: 1\r\n- n: 2\r\n"),
}  # fmt: skip
ONE = {
    "one already": "pools:\n- n: 1\n",
    "none": "pools:\n- n: 0\n",
    "no whole number": "pools:\n- n: 2.0\n",
    "a list of numbers": "pools:\n- n: [2]\n",
    "behind a comment": "pools:\n- # c\n  n: 2\n",
    "no number": "pools:\n- n: four\n",
    "no list": "pools:\n  n: 4\n",
    "an alias": "x: &x {n: 4}\npools:\n- *x\n",
    "it is not there": "pools:\n- a: 4\n",
}


@pytest.mark.parametrize(("mend", "path", "before", "after"), MOVED.values(), ids=MOVED)
def test_an_entry_moves_to_its_place(mend, path, before, after):
    assert mended(before, path, mend) == after


@pytest.mark.parametrize(("mend", "path", "text"), LEFT.values(), ids=LEFT)
def test_what_cannot_move_alone_is_left(mend, path, text):
    assert mended(text, path, mend) is None


@pytest.mark.parametrize(("before", "after"), TWO.values(), ids=TWO)
def test_an_item_becomes_one_and_the_others(before, after):
    assert mended(before, COUNT, SPLIT) == after


@pytest.mark.parametrize("text", ONE.values(), ids=ONE)
def test_what_has_no_count_to_share_is_left(text):
    assert mended(text, COUNT, SPLIT) is None
