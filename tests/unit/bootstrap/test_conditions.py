"""The roles of ``deploy``, against what the stacks grant and what IAM's conditions can ask."""

from __future__ import annotations

import re

import pytest

from tests.unit.bootstrap.test_program import PROD
from vertex_training.foundation import conditions
from vertex_training.foundation.conditions import RolePart

#: https://docs.cloud.google.com/iam/docs/conditions-overview#limitations
MAX_OPERATORS = 12


@pytest.fixture
def parts() -> dict[str, RolePart]:
    settings = PROD.model_copy(update={"datasets": [f"clicks_{number}" for number in range(10)]})
    return {part.name: part for part in conditions.deploy_roles(settings, conditions.needs())}


def test_only_listed_datasets_can_be_granted_on(parts: dict[str, RolePart]) -> None:
    condition = parts["grant_datasets"].condition
    assert condition.startswith("resource.type == 'bigquery.googleapis.com/Dataset' && (")
    assert re.findall(r"resource\.name == '([^']+)'", condition) == [
        f"projects/acme-ml-prod/datasets/clicks_{number}" for number in range(10)
    ]
    without = conditions.deploy_roles(PROD, conditions.needs())
    assert not [part for part in without if "bigquery.datasets.update" in part.permissions]


def lists(part: RolePart) -> list[str]:
    return re.findall(r"hasOnly\(\[(.*?)\]\)", part.condition)


def test_conditions_stay_within_the_limits_of_the_service(parts: dict[str, RolePart]) -> None:
    for part in parts.values():
        assert len(re.findall(r"&&|\|\||!(?!=)", part.condition)) <= MAX_OPERATORS
        assert all(each.count(",") < conditions.MAX_ROLES for each in lists(part))
        assert re.fullmatch(r"[a-z_]{3,}", part.name)
