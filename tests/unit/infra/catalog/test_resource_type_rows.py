"""What follows from the columns of a row of the table of resource types, with a table of four."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import yaml

from vertex_training import catalog
from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ResourceType

FILES = yaml.safe_load(Path(__file__).with_name("small_catalogue.yaml").read_text("utf-8"))
BOX, ON_SHELF = "gcp:boxes/box:Box", "gcp:shelves/shelfIamMember:ShelfIamMember"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, ResourceType]:
    # Beside the cache, so that rows which others hold stay the same objects.
    afresh = functools.cache(resource_types.by_token.__wrapped__)
    monkeypatch.setattr(resource_types, "by_token", afresh)
    monkeypatch.setattr(catalog, "load", FILES.__getitem__)
    return dict(resource_types.by_token())


@pytest.mark.parametrize(
    ("inputs", "name"),
    [
        ({"shelf": "s", "rack": "r"}, "racks/r/shelves/s"),
        ({"shelf": "racks/q/shelves/s", "rack": "r"}, "racks/q/shelves/s"),
    ],
)
def test_a_policy_that_is_named_in_full_has_that_name(
    table: dict[str, ResourceType], inputs: dict[str, str], name: str
) -> None:
    assert table[ON_SHELF].policy_name(inputs) == name


def test_a_grant_is_found_by_its_policy_word_and_input(
    table: dict[str, ResourceType],
) -> None:
    assert resource_types.policy_addresses() == [
        (re.compile("boxes/[^/]+"), "https://boxes.googleapis.com/v1/"),
        (re.compile("racks/[^/]+/shelves/[^/]+"), "https://shelves.googleapis.com/v1/"),
    ]
    assert resource_types.words_of_data() == {"box"}
    assert resource_types.words_of_inputs() == {"box": "box", "shelf": "rack"}
