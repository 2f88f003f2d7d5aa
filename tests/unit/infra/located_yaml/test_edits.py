"""An edit changes one entry of a YAML file and no other byte, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vertex_training.errors import ConfigError, Location, Mend, Problem
from vertex_training.located_yaml.editing import mended, set_value

FILE: Final = Path(__file__).parents[3] / "corpus" / "yaml_edits.yaml"
EDITS: Final[list[dict[str, Any]]] = yaml.safe_load(FILE.read_text("utf-8"))
PATH: Final = ("config", "p:images", "x", "digest")
NEW: Final = "sha256:" + "b" * 64
KEPT: Final = "an alias, an anchor or the form of the YAML prevents editing this entry"


def mend_of(action: Any, to: Any) -> Mend:
    if action == "move":
        return Mend("move", target=tuple(to))
    return Mend(action, to) if action in ("rename", "value", "script") else Mend(action)


@pytest.mark.parametrize("number", range(len(EDITS)))
def test_edit_changes_one_entry_or_is_refused(number: int) -> None:
    edit = EDITS[number]
    text, path = edit["text"], tuple(edit["path"])
    [(action, to)] = edit["do"].items()
    if action != "set":
        assert mended(text, path, mend_of(action, to)) == edit["becomes"]
        return
    if edit["becomes"] is not None:
        edited = set_value(text.encode(), path, to, "f.yaml")
        assert edited.decode() == edit["becomes"]
        assert set_value(edited, path, to, "f.yaml") == edited
        return
    with pytest.raises(ConfigError) as failed:
        set_value(text.encode(), path, to, "f.yaml")
    by_hand = f"edit the file by hand: {to}"
    assert failed.value.problems == (Problem(KEPT, "", by_hand, path[1:], Location("f.yaml")),)


@pytest.mark.parametrize("text", ["config: [\n", "- a\n", "a: 1\na: 2\n", "config: \xff"])
def test_file_without_a_config_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        set_value(text.encode("latin-1"), PATH, NEW, "Pulumi.dev.yaml")


WORDS = st.sampled_from(["a", "b", "x", "digest", "context", "p:images", "config"])
TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["t", "a b", "x: y", "#"])),
    lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=20,
)


@given(st.dictionaries(WORDS, TREES, min_size=1), st.sampled_from([True, False, None]))
def test_any_file_is_edited_exactly_or_refused(tree: Any, flow: bool | None) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, sort_keys=False)
    try:
        edited = set_value(text.encode(), PATH, NEW, "f.yaml")
    except ConfigError:
        return
    after = yaml.safe_load(edited)
    assert after["config"]["p:images"]["x"]["digest"] == NEW
    kept = [line for line in text.splitlines() if line in edited.decode().splitlines()]
    assert len(kept) >= len(text.splitlines()) - 1


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
KEYS = st.text("abcxyz", min_size=1, max_size=4)
MENDS = (("rename", "new"), ("value", "86400s"), ("remove", True), ("value", "a: b #"))


@given(
    st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=4),
    VALUES,
    st.booleans(),
    st.sampled_from([mend_of(*each) for each in (*MENDS, ("value", False))]),
)
def test_fix_changes_nothing_else_in_any_file(
    others: dict[str, Any], value: Any, flow: bool, mend: Mend
) -> None:
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
