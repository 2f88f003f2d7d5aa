"""The registry of policies, their settings, and how inputs are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from vertex_training.guardrails.policy import (
    POLICIES,
    Resource,
    load,
    policy,
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


def test_two_policies_of_one_id_are_refused() -> None:
    register(most=3)
    with pytest.raises(ValueError, match="two policies have the id a-policy"):
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
