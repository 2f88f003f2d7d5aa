"""The roles of ``deploy``, against what the stacks grant and what IAM's conditions can ask."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.bootstrap.test_program import PROD
from vertex_training.foundation import conditions, permissions
from vertex_training.foundation.conditions import RolePart

ROOT = Path(__file__).parents[3]
#: https://docs.cloud.google.com/iam/docs/conditions-overview#limitations
MAX_OPERATORS = 12


@pytest.fixture
def parts() -> dict[str, RolePart]:
    settings = PROD.model_copy(update={"datasets": [f"clicks_{number}" for number in range(10)]})
    return {part.name: part for part in conditions.deploy_roles(settings, permissions.needs())}


def test_only_listed_datasets_can_be_granted_on(parts: dict[str, RolePart]) -> None:
    condition = parts["grant_datasets"].condition
    assert condition.startswith("resource.type == 'bigquery.googleapis.com/Dataset' && (")
    assert re.findall(r"resource\.name == '([^']+)'", condition) == [
        f"projects/acme-ml-prod/datasets/clicks_{number}" for number in range(10)
    ]
    without = conditions.deploy_roles(PROD, permissions.needs())
    assert not [part for part in without if "bigquery.datasets.update" in part.permissions]


def listed(part: RolePart) -> list[str]:
    return [role for each in lists(part) for role in re.findall(r"'([^']+)'", each)]


def lists(part: RolePart) -> list[str]:
    return re.findall(r"hasOnly\(\[(.*?)\]\)", part.condition)


def test_every_grant_is_limited_to_the_roles_that_stacks_grant_on_that_type(
    parts: dict[str, RolePart],
) -> None:
    granted: dict[str, set[str]] = {}
    for file in ROOT.glob("tests/golden/*.yaml"):
        inventory: dict[str, Any] = yaml.safe_load(file.read_text())
        for resource in inventory["resources"].values():
            need = permissions.needs().get(resource["type"])
            if need and need.grant and need.where == "project":
                permission = min(need.permissions("grant"))
                granted.setdefault(permission, set()).add(resource["role"])
    assert granted
    by_permission = {part.permissions[0]: part for name, part in parts.items() if "grant" in name}
    for permission, roles in granted.items():
        if permission.split(".")[0] in conditions.LIMITED:
            assert roles <= set(listed(by_permission[permission])), permission


def test_no_role_is_given_away_on_the_project_that_belongs_on_one_resource(
    parts: dict[str, RolePart],
) -> None:
    on_project = set(listed(parts["grant_projects"]))
    assert not on_project & {
        "roles/iam.serviceAccountUser",
        "roles/secretmanager.secretAccessor",
        "roles/storage.objectUser",
        "roles/storage.objectViewer",
    }
    assert listed(parts["grant_serviceaccounts"]) == ["roles/iam.serviceAccountUser"]


def test_a_role_has_permissions_of_services_that_know_the_attributes_of_its_condition(
    parts: dict[str, RolePart],
) -> None:
    """A condition that asks for a missing attribute grants nothing at all."""
    has_name = {"storage", "secretmanager", "cloudkms", "bigquery"}
    for part in parts.values():
        services = {permission.split(".")[0] for permission in part.permissions}
        if "resource.name" in part.condition:
            assert len(services) == 1, part.name
            assert services <= has_name, part.name
        if "resource.type" in part.condition:
            assert services <= has_name | {"resourcemanager"}, part.name
        if "modifiedGrantsByRole" in part.condition:
            assert services <= conditions.LIMITED, part.name


def test_conditions_stay_within_the_limits_of_the_service(parts: dict[str, RolePart]) -> None:
    for part in parts.values():
        assert len(re.findall(r"&&|\|\||!(?!=)", part.condition)) <= MAX_OPERATORS
        assert all(each.count(",") < conditions.MAX_ROLES for each in lists(part))
        assert re.fullmatch(r"[a-z_]{3,}", part.name)


def test_what_grants_cannot_do_anything_else(parts: dict[str, RolePart]) -> None:
    for name, part in parts.items():
        granting = [p for p in part.permissions if p.endswith(".setIamPolicy")]
        # Who reads a dataset is one of its settings: both permissions, on the listed ones alone.
        beside = ["bigquery.datasets.update"] if name == "grant_datasets" else []
        assert [*granting, *beside] == (
            list(part.permissions) if name.startswith("grant_") else []
        ), name


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("grant_projects", "cloudresourcemanager.googleapis.com/Project"),
        ("grant_secrets", "secretmanager.googleapis.com/Secret"),
        ("grant_cryptokeys", "cloudkms.googleapis.com/CryptoKey"),
        ("grant_buckets", "storage.googleapis.com/Bucket"),
    ],
)
def test_a_right_to_grant_holds_for_one_type_of_resource(
    parts: dict[str, RolePart], name: str, type_: str
) -> None:
    assert f"resource.type == '{type_}'" in parts[name].condition
