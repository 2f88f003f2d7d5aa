"""Who gains and loses what."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training.plan.access import Access
from vertex_training.plan.grants import EXTRA_GRANTS, READ_OBJECTS, WRITE_OBJECTS
from vertex_training_cli.engine import events
from vertex_training_cli.engine.values import UNKNOWN, WIRE_UNKNOWN
from vertex_training_cli.review import grants
from vertex_training_cli.review.escaping import code

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


def test_a_right_that_a_team_takes_over_from_the_program_is_neither() -> None:
    plan = plans.plan(
        plans.delete(plans.MEMBER, "own", **plans.member("data", who=KIM)),
        by_a_team("team", READ_OBJECTS),
    )
    assert (grants.gained(plan), grants.lost(plan)) == ([], [])


def test_rights_are_in_the_order_of_their_members() -> None:
    members = [f"user:{name}@example.com" for name in "cbadfe"]
    each = [plans.member("data", who=who) for who in members]
    gone = plans.plan(*(plans.delete(plans.MEMBER, m["member"], **m) for m in each))
    assert [binding.member for binding in grants.lost(gone)] == sorted(members)
    for event in (stay := [plans.delete(plans.MEMBER, m["member"], **m) for m in each]):
        event["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = True
    assert [binding.member for binding in grants.kept(plans.plan(*stay))] == sorted(members)
    new = plans.plan(*(plans.create(plans.MEMBER, m["member"], **m) for m in each))
    assert [binding.member for binding in grants.gained(new)] == sorted(members)


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


KIM = "user:kim@example.com"


def by_a_team(name: str, role: str, member: str = KIM) -> plans.Event:
    """A grant of a team's own code: no component of the program is above it."""
    event = plans.create(plans.MEMBER, name, **plans.member("data", role, member))
    urn = f"urn:pulumi:dev::vertex-training::{plans.MEMBER}::{name}"
    event["resourcePreEvent"]["metadata"]["urn"] = urn
    return event


def asked_for(name: str, role: str) -> plans.Event:
    """A grant of the stack file's section for more of them."""
    event = plans.create(plans.MEMBER, name, **plans.member("data", role, KIM))
    urn = f"urn:pulumi:dev::vertex-training::{EXTRA_GRANTS}${plans.MEMBER}::{name}"
    event["resourcePreEvent"]["metadata"]["urn"] = urn
    return event


@pytest.mark.parametrize(
    ("role", "administers"),
    [
        ("roles/storage.admin", True),
        ("roles/storage.objectAdmin", True),
        ("organizations/1/roles/customAdmin", True),
        ("roles/owner", True),
        ("roles/editor", True),
        ("roles/admin", True),
        ("roles/writer", True),
        ("roles/iam.serviceAccountTokenCreator", True),
        ("roles/iam.workloadIdentityUser", True),
        # who submits jobs acts as the account, and that is what it is for
        ("roles/iam.serviceAccountUser", False),
        ("roles/storage.objectViewer", False),
    ],
)
def test_an_administrator_is_told_unless_the_program_makes_one_by_itself(
    role: str, administers: bool
) -> None:
    for event in (by_a_team("g", role), asked_for("g", role)):
        found = grants.administrators(plans.plan(event))
        assert [each.role for each in found] == ([role] if administers else [])
    derived = plans.create(plans.MEMBER, "g", **plans.member("data", role, KIM))
    assert grants.administrators(plans.plan(derived)) == []


ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"


def role(*permissions: str, **more: Any) -> dict[str, Any]:
    return {"roleId": "helper", "permissions": list(permissions), **more}


