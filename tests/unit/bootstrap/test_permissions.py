"""What plan and deploy may do, against what the stacks are made of: both ways."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from localgcp.gcp import schema
from vertex_training.components.iam import RESOURCE_INPUTS
from vertex_training.foundation import conditions

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "infra" / "vertex_training"
#: Types whose calls the dynamic providers make.
DYNAMIC = {
    "pulumi-python:dynamic/vertex:CustomJob",
    "pulumi-python:dynamic/vertex:HyperparameterTuningJob",
    "pulumi-python:dynamic/vertex:ModelVersion",
    "pulumi-python:dynamic/vertex:EndpointCleanup",
    "pulumi-python:dynamic/vertex:EndpointTraffic",
    "pulumi-python:dynamic/vertex:JobSchedule",
    "pulumi-python:dynamic/vertex:Snapshot",
}


def declared_types() -> set[str]:
    """Types of all resources that the program can declare: ``gcp.SERVICE.Class``, and grants."""
    return DYNAMIC | declared_below(PROGRAM / "components") | set(RESOURCE_INPUTS)


def declared_below(folder: Path) -> set[str]:
    tokens = {
        tuple(re.split(r"[:/]", token)[i] for i in (1, 3)): token for token in schema.tokens()
    }
    found = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).split(".")
            if len(name) == 3 and name[0] == "gcp" and not name[2].endswith("Args"):
                found.add(tokens[(name[1], name[2])])
    return found


def previewed_types() -> set[str]:
    """Types in the inventories of the stacks as committed."""
    inventories = [yaml.safe_load(file.read_text()) for file in ROOT.glob("tests/golden/*.yaml")]
    assert inventories
    return {type_ for inventory in inventories for type_ in inventory.get("counts", ())}


def test_every_used_type_has_its_permissions() -> None:
    assert previewed_types() <= declared_types()
    made_by_bootstrap = declared_below(PROGRAM / "foundation") - declared_types()
    own = {need.type for need in conditions.needs().values() if need.where == "bootstrap"}
    assert own == made_by_bootstrap
    assert declared_types() == set(conditions.needs()) - own


def test_removed_type_removes_its_own_permissions() -> None:
    def all_of(types: set[str]) -> set[str]:
        return set(conditions.permissions_of(types, "read", "content", "write", "grant"))

    every = set(conditions.needs())
    secrets = {type_ for type_ in every if type_.startswith("gcp:secretmanager/")}
    gone = all_of(every) - all_of(every - secrets)
    assert gone == {permission for permission in all_of(every) if "secretmanager" in permission}
    assert "secretmanager.secrets.create" in gone


def test_setting_policies_is_held_apart_from_everything_else() -> None:
    types = conditions.needs()
    others = [
        p for p in conditions.permissions_of(types, "grant") if not p.endswith(".setIamPolicy")
    ]
    assert others == ["bigquery.datasets.update"]  # who reads a dataset is one of its settings
    deploying = conditions.permissions_of(types, "read", "content", "write")
    assert not any(p.endswith(".setIamPolicy") for p in deploying)
