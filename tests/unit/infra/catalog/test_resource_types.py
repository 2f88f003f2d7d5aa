"""The table of resource types, against the goldens, the provider's schema and the code's tokens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import vertex_training
from vertex_training import catalog
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


def declared_in_code() -> set[str]:
    """Types that the program's components and dynamic resources create, from their source."""
    source = "\n".join(
        file.read_text() for file in Path(vertex_training.__file__).parent.rglob("*.py")
    )
    made = {
        f"gcp:{module}/{name[0].lower()}{name[1:]}:{name}"
        for module, name in re.findall(r"\bgcp\.(\w+)\.([A-Z]\w+)\(", source)
        if not name.endswith("Args")
    }
    dynamic = re.findall(r"module=\"vertex\", name=\"(\w+)\"", source)
    return made | {f"pulumi-python:dynamic/vertex:{name}" for name in dynamic}


def test_every_type_that_the_program_creates_has_a_row() -> None:
    found = declared_in_code()
    assert {resource_types.ENDPOINT_CLEANUP, resource_types.BUDGET, resource_types.JOB} <= found
    assert found <= set(by_token())


@pytest.mark.parametrize("row", catalog.load("resource_types.yaml"), ids=lambda row: row["type"])
def test_every_row_says_what_becomes_of_one_that_a_state_has_lost(row: dict[str, Any]) -> None:
    """Each new type has to decide it: import it, adopt it, create it again, or name it."""
    assert ("import_id" in row) != ("recovery" in row)
    is_listed = "{id}" in row.get("import_id", "")
    assert is_listed == ("listed_at" in row) == ("same" in row)
    assert row.get("recovery", "adopted") in ("adopted", "repeated", "restarted", "unsought")
    # What a stack creates is looked for, or up takes care of it.
    if row["type"] in declared_in_code() and row.get("where") != "bootstrap":
        assert row.get("recovery") != "unsought"