@pytest.mark.parametrize(
    ("old", "new", "gained"),
    [
        (
            role("a.b.get"),
            role("a.b.get", "p.setIamPolicy", "a.b.set"),
            ("a.b.set", "p.setIamPolicy"),
        ),
        (None, role("a.b.get"), ("a.b.get",)),
        (role("a.b.get", stage="DISABLED"), role("a.b.get", stage="GA"), ("a.b.get",)),
        (role("a.b.get"), role(UNKNOWN), (UNKNOWN,)),
        (role("a.b.get"), {"roleId": "helper", "permissions": UNKNOWN}, (UNKNOWN,)),
        (role("a.b.get", "a.b.set"), role("a.b.set"), ()),
        (role("a.b.get"), role("a.b.get", title="x"), ()),
        (role("a.b.get"), None, ()),
    ],
)
@pytest.mark.parametrize("type_", [ROLE, "gcp:organizations/iAMCustomRole:IAMCustomRole"])
def test_permissions_that_a_role_gets_are_told_though_no_grant_changes(
    type_: str, old: Any, new: Any, gained: tuple[str, ...]
) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    plan = plans.plan(plans.step(op, type_, "r", old=old, new=new))
    assert [(each.name, each.permissions) for each in grants.widened(plan)] == (
        [("helper", gained)] if gained else []
    )
    assert grants.gained(plan) == []


def test_a_widened_role_is_told_in_the_verdict() -> None:
    found = grants.WidenedRole("helper", ("a", "b", "c", "d"))
    assert grants.WIDENED.name(found, code) == "`helper` (`a`, `b`, `c` and 1 more)"


def test_a_grant_says_why_it_is_made_and_whether_somebody_asked_for_it() -> None:
    plan = plans.plan(
        asked_for("asked", READ_OBJECTS),
        by_a_team("team", WRITE_OBJECTS),
        plans.create(plans.MEMBER, "own", **plans.member("data")),
    )
    assert {each.reason: each.is_derived for each in grants.gained(plan)} == {
        "the stack file asks for it by name": False,
        "a team's own code grants it": False,
        grants.reason(plans.MEMBER, READ_OBJECTS): True,
    }


def told_strangers(*told: plans.Event, limits: Any = None, number: str = "12") -> list[str]:
    config = {
        "gcp:project": "acme-ml-dev",
        "vertex-training:projectNumber": number,
        "vertex-training:limits": json.dumps(limits or {}),
    }
    found = grants.strangers(events.parse(plans.lines(*told, config=config), "dev"))
    return [each.member for each in found]


def of(*members: str) -> list[plans.Event]:
    return [by_a_team(f"g{n}", READ_OBJECTS, each) for n, each in enumerate(members)]


HELD = plans.step("same", plans.MEMBER, "held", *[plans.member("data", who=KIM)] * 2)


def test_a_stranger_is_of_a_domain_that_had_no_member() -> None:
    assert told_strangers(HELD, *of("user:x@other.test", "group:g@example.com")) == [
        "user:x@other.test"
    ]


@pytest.mark.parametrize(
    "member",
    [
        "allUsers",  # told as what is opened to everybody
        "serviceAccount:t@acme-ml-dev.iam.gserviceaccount.com",
        "serviceAccount:12-compute@developer.gserviceaccount.com",
        "user:p@partner.test",
        KIM,
    ],
)
def test_members_of_the_project_and_of_its_limits_domains_are_no_strangers(member: str) -> None:
    assert told_strangers(HELD, *of(member), limits={"memberDomains": ["partner.*"]}) == []


def test_of_a_stack_that_is_all_new_public_mail_alone_is_strange() -> None:
    assert told_strangers(
        *of("user:x@other.test", "user:x@gmail.com", "user:y@googlemail.com")
    ) == [
        "user:x@gmail.com",
        "user:y@googlemail.com",
    ]


def test_public_mail_stays_strange_though_somebody_has_it_already() -> None:
    had = plans.step("same", plans.MEMBER, "had", *[plans.member("d", who="user:a@gmail.com")] * 2)
    assert told_strangers(had, *of("user:b@gmail.com")) == ["user:b@gmail.com"]


def test_a_member_without_a_domain_is_strange_beside_another_one_without() -> None:
    one, other = (f"principal://iam.googleapis.com/projects/{n}/x" for n in (1, 2))
    had = plans.step("same", plans.MEMBER, "had", *[plans.member("d", who=one)] * 2)
    assert told_strangers(had, *of(other)) == [other]


def test_a_stranger_is_told_once_and_limits_that_are_no_list_name_nobody() -> None:
    both = [by_a_team("r", READ_OBJECTS, "user:x@o.test"), by_a_team("w", "a", "user:x@o.test")]
    config = {"vertex-training:limits": '{"memberDomains": "o.test"}'}
    plan = events.parse(plans.lines(HELD, *both, config=config), "dev")
    assert [(each.member, each.role) for each in grants.strangers(plan)] == [("user:x@o.test", "a")]


