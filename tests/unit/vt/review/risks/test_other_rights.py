"""Rights that no IAM grant gives: access lists, keys, denials that go, addresses of machines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import grants, report
from vertex_training_cli.review.escaping import code
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.reachability import (
    opened_to_everybody,
    reachability_changes,
    unjudged_types,
)

DATASET = "gcp:bigquery/dataset:Dataset"
ACL = "gcp:storage/bucketAccessControl:BucketAccessControl"
OBJECT_ACL = "gcp:storage/objectAccessControl:ObjectAccessControl"
KEY, HMAC = "gcp:serviceaccount/key:Key", "gcp:storage/hmacKey:HmacKey"
API_KEY = "gcp:projects/apiKey:ApiKey"
DENY = "gcp:iam/denyPolicy:DenyPolicy"
MACHINE = "gcp:compute/instance:Instance"
KIM = {"role": "READER", "userByEmail": "kim@example.com"}
VIEW = {"projectId": "acme", "datasetId": "reports", "tableId": "daily"}
OWNERS = {"role": "OWNER", "specialGroup": "projectOwners"}


def built(*told: Any) -> report.ReviewReport:
    return report.build(plans.plan(*told), source="here")


def answer(found: report.ReviewReport, question: str) -> tuple[str, ...]:
    return next(each.phrases for each in answers(found, code) if each.question == question)


def dataset(*entries: Any) -> dict[str, Any]:
    return {"datasetId": "events", "accesses": list(entries)}


def test_an_entry_of_a_datasets_access_list_is_a_right() -> None:
    step = plans.step("update", DATASET, "events", dataset(OWNERS), dataset(OWNERS, KIM))
    found = built(step)
    [binding] = found.gained
    assert (binding.member, binding.role, binding.kind, binding.target) == (
        *("user:kim@example.com", "roles/bigquery.dataViewer"),
        *("dataset", "events"),
    )
    assert found.lost == ()
    assert answer(found, "whose data becomes readable") == (
        "`user:kim@example.com` reads dataset `events`",
    )
    assert [each.name for each in found.changes] == ["events"]
    assert binding.reason == "a team's own code grants it"
    assert (grants.administrators(plans.plan(step)), found.unjudged) == ([], ())
    gone = built(plans.step("update", DATASET, "events", dataset(OWNERS, KIM), dataset(OWNERS)))
    assert [each.member for each in gone.lost] == ["user:kim@example.com"]
    [lost] = built(plans.delete(DATASET, "events", **dataset())).destroyed
    assert (lost.name, lost.takes) == ("events", "its tables")


def test_who_owns_a_dataset_administers_it_but_for_the_projects_owners() -> None:
    sam = {"role": "OWNER", "userByEmail": "sam@example.com"}
    plan = plans.plan(plans.create(DATASET, "events", **dataset(OWNERS, sam)))
    found = grants.administrators(plan)
    assert [each.member for each in found] == ["user:sam@example.com"]
    held = plans.step("same", DATASET, "held", *[dataset(KIM)] * 2)
    authorized = ({"view": VIEW}, {"routine": VIEW}, {"dataset": {"dataset": VIEW}})
    new = plans.plan(held, plans.create(DATASET, "d", **dataset(OWNERS, *authorized)))
    assert len(grants.gained(new)) == 4
    assert grants.strangers(new) == []


def test_an_acl_for_everybody_opens_the_bucket_or_the_object() -> None:
    plan = plans.plan(
        plans.create(ACL, "a", bucket="out", entity="allUsers", role="READER"),
        plans.create(
            OBJECT_ACL, "o", bucket="out", object="x.txt", entity="allUsers", role="READER"
        ),
        plans.delete(ACL, "gone", bucket="old", entity="allUsers", role="READER"),
    )
    assert opened_to_everybody(plan) == ("bucket out", "object out/x.txt")
    assert [(each.verb, each.what, each.danger) for each in reachability_changes(plan)] == [
        ("opens", "bucket out to everybody (allUsers)", "destroys"),
        ("opens", "object out/x.txt to everybody (allUsers)", "destroys"),
        ("closes", "bucket old to everybody (allUsers)", "plain"),
    ]
    kim = {"entity": "user-kim@a.example", "role": "READER"}
    found = built(plans.create(OBJECT_ACL, "o", bucket="out", object="x", **kim))
    assert answer(found, "whose data becomes readable") == (
        "`user:kim@a.example` reads object `x`",
    )
    assert found.changes == ()


def test_an_acl_on_a_new_bucket_says_which_by_its_own_name() -> None:
    acl = plans.create(ACL, "out-readers", bucket=WIRE_UNKNOWN, entity=WIRE_UNKNOWN, role="READER")
    [binding] = built(acl).gained
    assert (binding.member, binding.target) == ("[known after apply]", "new, see out-readers")


def test_an_acl_that_goes_is_a_right_lost_and_nothing_destroyed() -> None:
    found = built(plans.delete(ACL, "a", bucket="out", entity="domain-example.com", role="OWNER"))
    assert [(each.member, each.role) for each in found.lost] == [
        ("domain:example.com", "roles/storage.legacyBucketOwner")
    ]
    assert found.destroyed == ()


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
    words = "whoever has the key is the account: `ci-key` of `trainer@acme`"
    assert answer(found, "who gains a right") == (words,)
    assert words in verdict(found, code)
    assert found.unjudged == ()
    assert found.risky
    anew = plans.plan(plans.step("replace", type_, "ci-key", inputs, inputs | {"n": 1}))
    assert [each.name for each in grants.account_keys(anew)] == ["ci-key"]
    for step in (
        plans.step("update", type_, "ci-key", inputs, inputs | {"n": 1}),
        plans.delete(type_, "ci-key", **inputs),
    ):
        assert grants.account_keys(plans.plan(step)) == []


def test_an_api_key_is_a_key_of_the_account_that_it_is_bound_to() -> None:
    free, bound = {"name": "k"}, {"name": "k", "serviceAccountEmail": "trainer@acme"}
    for step in (
        plans.create(API_KEY, "k", **free),
        plans.step("update", API_KEY, "k", bound, free),
    ):
        found = plans.plan(step)
        assert grants.account_keys(found) == []
        assert unjudged_types(found) == (API_KEY,)
    later = plans.plan(plans.step("update", API_KEY, "k", free, bound))
    assert grants.account_keys(later) == [grants.AccountKey("trainer@acme", "k")]


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


@pytest.mark.parametrize(
    ("old", "new", "lifted"),
    [
        (rules(denial("a", "b")), None, [("principal://ci", ("a", "b"))]),
        (rules(denial("a", "b")), rules(denial("b")), [("principal://ci", ("a",))]),
        (rules(denial("a", "b")), rules(denial("b"), denial("a")), []),
        (rules(denial("a")), rules(denial("a", "b")), []),
        (rules(denial("a", who=["p", "q"])), rules(denial("a", who=["q"])), [("p", ("a",))]),
        (rules(denial("a")), rules(denial("a", when="x")), [("principal://ci", ("a",))]),
        (rules(denial("a", when="x")), rules(denial("a", when="x")), []),
        (rules(denial("a")), rules(denial("a", exceptionPrincipals=["p"])),
         [("principal://ci", ("a",))]),
        (rules(denial("a", exceptionPermissions=["p"])), rules(denial("a")), []),
        (rules(denial("a", exceptionPermissions=["p"])),
         rules(denial("a", exceptionPermissions=["p", "q"])), [("principal://ci", ("a",))]),
        (rules(denial("a")),
         rules(denial("a", exceptionPrincipals=["p"]), denial("a", exceptionPrincipals=["q"])), []),
        (None, rules(denial("a")), []),
        ({"rules": WIRE_UNKNOWN}, rules(denial("a")), []),
    ],
)  # fmt: skip
def test_what_a_deny_policy_no_longer_denies_is_told(old: Any, new: Any, lifted: Any) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    plan = plans.plan(plans.step(op, DENY, "denial", old=old, new=new))
    assert [(each.principal, each.permissions) for each in grants.lifted(plan)] == lifted


def test_a_denial_that_moves_or_stays_in_the_cloud_is_none_that_goes() -> None:
    moved = plans.plan(
        plans.delete(DENY, "old", **rules(denial("a"))),
        plans.create(DENY, "new", **rules(denial("a"))),
    )
    kept = plans.delete(DENY, "old", **rules(denial("a")))
    kept["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    assert grants.lifted(moved) == grants.lifted(plans.plan(kept)) == []
    found = built(plans.delete(DENY, "old", **rules(denial("a"))))
    words = "no longer denied to: `principal://ci` (`a`)"
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
        f"what a `{web}` opens or grants",
        f"what a `{run}` opens or grants",
    )
