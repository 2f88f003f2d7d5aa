"""Resources, links and points of experiments as rows: what goes with what, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.experiments.records import ExperimentTable, InstanceTable
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store, project_number

PROJECT = "local-training"
PLACE = f"projects/{project_number(PROJECT)}/locations/us-central1"


@pytest.fixture
def table(tmp_path: Path) -> ExperimentTable:
    return ExperimentTable(tmp_path / "cloud.sqlite")


def test_links_are_of_a_kind_and_found_from_both_ends(table: ExperimentTable) -> None:
    table.link("k", [("a", "x"), ("a", "y"), ("b", "x")])
    table.link("k", [("a", "x")], {"new": 1})
    table.link("other", [("a", "x")])
    assert table.links("k") == [("a", "x", {"new": 1}), ("a", "y", {}), ("b", "x", {})]
    assert table.links("k", source="a") == [("a", "x", {"new": 1}), ("a", "y", {})]
    assert table.links("k", target="x") == [("a", "x", {"new": 1}), ("b", "x", {})]
    assert table.links("k", source="b", target="y") == []
    table.unlink("k", [("a", "x"), ("none", "x"), ("b", "y")])
    assert table.links("k") == [("a", "y", {}), ("b", "x", {})]
    assert table.links("other") == [("a", "x", {})]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    return made


def test_instances_are_listed_by_their_place(store: Store) -> None:
    found = InstanceTable(store)
    here, there = (f"{PLACE}/tensorboards/1", "projects/5/locations/us-central1/tensorboards/1")
    for name in (here, there):
        found.put({"name": name})
    row = store.get(TENSORBOARD, there)
    assert row is not None
    assert (row.project, row.inputs, row.outputs) == ("5", {}, {"name": there})  # not known here
    assert found.list(f"{PLACE}/tensorboards") == [{"name": here}]
    assert found.list(PLACE) == []
    found.delete(here)
    assert found.list(f"{PLACE}/tensorboards") == []
