"""The table of resource types, against the goldens, the provider's schema and the code's tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ResourceType, by_token, find, granting

GOLDEN = Path(__file__).parents[3] / "golden"
TOKENS = {
    name: value
    for name, value in vars(resource_types).items()
    if isinstance(value, str) and name.isupper()
}
GRANTING = [row for row in by_token().values() if row.grants_on]


def goldens() -> set[str]:
    """Types that the committed stacks declare."""
    inventories = [yaml.safe_load(file.read_text()) for file in GOLDEN.glob("*.yaml")]
    return {type_ for inventory in inventories for type_ in inventory["counts"]}


def test_every_type_that_the_stacks_declare_has_a_row() -> None:
    assert len(goldens()) > 15
    assert goldens() <= set(by_token())


def test_every_token_that_code_knows_has_a_row() -> None:
    assert len(TOKENS) > 20
    assert set(TOKENS.values()) <= set(by_token())


def test_every_word_names_one_type() -> None:
    words = [row.word for row in by_token().values() if row.word]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("kind", ["Member", "Binding", "Policy"])
@pytest.mark.parametrize("row", GRANTING, ids=lambda row: row.grants_on)
def test_a_binding_and_a_policy_are_on_what_the_member_is_on(row: ResourceType, kind: str) -> None:
    token = row.type.replace("Member", kind)
    assert granting(token) is row
    assert resource_types.iam_kind(token) == kind


def test_of_an_unknown_type_nothing_is_known() -> None:
    row = find("gcp:pubsub/topic:Topic")
    assert (row.word, row.loss, row.policy) == ("", "", "")
    assert granting("gcp:pubsub/topicIAMMember:TopicIAMMember").grants_on == ""
