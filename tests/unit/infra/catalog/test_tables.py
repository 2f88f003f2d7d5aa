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
from vertex_training.catalog.resource_types import ResourceType, by_token, find, granting
from vertex_training.customjob.rules.compute.machines import RETIRED

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


def test_families_give_what_their_types_do_not_say():
    shape = machines.machine_types()["a2-highgpu-8g"]
    assert shape.accelerators == {"NVIDIA_TESLA_A100": (8,)}
    assert shape.flex_start
    assert "us-central1" in shape.regions
    assert machines.machine_types()["ct5lp-hightpu-4t"].topologies[0] == "2x2"


def test_the_refresh_script_writes_what_it_was_given():
    from tools.generate.catalogue import Facts

    facts = {
        "sources": {"page": "https://example.com (copy of 2026-01-02)"},
        "generated": "2026-01-03",
        "training_regions": ["us-central1"],
        "accelerators": {"NVIDIA_L4": {"regions": ["us-central1"], "source": "page"}},
        "families": {"g2": {"accelerator_required": True, "source": "page"}},
        "machine_types": [
            {"name": "g2-standard-4", "family": "g2", "source": "page",
             "accelerators": [{"type": "NVIDIA_L4", "counts": [1]}]}
        ],
        "not_supported": [{"name": "c2d", "reason": "no", "source": "page"}],
        "boot_disk": {"types": ["pd-ssd"], "size_gb": {"min": 1, "max": 2}, "source": "page"},
        "vertex_management_fee": {"ratio_over_compute_list": 1.15, "basis": "one"},
    }  # fmt: skip
    facts["sources"]["n1-vertex-price"] = "seen 2026-02-03"
    files = Facts(facts).files()
    row = yaml.safe_load(files["machines.yaml"])["types"]["g2-standard-4"]
    assert row["price"] == "no price"
    assert row["date"] == "2026-01-02"
    assert yaml.safe_load(files["regions.yaml"])[0]["region"] == "us-central1"


def test_the_end_of_an_accelerators_support_is_the_one_that_the_rule_refuses_from():
    found = machines.accelerators()
    ended = {name for name, row in found.items() if "end of support" in row.status}
    assert ended == set(RETIRED)
    assert all(f"end of support {RETIRED[name]}" in found[name].status for name in ended)


def test_an_accelerator_without_a_caution_has_none():
    assert machines.accelerators()["NVIDIA_L4"].status == ""


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
