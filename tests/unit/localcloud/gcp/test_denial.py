"""Deny policies and tags: what the services refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

POLICY = "gcp:iam/denyPolicy:DenyPolicy"
KEY, VALUE, BINDING = (f"gcp:tags/tag{kind}:Tag{kind}" for kind in ("Key", "Value", "Binding"))
PARENT = "cloudresourcemanager.googleapis.com%2Fprojects%2Flocal-p1"


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    """A local project whose APIs are on."""
    local.enable("iam")
    local.enable("cloudresourcemanager")
    return local


def _policy(**rule: Any) -> dict[str, Any]:
    permissions = ["iam.googleapis.com/roles.update", "iam.googleapis.com/serviceAccountKeys.*"]
    principals = ["principal://iam.googleapis.com/projects/-/serviceAccounts/a@b.com"]
    denied = {"deniedPermissions": permissions, "deniedPrincipals": principals} | rule
    return {"name": "no-roles", "parent": PARENT, "rules": [{"denyRule": denied}]}


def _condition(expression: str) -> dict[str, Any]:
    return _policy(denialCondition={"expression": expression})


@pytest.mark.parametrize(
    "wrong",
    [
        _policy() | {"parent": "projects/local-p1"},
        _policy() | {"name": "A"},
        _policy(deniedPermissions=["iam.roles.update"]),
        _policy(deniedPermissions=["iam.googleapis.com/*"]),
        _policy(deniedPrincipals=["serviceAccount:a@b.com"]),
        _condition("resource.name == 'x'"),
    ],
)
def test_what_the_service_refuses_is_refused_in_a_new_policy_and_in_an_old_one(
    ready: Plugin, wrong: dict[str, Any]
) -> None:
    assert "Error 400" in refused(lambda: ready.create(POLICY, wrong))
    if wrong["parent"] == PARENT and wrong["name"] == "no-roles":
        id_, olds = ready.create(POLICY, _policy())
        assert "Error 400" in refused(lambda: ready.update(POLICY, id_, wrong, olds))
