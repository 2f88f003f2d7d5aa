"""FieldDifference diffs."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.engine.values import diff_fields

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1), inner, max_size=3)
    ),
    max_leaves=10,
)


def test_all_fields_of_something_new() -> None:
    assert [each.path for each in diff_fields({}, {"a": {"b": 1}, "c": [], "d": {}})] == [
        "a.b",
        "c",
        "d",
    ]


@given(VALUES, VALUES)
def test_equal_values_and_only_they_have_no_difference(one: Any, other: Any) -> None:
    assert diff_fields(one, one) == []
    assert (diff_fields(one, other) == []) == (repr_of(one) == repr_of(other))


def repr_of(value: Any) -> str:
    """One text for each JSON value, key order aside."""
    if isinstance(value, dict):
        return repr({key: repr_of(value[key]) for key in sorted(value)})
    return repr([repr_of(item) for item in value]) if isinstance(value, list) else repr(value)
