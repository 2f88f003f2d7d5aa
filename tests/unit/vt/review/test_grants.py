"""Who gains and loses what."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training.plan.grants import READ_OBJECTS, WRITE_OBJECTS
from vertex_training_cli.review import grants

TRAINER = f"serviceAccount:{plans.ACCOUNT}"


def test_a_new_grant_is_a_right_gained_with_its_reason() -> None:
    plan = plans.plan(plans.create(plans.MEMBER, "trainer-reads-data", **plans.member("data")))
    [binding] = grants.gained(plan)
    assert (binding.member, binding.role) == (TRAINER, READ_OBJECTS)
    assert (binding.kind, binding.target) == ("bucket", "data")
    assert binding.reason == grants.reason(plans.MEMBER, READ_OBJECTS)
    assert binding.reason
    assert grants.lost(plan) == []


def test_a_teams_own_grant_has_not_the_reason_of_the_program() -> None:
    event = plans.create(plans.MEMBER, "reports-readers", **plans.member("data"))
    metadata = event["resourcePreEvent"]["metadata"]
    metadata["urn"] = f"urn:pulumi:dev::vertex-training::{plans.MEMBER}::reports-readers"
    [binding] = grants.gained(plans.plan(event))
    assert binding.reason == "a team's own code grants it"


def test_a_changed_role_is_one_gained_and_one_lost() -> None:
    old, new = plans.member("data"), plans.member("data", WRITE_OBJECTS)
    plan = plans.plan(plans.step("replace", plans.MEMBER, "m", old=old, new=new))
    assert [binding.role for binding in grants.gained(plan)] == [WRITE_OBJECTS]
    assert [binding.role for binding in grants.lost(plan)] == [READ_OBJECTS]


def test_a_right_that_only_moves_to_another_resource_is_neither() -> None:
    plan = plans.plan(
        plans.delete(plans.MEMBER, "old-name", **plans.member("data")),
        plans.create(plans.MEMBER, "new-name", **plans.member("data")),
    )
    assert (grants.gained(plan), grants.lost(plan)) == ([], [])


def test_bindings_are_told_member_by_member() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    old = {"bucket": "data", "role": "r", "members": ["user:a", "user:b"]}
    new = old | {"members": ["user:b", "user:c"]}
    plan = plans.plan(plans.step("update", binding, "b", old=old, new=new))
    assert [binding.member for binding in grants.gained(plan)] == ["user:c"]
    assert [binding.member for binding in grants.lost(plan)] == ["user:a"]


def test_a_policy_as_a_whole_is_told_as_such() -> None:
    policy = "gcp:projects/iAMPolicy:IAMPolicy"
    plan = plans.plan(plans.create(policy, "p", project="acme", policyData="{}"))
    [binding] = grants.gained(plan)
    assert (binding.role, binding.kind, binding.target) == ("a whole policy", "project", "acme")


def test_the_narrowest_place_is_what_a_right_is_on() -> None:
    subnet = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"
    place = {"project": "host", "region": "us-central1", "subnetwork": "jobs"}
    plan = plans.plan(plans.create(subnet, "s", role="r", member="user:a", **place))
    [binding] = grants.gained(plan)
    assert (binding.kind, binding.target) == ("subnetwork", "jobs")


def test_a_condition_makes_another_right() -> None:
    old = plans.member("data")
    new = old | {"condition": {"title": "t", "expression": "request.time < x"}}
    plan = plans.plan(plans.step("replace", plans.MEMBER, "m", old=old, new=new))
    assert [binding.condition for binding in grants.gained(plan)] == ["request.time < x"]
    assert [binding.condition for binding in grants.lost(plan)] == [""]


def test_everybody_is_public() -> None:
    plan = plans.plan(plans.create(plans.MEMBER, "m", **plans.member("data", who="allUsers")))
    assert grants.gained(plan)[0].is_public
    assert not grants.gained(plans.plan(plans.create(plans.MEMBER, "m", **plans.member("data"))))[
        0
    ].is_public


def test_what_has_no_name_yet_is_told_by_the_grants_own() -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    secret = "gcp:secretmanager/secretIamMember:SecretIamMember"
    plan = plans.plan(
        plans.create(secret, "trainer-reads-key", secretId=unknown, role="r", member="user:a")
    )
    assert "trainer-reads-key" in grants.gained(plan)[0].target


def test_a_condition_that_is_not_known_yet_counts_as_none() -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    given = plans.member("data") | {"condition": unknown}
    [binding] = grants.gained(plans.plan(plans.create(plans.MEMBER, "m", **given)))
    assert binding.condition == ""


def test_a_right_that_leaves_the_stack_and_stays_in_the_cloud_is_kept_and_not_lost() -> None:
    event = plans.delete(plans.MEMBER, "agent-reads", **plans.member("data"))
    event["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    plan = plans.plan(event)
    assert grants.lost(plan) == []
    assert [binding.role for binding in grants.kept(plan)] == [READ_OBJECTS]
