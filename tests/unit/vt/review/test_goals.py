"""What a new thing will be called, from the plan file's goals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from vt.review import digest, goals, picture, report, rights
from vt.review.events import Plan

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
ACCOUNT_TYPE, SECRET_TYPE = "gcp:serviceaccount/account:Account", "gcp:secretmanager/secret:Secret"
ACT_AS, READ = (
    "gcp:serviceaccount/iAMMember:IAMMember",
    "gcp:secretmanager/secretIamMember:SecretIamMember",
)
NAMED = f"projects/acme-ml-dev/serviceAccounts/{plans.ACCOUNT}"


def urn(type_: str, name: str) -> str:
    return f"urn:pulumi:dev::vertex-training::{type_}::{name}"


def plan_file(**made_from: list[str] | None) -> dict[str, Any]:
    """A plan file in which the grant's properties are made from these resources."""
    planned = {
        urn(ACT_AS, "grant"): {"goal": {"propertyDependencies": made_from}, "steps": ["create"]},
        urn(READ, "grant"): {"goal": {"propertyDependencies": made_from}, "steps": ["create"]},
        urn(plans.BUCKET, "gone"): {"steps": ["delete"], "state": {}},
        urn(plans.BUCKET, "plain"): {"goal": {"type": plans.BUCKET}, "steps": ["same"]},
    }
    return {"manifest": {}, "resourcePlans": planned}


def read(*told: plans.Event, **made_from: list[str] | None) -> Plan:
    return goals.named(plans.plan(*told), goals.read(plan_file(**made_from)))


def act_as(target: str = UNKNOWN) -> plans.Event:
    return plans.create(ACT_AS, "grant", serviceAccountId=target, role="r", member="group:a@b.c")


def account(**inputs: Any) -> plans.Event:
    given = {"accountId": "trainer-dev", "project": "acme-ml-dev"} | inputs
    return plans.step("create", ACCOUNT_TYPE, "trainer-account", new=given)


def test_a_right_on_a_new_account_names_it() -> None:
    plan = read(act_as(), account(), serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")])
    assert [right.target for right in rights.gained(plan)] == [NAMED]


def test_a_right_on_a_new_secret_names_it() -> None:
    grant = plans.create(READ, "grant", secretId=UNKNOWN, role="r", member="user:a")
    secret = plans.create(SECRET_TYPE, "secrets-key", secretId="key-dev", project="acme-ml-dev")
    plan = read(secret, grant, secretId=[urn(SECRET_TYPE, "secrets-key")], member=[])
    assert [right.target for right in rights.gained(plan)] == [
        "projects/acme-ml-dev/secrets/key-dev"
    ]


def test_the_picture_draws_it_as_the_account_it_is() -> None:
    plan = read(
        act_as(),
        account(),
        plans.create(plans.MEMBER, "m", **plans.member("data")),
        serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")],
    )
    drawn = picture.graph(report.build(plan, source="here"))
    assert [node.name for node in drawn.nodes if node.kind == "account"] == ["trainer-dev"]


def test_an_account_without_a_project_is_of_the_stacks() -> None:
    told = plans.create(ACCOUNT_TYPE, "trainer-account", accountId="trainer-dev")
    plan = read(act_as(), told, serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")])
    assert [right.target for right in rights.gained(plan)] == [NAMED]


def test_an_account_of_a_project_below_a_domain_has_its_address() -> None:
    told = account(project="example.com:ml")
    plan = read(act_as(), told, serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")])
    [right] = rights.gained(plan)
    assert right.target.endswith("/trainer-dev@ml.example.com.iam.gserviceaccount.com")


def test_an_account_that_is_made_anew_under_its_name_changes_no_right() -> None:
    old = {"serviceAccountId": NAMED, "role": "r", "member": "group:a@b.c"}
    new = old | {"serviceAccountId": UNKNOWN}
    grant = plans.step("replace", ACT_AS, "grant", old=old, new=new)
    plan = read(grant, account(), serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")])
    assert (rights.gained(plan), rights.lost(plan)) == ([], [])


@pytest.mark.parametrize(
    "made_from",
    [
        None,
        [],
        [urn(ACCOUNT_TYPE, "of-no-step")],
        [urn(plans.BUCKET, "b")],
        [urn(ACCOUNT_TYPE, "trainer-account"), urn(plans.BUCKET, "b")],
    ],
)
def test_what_cannot_be_told_for_sure_is_told_by_the_grants_own_name(
    made_from: list[str] | None,
) -> None:
    bucket = plans.create(plans.BUCKET, "b", location="us")
    plan = read(act_as(), account(), bucket, serviceAccountId=made_from)
    assert [right.target for right in rights.gained(plan)] == ["new, see grant"]


@pytest.mark.parametrize("inputs", [{"accountId": UNKNOWN}, {"project": UNKNOWN}])
def test_a_name_that_is_not_known_either_is_none(inputs: dict[str, str]) -> None:
    made_from = [urn(ACCOUNT_TYPE, "trainer-account")]
    plan = read(act_as(), account(**inputs), serviceAccountId=made_from)
    assert [right.target for right in rights.gained(plan)] == ["new, see grant"]


def test_a_known_input_stays_as_it_is() -> None:
    made_from = [urn(ACCOUNT_TYPE, "trainer-account")]
    plan = read(act_as("projects/p/serviceAccounts/x"), account(), serviceAccountId=made_from)
    assert [right.target for right in rights.gained(plan)] == ["projects/p/serviceAccounts/x"]


def test_the_digest_is_the_same_with_names_and_without() -> None:
    told = plans.plan(act_as(), account())
    names = read(act_as(), account(), serviceAccountId=[urn(ACCOUNT_TYPE, "trainer-account")])
    assert digest.of(told) == digest.of(names)
