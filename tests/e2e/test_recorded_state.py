"""Tests that the program reads states of earlier versions and submits no job again."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from localgcp.home import Home
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobTable
from tests.conftest import ROOT, Checkout, running_checkout
from tests.e2e import recorded_state

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RECORDED = sorted(recorded_state.FOLDER.glob("*.json"))
#: What the changelog says that an update from a version changes: resource types, and how often.
CHANGES: dict[str, dict[str, int]] = {}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("recorded")
    if os.environ.get("RECORD"):
        text = (ROOT / "pyproject.toml").read_text()
        version = tomllib.loads(text)["project"]["version"].rpartition(".")[0]
        with running_checkout(folder / "recorded") as made:
            recorded_state.record(made, version)
    with running_checkout(folder / "checkout") as made:
        recorded_state.lay_over(made)
        yield made


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_state_changes_as_the_changelog_says(stack: Checkout, file: Path) -> None:
    recorded_state.bring_back(stack, file)
    plan = stack.preview("local")
    changed = [step for step in plan["steps"] if step["op"] != "same"]
    types = [step["newState"]["type"] for step in changed]
    assert {step["op"] for step in changed} <= {"update"}
    assert {each: types.count(each) for each in types} == CHANGES.get(file.stem, {})
    stack.shell("pulumi up -s local --yes --skip-preview")
    database = Home(stack.home, stack.path).database
    assert JobTable(database).list() == []
    assert TuningTable(database).list() == []
    assert not plan_of_changes(stack)
    ids = {each["urn"]: each.get("id") for each in recorded_state.resources(file)}
    exported = json.loads(stack.shell("pulumi stack export -s local").stdout)
    assert {each["urn"]: each.get("id") for each in exported["deployment"]["resources"]} == ids


def plan_of_changes(stack: Checkout) -> list[str]:
    """Return the resources that a preview would change."""
    steps = stack.preview("local")["steps"]
    return [step["urn"] for step in steps if step["op"] != "same"]


@pytest.mark.usefixtures("stack")
def test_each_earlier_version_has_a_recorded_state() -> None:
    history = (ROOT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## \[(\d+\.\d+)\.\d+\]", history, re.MULTILINE)
    recorded = {file.stem for file in recorded_state.FOLDER.glob("*.json")}
    assert recorded
    assert {*released} <= recorded
