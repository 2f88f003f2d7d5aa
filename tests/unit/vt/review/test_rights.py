"""Who gains and loses what."""

from __future__ import annotations

from infra.plan import grants
from tests.unit.vt.review import plans
from vt.review import rights

TRAINER = f"serviceAccount:{plans.ACCOUNT}"


def test_a_new_grant_is_a_right_gained_with_its_reason() -> None:
    plan = plans.plan(plans.create(plans.MEMBER, "trainer-reads-data", **plans.member("data")))
    [right] = rights.gained(plan)
    assert (right.member, right.role) == (TRAINER, grants.READ_OBJECTS)
    assert (right.kind, right.target) == ("bucket", "data")
    assert right.reason == grants.reason(plans.MEMBER, grants.READ_OBJECTS)
    assert right.reason
    assert rights.lost(plan) == []


def test_a_changed_role_is_one_gained_and_one_lost() -> None:
    old, new = plans.member("data"), plans.member("data", grants.WRITE_OBJECTS)
    plan = plans.plan(plans.step("replace", plans.MEMBER, "m", old=old, new=new))
    assert [right.role for right in rights.gained(plan)] == [grants.WRITE_OBJECTS]
    assert [right.role for right in rights.lost(plan)] == [grants.READ_OBJECTS]


def test_a_right_that_only_moves_to_another_resource_is_neither() -> None:
    plan = plans.plan(
        plans.delete(plans.MEMBER, "old-name", **plans.member("data")),
        plans.create(plans.MEMBER, "new-name", **plans.member("data")),
    )
    assert (rights.gained(plan), rights.lost(plan)) == ([], [])


def test_bindings_are_told_member_by_member() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    old = {"bucket": "data", "role": "r", "members": ["user:a", "user:b"]}
    new = old | {"members": ["user:b", "user:c"]}
    plan = plans.plan(plans.step("update", binding, "b", old=old, new=new))
    assert [right.member for right in rights.gained(plan)] == ["user:c"]
    assert [right.member for right in rights.lost(plan)] == ["user:a"]


def test_a_policy_as_a_whole_is_told_as_such() -> None:
    policy = "gcp:projects/iAMPolicy:IAMPolicy"
    plan = plans.plan(plans.create(policy, "p", project="acme", policyData="{}"))
    [right] = rights.gained(plan)
    assert (right.role, right.kind, right.target) == ("a whole policy", "project", "acme")


def test_the_narrowest_place_is_what_a_right_is_on() -> None:
    subnet = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
    place = {"project": "host", "region": "us-central1", "subnetwork": "jobs"}
    plan = plans.plan(plans.create(subnet, "s", role="r", member="user:a", **place))
    [right] = rights.gained(plan)
    assert (right.kind, right.target) == ("subnetwork", "jobs")


def test_a_condition_makes_another_right() -> None:
    old = plans.member("data")
    new = old | {"condition": {"title": "t", "expression": "request.time < x"}}
    plan = plans.plan(plans.step("replace", plans.MEMBER, "m", old=old, new=new))
    assert [right.condition for right in rights.gained(plan)] == ["request.time < x"]
    assert [right.condition for right in rights.lost(plan)] == [""]


def test_everybody_is_public() -> None:
    plan = plans.plan(plans.create(plans.MEMBER, "m", **plans.member("data", who="allUsers")))
    assert rights.gained(plan)[0].public
    assert not rights.gained(plans.plan(plans.create(plans.MEMBER, "m", **plans.member("data"))))[
        0
    ].public


def test_what_has_no_name_yet_is_told_by_the_grants_own() -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    secret = "gcp:secretmanager/secretIamMember:SecretIamMember"
    plan = plans.plan(
        plans.create(secret, "trainer-reads-key", secretId=unknown, role="r", member="user:a")
    )
    assert "trainer-reads-key" in rights.gained(plan)[0].target
