"""Rights that no IAM grant gives: access lists, keys, denials that go, addresses of machines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import grants, report
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.parts import Finding, code
from vertex_training_cli.review.reachability import (
    reachability_changes,
    unjudged_types,
)

DATASET = "gcp:bigquery/dataset:Dataset"
ACL = "gcp:storage/bucketAccessControl:BucketAccessControl"
KEY, HMAC = "gcp:serviceaccount/key:Key", "gcp:storage/hmacKey:HmacKey"
API_KEY = "gcp:projects/apiKey:ApiKey"
DENY = "gcp:iam/denyPolicy:DenyPolicy"
MACHINE = "gcp:compute/instance:Instance"
KEYS = "new account keys"
KIM = {"role": "READER", "userByEmail": "kim@example.com"}
VIEW = {"projectId": "acme", "datasetId": "reports", "tableId": "daily"}
OWNERS = {"role": "OWNER", "specialGroup": "projectOwners"}


def built(*told: Any) -> report.ReviewReport:
    return report.build(plans.plan(*told), source="here")


def answer(found: report.ReviewReport, question: str) -> tuple[str, ...]:
    return tuple(answers(found, code)[question])


def dataset(*entries: Any) -> dict[str, Any]:
    return {"datasetId": "events", "accesses": list(entries)}


def test_who_owns_a_dataset_administers_it_but_for_the_projects_owners() -> None:
    sam = {"role": "OWNER", "userByEmail": "sam@example.com"}
    plan = plans.plan(plans.create(DATASET, "events", **dataset(OWNERS, sam)))
    found = grants.administrators(plan)
    assert [each.member for each in found] == ["user:sam@example.com"]
    held = plans.step("same", DATASET, "held", *[dataset(KIM)] * 2)
    authorized = ({"view": VIEW}, {"routine": VIEW}, {"dataset": {"dataset": VIEW}})
    new = plans.plan(held, plans.create(DATASET, "d", **dataset(OWNERS, *authorized)))
    assert len(grants.gained(new)) == 4
    outsiders = [each.member.partition(":")[0] for each in grants.strangers(new)]
    assert outsiders == ["dataset", "routine", "view"]  # of project acme


def test_an_acl_on_a_new_bucket_says_which_by_its_own_name() -> None:
    acl = plans.create(ACL, "out-readers", bucket=WIRE_UNKNOWN, entity=WIRE_UNKNOWN, role="READER")
    [binding] = built(acl).gained
    assert (binding.member, binding.target) == ("[known after apply]", "new (grant out-readers)")


@pytest.mark.parametrize(
    ("type_", "inputs"),
    [
        (KEY, {"serviceAccountId": "trainer@acme"}),
        (HMAC, {"serviceAccountEmail": "trainer@acme"}),
        (API_KEY, {"serviceAccountEmail": "trainer@acme"}),
    ],
)
def test_a_key_that_is_made_lets_whoever_has_it_be_the_account(type_: str, inputs: Any) -> None:
    found = built(plans.create(type_, "ci-key", **inputs))
    words = "new account keys: `ci-key` of `trainer@acme`"
    assert answer(found, "who gains a right") == (words,)
    assert words in verdict(found, code)
    assert found.unjudged == ()
    assert found.risky
    anew = plans.plan(plans.step("replace", type_, "ci-key", inputs, inputs | {"n": 1}))
    assert [each.what for each in plans.findings(anew, KEYS)] == ["ci-key"]
    for step in (
        plans.step("update", type_, "ci-key", inputs, inputs | {"n": 1}),
        plans.delete(type_, "ci-key", **inputs),
    ):
        assert plans.findings(plans.plan(step), KEYS) == []


def test_an_api_key_is_a_key_of_the_account_that_it_is_bound_to() -> None:
    free, bound = {"name": "k"}, {"name": "k", "serviceAccountEmail": "trainer@acme"}
    for step in (
        plans.create(API_KEY, "k", **free),
        plans.step("update", API_KEY, "k", bound, free),
    ):
        found = plans.plan(step)
        assert plans.findings(found, KEYS) == []
        assert unjudged_types(found) == (API_KEY,)
    later = plans.plan(plans.step("update", API_KEY, "k", free, bound))
    assert plans.findings(later, KEYS) == [Finding("trainer@acme", "k")]


def denial(*permissions: str, who: Any = ("principal://ci",), when: str = "", **more: Any) -> Any:
    rule: dict[str, Any] = {
        "deniedPrincipals": list(who),
        "deniedPermissions": list(permissions),
        **more,
    }
    if when:
        rule["denialCondition"] = {"title": "t", "expression": when}
    return {"denyRule": rule}


def rules(*each: Any) -> dict[str, Any]:
    return {"parent": "x", "rules": list(each)}


def test_a_denial_that_moves_or_stays_in_the_cloud_is_none_that_goes() -> None:
    moved = plans.plan(
        plans.delete(DENY, "old", **rules(denial("a"))),
        plans.create(DENY, "new", **rules(denial("a"))),
    )
    kept = plans.delete(DENY, "old", **rules(denial("a")))
    kept["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    assert grants.lifted(moved) == grants.lifted(plans.plan(kept)) == []
    found = built(plans.delete(DENY, "old", **rules(denial("a"))))
    words = "permissions no longer denied to: `principal://ci` (`a`)"
    assert answer(found, "who gains a right") == (words,)


@pytest.mark.parametrize("given", [{"accessConfigs": [{}]}, {"ipv6AccessConfigs": [{"x": 1}]}])
def test_a_machine_with_an_external_address_reaches_the_internet(given: Any) -> None:
    closed = {"name": "shell", "networkInterfaces": [{"network": "n"}]}
    opened = {"name": "shell", "networkInterfaces": [{"network": "n"}, {"network": "m", **given}]}
    what = "machine shell to the internet, by an external address"
    for step, changes in (
        (plans.create(MACHINE, "m", **opened), [("opens", what)]),
        (plans.create(MACHINE, "m", **closed), []),
        (plans.step("update", MACHINE, "m", closed, opened), [("opens", what)]),
        (plans.step("update", MACHINE, "m", opened, closed), [("closes", what)]),
        (plans.delete(MACHINE, "m", **opened), [("closes", what)]),
        (plans.step("update", MACHINE, "m", opened, opened | {"n": 1}), []),
    ):
        assert [(e.verb, e.what) for e in reachability_changes(plans.plan(step))] == changes


def test_types_of_which_nobody_knows_what_they_open_are_named() -> None:
    run, web = "gcp:cloudrunv2/service:Service", "gcp:appengine/application:Application"
    found = built(
        plans.create(run, "a"),
        plans.create(run, "b"),
        plans.step("update", web, "c", {"n": 1}, {"n": 2}),
        plans.delete("aws:iam/user:User", "gone"),
        plans.create(plans.BUCKET, "storage-data", name="x", publicAccessPrevention="enforced"),
        plans.create("gcp:cloudrunv2/serviceIamMember:ServiceIamMember", "m", role="r", member="m"),
        plans.create("gcp:dns/managedZone:ManagedZone", "z"),
        plans.create("gcp:organizations/iAMCustomRole:IAMCustomRole", "r"),
        plans.create(ACL, "acl"),
    )
    assert found.unjudged == (web, run)
    assert answer(found, "what was not looked at") == (
        f"access that a `{web}` grants",
        f"access that a `{run}` grants",
    )