def test_a_whole_policy_is_told_binding_by_binding_as_far_as_it_is_known() -> None:
    data = {
        "bindings": [
            {"role": "r", "members": ["user:b", "user:a"]},
            {"role": "q", "members": ["user:c"], "condition": {"expression": "e"}},
        ]
    }
    policy = "gcp:storage/bucketIAMPolicy:BucketIAMPolicy"

    def told(policy_data: Any) -> list[tuple[str, str, str]]:
        plan = plans.plan(plans.create(policy, "p", bucket="data", policyData=policy_data))
        found = grants.gained(plan)
        assert {(each.kind, each.target) for each in found} == {("bucket", "data")}
        return [(each.member, each.role, each.condition) for each in found]

    assert told(json.dumps(data)) == [
        ("user:a", "r", ""),
        ("user:b", "r", ""),
        ("user:c", "q", "e"),
    ]
    whole = [("everybody named in it", "a whole policy", "")]
    assert [told(each) for each in ("{", "[]", "{}", WIRE_UNKNOWN, None)] == [whole] * 5


def test_members_that_are_not_known_yet_are_told_as_such() -> None:
    binding = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    plan = plans.plan(plans.create(binding, "b", bucket="data", role="r", members=WIRE_UNKNOWN))
    assert [each.member for each in grants.gained(plan)] == [UNKNOWN]


@pytest.mark.parametrize(
    ("inputs", "kind", "target"),
    [
        ({"bucket": "data", "project": "acme", "location": "eu"}, "bucket", "data"),
        ({"project": "acme", "region": "eu"}, "project", "acme"),
        ({"widget": "w", "project": "acme"}, "widget", "w"),
        ({"bucket": "", "project": "acme"}, "project", "acme"),
        ({"condition": {"title": "t"}}, "", ""),
        ({"policyData": "{}", "members": []}, "", ""),
        ({}, "", ""),
    ],
)
def test_a_right_is_on_what_its_narrowest_input_names(
    inputs: dict[str, str], kind: str, target: str
) -> None:
    given = {"etag": "e", "role": "r", "member": KIM, **inputs}
    [found] = grants.gained(plans.plan(plans.create(plans.MEMBER, "g", **given)))
    assert (found.kind, found.target) == (kind, target)


def test_who_and_where_are_short_and_quoted_where_others_chose_the_words() -> None:
    binding = grants.IamBinding(
        TRAINER, "r", "account", f"projects/p/serviceAccounts/{plans.ACCOUNT}"
    )
    assert grants.short_member(binding) == plans.ACCOUNT
    assert grants.short_target(binding) == plans.ACCOUNT
    assert grants.place(binding, code) == f"account `{plans.ACCOUNT}`"
    odd = dataclasses.replace(binding, kind="my_kind", target="t", member=KIM)
    assert grants.short_member(odd) == KIM
    assert grants.place(odd, code) == "`my_kind` `t`"


def test_access_is_a_verb_or_the_role_and_names_the_accounts_in_their_order() -> None:
    through = ("a@p.iam.gserviceaccount.com", "b@p.iam.gserviceaccount.com")
    access = Access(KIM, "reads", "all buckets of project", "acme", through)
    assert grants.verb(access, code) == "reads"
    assert grants.verb(dataclasses.replace(access, verb="roles/x"), code) == "`roles/x`"
    assert grants.through(access) == "a then b"
    assert grants.place(access, code) == "all buckets of project `acme`"


def test_what_is_held_afterwards_has_kept_and_new_rights_and_none_that_go() -> None:
    plan = plans.plan(
        plans.create(plans.MEMBER, "new", **plans.member("raw", who=KIM)),
        HELD,
        plans.delete(plans.MEMBER, "gone", **plans.member("old")),
        plans.create(plans.BUCKET, "storage-raw", name="raw"),
    )
    found = [(each.member, each.target) for each in grants.held(plan)]
    assert found == [(KIM, "data"), (KIM, "raw")]
