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


def test_a_resource_is_got_by_its_name_and_listed_by_its_parent(table: ExperimentTable) -> None:
    a, b, below = ({"name": name, "x": [1]} for name in ("p/as/1", "p/as/2", "p/as/1/bs/1"))
    for each in (a, b, below):
        table.put(each)
    assert (table.get("p/as/1"), table.get("p/as/3")) == (a, None)
    assert (table.list("p/as"), table.list("p"), table.list("p/as/1/bs")) == ([a, b], [], [below])
    table.put({"name": "p/as/1"})
    assert table.get("p/as/1") == {"name": "p/as/1"}


def test_a_resource_goes_with_its_links_and_points_and_all_below_it(table: ExperimentTable) -> None:
    names = ("p/1", "p/1/bs/1", "p/10", "p/1-a", "p/0")
    for name in names:
        table.put({"name": name})
        table.write_points(name, [{"step": "1"}])
    table.link("k", [(name, f"to {name}") for name in names])
    table.link("k", [(f"from {name}", name) for name in names])
    table.delete("p/1")
    left = ["p/10", "p/1-a", "p/0"]
    assert [name for name in names if table.get(name)] == left
    assert [name for name in names if table.points(name)] == left
    assert sorted(table.links("k")) == sorted(
        [(name, f"to {name}", {}) for name in left] + [(f"from {name}", name, {}) for name in left]
    )


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


def test_points_are_in_the_order_of_their_steps(table: ExperimentTable) -> None:
    table.write_points("s", [{"step": "10"}, {"step": "9"}, {"first": True}])
    table.write_points("s", [{"step": "9", "new": True}])
    table.write_points("s/below", [{"step": "1"}])
    assert table.points("s") == [{"first": True}, {"step": "9", "new": True}, {"step": "10"}]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    return made


def test_an_instance_of_a_stack_keeps_what_only_the_plugin_notes(store: Store) -> None:
    found, name = InstanceTable(store), f"{PLACE}/tensorboards/7"
    noted = {"displayName": "d", "runCount": "", "blobStoragePathPrefix": None, "isDefault": False}
    store.put(TENSORBOARD, name, PROJECT, {"displayName": "d"}, noted)
    assert found.get(name) == {"name": name, "displayName": "d", "isDefault": False}
    found.put({"name": name, "displayName": "new"})
    row = store.get(TENSORBOARD, name)
    assert row is not None
    assert (row.project, row.inputs) == (PROJECT, {"displayName": "d"})
    assert row.outputs == {**noted, "name": name, "displayName": "new"}
    assert found.get(f"{PLACE}/tensorboards/8") is None


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
