"""Roles of a project: ids and permissions that IAM refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    """A local project whose IAM API is on."""
    local.enable("iam")
    return local


def test_a_role_is_named_by_its_project_and_its_id(ready: Plugin) -> None:
    id_, made = ready.create(ROLE, _role())

    assert id_ == made["name"] == "projects/local-p1/roles/vertex.jobReader"
    assert (made["project"], made["deleted"]) == ("local-p1", False)


@pytest.mark.parametrize("role", ["ab", "job-reader", "job reader", "r" * 65])
def test_an_id_that_iam_refuses_is_refused(ready: Plugin, role: str) -> None:
    text = refused(lambda: ready.create(ROLE, _role(roleId=role)))

    assert "Error 400" in text
    assert role in text


@pytest.mark.parametrize(
    "permission", ["aiplatform", "aiplatform.customJobs", "aiplatform.customJobs.*", "a.b.c.d"]
)
def test_a_permission_that_iam_refuses_is_refused_in_a_new_role_and_in_an_old_one(
    ready: Plugin, permission: str
) -> None:
    wrong = _role(permissions=["aiplatform.customJobs.get", permission])
    text = refused(lambda: ready.create(ROLE, wrong))
    assert "Error 400" in text
    assert permission in text

    id_, olds = ready.create(ROLE, _role())
    assert permission in refused(lambda: ready.update(ROLE, id_, wrong, olds))


def test_a_role_that_exists_cannot_be_created_again(ready: Plugin) -> None:
    ready.create(ROLE, _role())

    text = refused(lambda: ready.create(ROLE, _role()))

    assert "Error 409" in text
    assert "vertex.jobReader in projects/local-p1" in text


def _role(**changes: Any) -> dict[str, Any]:
    role = {"roleId": "vertex.jobReader", "title": "Reader of jobs"}
    return {**role, "permissions": ["aiplatform.customJobs.get"], **changes}
