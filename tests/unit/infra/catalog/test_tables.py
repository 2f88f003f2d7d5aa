"""The table of resource types, against the goldens, the provider's schema and the code's tokens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import vertex_training
from vertex_training import catalog
from vertex_training.catalog import machines, resource_types
from vertex_training.catalog.resource_types import ResourceType, by_token, granting
from vertex_training.customjob.rules.machines import RETIRED

ROWS = ("machines.yaml", "accelerators.yaml", "regions.yaml")


def rows():
    """Every row of the catalogue, prices included."""

    def inside(value):
        if isinstance(value, dict):
            if "source" in value:
                yield value
            for item in value.values():
                yield from inside(item)
        if isinstance(value, list):
            for item in value:
                yield from inside(item)

    for name in ROWS:
        yield from inside(catalog.load(name))


def test_every_row_has_a_source_that_is_explained_and_a_date():
    sources = catalog.load("sources.yaml")
    found = list(rows())
    assert len(found) > 250
    for row in found:
        assert row["date"]
        assert any(key in sources for key in row["source"])


def test_every_accelerator_of_a_machine_type_is_known():
    for shape in machines.machine_types().values():
        assert set(shape.accelerators) <= set(machines.accelerators())
        assert shape.regions <= machines.regions()
        assert shape.accelerator_required == bool(shape.accelerators) or shape.family == "n1"


def test_a_price_says_for_which_region_and_since_when():
    price = machines.machine_types()["a3-megagpu-8g"].price
    assert price is not None
    assert (price.region, price.date) == ("us-east4", "2026-07-30")
    assert machines.machine_types()["a4-highgpu-8g"].price is None
    assert catalog.load("machines.yaml")["types"]["a4-highgpu-8g"]["price"] == "no price"


def test_the_end_of_an_accelerators_support_is_the_one_that_the_rule_refuses_from():
    found = machines.accelerators()
    ended = {name for name, row in found.items() if "end of support" in row.status}
    assert ended == set(RETIRED)
    assert all(f"end of support {RETIRED[name]}" in found[name].status for name in ended)


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
    return {type_ for inventory in inventories for type_ in inventory.get("counts", ())}


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
