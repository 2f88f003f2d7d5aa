"""The registry of policies, their settings, and how inputs are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from vertex_training.guardrails.policy import (
    POLICIES,
    UNKNOWN,
    Resource,
    configure,
    is_or_unknown,
    items,
    load,
    mapping,
    matches_path,
    nested,
    policy,
    text,
)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is forgotten after it."""
    load()
    before = dict(POLICIES)
    yield
    POLICIES.clear()
    POLICIES.update(before)


def register(**given: Any) -> None:
    @policy("a-policy", "low", why="why", url="https://example.com", **given)
    def check(resource: Resource, settings: Mapping[str, Any]) -> Iterator[str]:
        """What it requires.

        And more.
        """
        yield f"{resource.name} has {settings['most']}"


def test_a_policy_is_what_its_function_says() -> None:
    register(standards=("CIS 1",), not_in=("dev*",), most=3)
    found = POLICIES["a-policy"]
    assert (found.id, found.severity, found.why, found.url) == (
        "a-policy", "low", "why", "https://example.com"
    )  # fmt: skip
    assert found.subject == "test_policy"
    assert found.what == "What it requires.\n\nAnd more."
    assert found.standards == ("CIS 1",)
    assert found.settings == {"most": 3, "notInStacks": ["dev*"]}


def test_two_policies_of_one_id_are_refused() -> None:
    register(most=3)
    with pytest.raises(ValueError, match="two policies are called a-policy"):
        register(most=4)
    assert POLICIES["a-policy"].settings == {"most": 3, "notInStacks": []}


@pytest.mark.parametrize(
    ("stack", "given", "violations"),
    [
        ("prod", None, ["b has 3"]),
        ("prod", {"most": 4}, ["b has 4"]),
        ("dev-2", None, []),
        ("Dev", None, ["b has 3"]),
        ("dev", {"notInStacks": ["prod"]}, ["b has 3"]),
        ("prod", {"notInStacks": ["prod"]}, []),
    ],
)
def test_settings_that_are_given_win_and_a_stack_may_be_spared(
    stack: str, given: dict[str, Any] | None, violations: list[str]
) -> None:
    register(not_in=("local*", "dev*"), most=3)
    assert POLICIES["a-policy"].violations(Resource("t", "b", {}, stack), given) == violations


def test_policies_are_loaded_subject_by_subject_whatever_was_imported_first() -> None:
    register(most=3)
    mixed = dict(sorted(POLICIES.items()))
    POLICIES.clear()
    POLICIES.update(mixed)
    found = [each.subject for each in load()]
    assert list(dict.fromkeys(found)) == [
        "grants", "buckets", "registry", "retention", "jobs", "serving", "encryption", "network",
        "test_policy",
    ]  # fmt: skip
    runs = [subject for n, subject in enumerate(found) if found[n - 1 : n] != [subject]]
    assert len(runs) == 9


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"leest": 1}, "a-policy has no setting leest; it has most, notInStacks"),
        ({"most": "3"}, "a-policy: most is a int"),
        ({"most": True}, "a-policy: most is a int"),
    ],
)
def test_a_setting_that_does_not_fit_changes_nothing(settings: dict[str, Any], says: str) -> None:
    register(most=3)
    with pytest.raises(ValueError, match=rf"\A{re.escape(says)}\Z"):
        configure("a-policy", **settings)
    assert POLICIES["a-policy"].settings == {"most": 3, "notInStacks": []}
    configure("a-policy", most=5)
    assert POLICIES["a-policy"].settings == {"most": 5, "notInStacks": []}


@pytest.mark.parametrize("props", [None, UNKNOWN, {}, {"a": None}, {"a": UNKNOWN}, {"a": 1}])
def test_what_is_missing_unknown_or_of_another_type_is_empty(props: Any) -> None:
    assert (text(props, "a"), mapping(props, "a"), items(props, "a")) == ("", {}, [])


def test_inputs_are_read_by_their_type() -> None:
    props = {"text": "x", "mapping": {"a": 1}, "items": [1]}
    assert text(props, "text") == "x"
    assert mapping(props, "mapping") == {"a": 1}
    assert items(props, "items") == [1]
    assert (text(props, "items"), mapping(props, "text"), items(props, "mapping")) == ("", {}, [])


@pytest.mark.parametrize(
    ("props", "found"),
    [
        ({"a": True}, True),
        ({"a": UNKNOWN}, True),
        (UNKNOWN, True),
        ({"a": False}, False),
        ({}, False),
        (None, False),
    ],
)
def test_an_unknown_input_may_have_the_value_that_is_wanted(props: Any, found: bool) -> None:
    assert is_or_unknown(props, "a", True) is found


def test_an_input_inside_of_an_unknown_one_is_unknown() -> None:
    props = {"a": {"b": {"c": 1}}, "later": UNKNOWN}
    assert nested(props, "a", "b", "c") == 1
    assert nested(props, "a", "x", "c") is None
    assert nested(props, "a", "b", "c", "d") is None
    assert nested(props, "later", "b", "c") is UNKNOWN
    assert nested(props, "later") is UNKNOWN
    assert repr(UNKNOWN) == "(known later)"


@pytest.mark.parametrize(
    ("path", "pattern", "matches"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/*", True),
        ("a/b/c", "a/*", False),
        ("a/b/c", "a/**", True),
        ("a/b.c:v1@x_y-z", "a/*", True),
        ("axb", "a.b", False),
        ("a", "**", True),
        ("", "**", False),
        ("a//b", "**", False),
        ("a/./b", "**", False),
        ("a/../b", "**", False),
        ("a/b/", "**", False),
        ("a b", "*", False),
        ("xa/b", "a/*", False),
    ],
)
def test_a_star_stands_for_a_part_and_two_for_any_number(
    path: str, pattern: str, matches: bool
) -> None:
    assert matches_path(path, pattern) is matches
