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


def test_a_policy_is_named_by_its_attachment_point(ready: Plugin) -> None:
    id_, made = ready.create(POLICY, _policy())
    assert id_ == f"{PARENT}/no-roles"
    assert made["etag"]
    changed = ready.update(POLICY, id_, _condition("!resource.matchTag('p/k', 'v')"), made)
    assert changed["etag"] != made["etag"]


@pytest.mark.parametrize(
    "wrong",
    [
        _policy() | {"parent": "projects/local-p1"},
        _policy() | {"name": "A"},
        _policy(deniedPermissions=["iam.roles.update"]),
        _policy(deniedPermissions=["iam.googleapis.com/*"]),
        _policy(deniedPrincipals=["serviceAccount:a@b.com"]),
        _policy(exceptionPrincipals=["user:a@b.com"]),
        _condition("resource.name == 'x'"),
        _condition("resource.matchTag('p/k', 'v') || request.time < timestamp('2030')"),
    ],
)
def test_what_the_service_refuses_is_refused_in_a_new_policy_and_in_an_old_one(
    ready: Plugin, wrong: dict[str, Any]
) -> None:
    assert "Error 400" in refused(lambda: ready.create(POLICY, wrong))
    if wrong["parent"] == PARENT and wrong["name"] == "no-roles":
        id_, olds = ready.create(POLICY, _policy())
        assert "Error 400" in refused(lambda: ready.update(POLICY, id_, wrong, olds))


def test_a_tag_is_bound_to_an_account_that_exists(ready: Plugin) -> None:
    key, _ = ready.create(KEY, {"parent": "projects/local-p1", "shortName": "k"})
    value, made = ready.create(VALUE, {"parent": key, "shortName": "v"})
    assert key.startswith("tagKeys/")
    assert made["namespacedName"] == "local-p1/k/v"
    assert f"tagValues/{made['name']}" == value
    _, account = ready.create("gcp:serviceaccount/account:Account", {"accountId": "ci-plan-p1"})
    parent = "//iam.googleapis.com/projects/local-p1/serviceAccounts"
    for name in (account["uniqueId"], account["email"]):
        id_, bound = ready.create(BINDING, {"parent": f"{parent}/{name}", "tagValue": value})
        assert id_ == f"tagBindings/{bound['name']}"
        assert id_.startswith("tagBindings/%2F%2Fiam.googleapis.com%2Fprojects%2Flocal-p1%2F")
        for given in (id_, bound["name"]):
            assert ready.read(BINDING, given).id == id_
    missing = {"parent": f"{parent}/nobody@x.com", "tagValue": value}
    assert "nobody@x.com was not found" in refused(lambda: ready.create(BINDING, missing))


def test_nothing_hangs_on_a_tag_that_does_not_exist(ready: Plugin) -> None:
    wrong = {"parent": "tagKeys/1", "shortName": "v"}
    text = refused(lambda: ready.create(VALUE, wrong))
    assert "Error creating TagValue: " in text
    assert "Error 404" in text
    wrong = {"parent": "//x.googleapis.com/projects/local-p1/y/z", "tagValue": "tagValues/1"}
    text = refused(lambda: ready.create(BINDING, wrong))
    assert "Error creating TagBinding: " in text
    assert "Error 404" in text


def test_a_tags_key_is_in_the_project_that_it_names(ready: Plugin) -> None:
    """The API is on in the provider's own project only."""
    key = {"parent": "projects/local-other", "shortName": "k"}
    assert "project local-other" in refused(lambda: ready.create(KEY, key))
