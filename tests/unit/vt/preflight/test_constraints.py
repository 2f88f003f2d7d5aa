"""Organization policies: which resources each constraint judges, and what a policy lets through."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import planned
from tests.unit.vt.preflight.documents import PROJECT
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    CONNECTION,
    ON_BUCKET,
    ON_PROJECT,
    REPOSITORY,
    RESERVATION,
)
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight import organization_policies
from vertex_training_cli.preflight.answers import question
from vertex_training_cli.preflight.constraints import (
    CONSTRAINTS,
    INSTANCE,
    NAT,
    SERVICE,
    Constraint,
    Subject,
)
from vertex_training_cli.preflight.effective_policy import (
    match_nothing,
    match_path,
    match_value,
)

BY_NAME = {each.name: each for each in CONSTRAINTS}
OTHER = "acme-other"
KEY = f"projects/{PROJECT}/locations/us/keyRings/r/cryptoKeys/k"


def subjects(
    name: str, *resources: DeclaredResource, requests: Any = None, **sections: Any
) -> list[Subject]:
    declared = DeclaredStack(planned(**sections), requests or {}, resources)
    return list(BY_NAME[name].subjects(declared))


def of(type_: str, **inputs: Any) -> DeclaredResource:
    return DeclaredResource(type_, "in-state", inputs)


@pytest.mark.parametrize(
    ("name", "resource", "judged"),
    [
        ("iam.disableServiceAccountCreation", of(ACCOUNT, accountId="a"), "account a"),
        ("gcp.restrictServiceUsage", of(SERVICE, service="x.googleapis.com"),
         "API x.googleapis.com"),
        ("storage.uniformBucketLevelAccess", of(BUCKET, name="b"), "bucket b"),
        ("storage.uniformBucketLevelAccess", of(BUCKET, uniformBucketLevelAccess=True), None),
        ("storage.publicAccessPrevention", of(ON_PROJECT, member="allUsers"), None),
        ("storage.publicAccessPrevention",
         of("gcp:storage/bucketIAMBinding:BucketIAMBinding", bucket="b",
            members=["user:a@x.com", "allAuthenticatedUsers"]),
         "allAuthenticatedUsers of bucket b"),
        ("storage.softDeletePolicySeconds", of(BUCKET, name="b"), "bucket b (604800 s)"),
        ("compute.trustedImageProjects",
         of(INSTANCE, name="i", bootDisk={"initializeParams": {"image": "debian-cloud/debian-12"}}),
         "machine i of debian-cloud/debian-12"),
        ("compute.trustedImageProjects", of(INSTANCE, name="i"), None),
        ("compute.sharedReservationsOwnerProjects",
         of(RESERVATION, name="r", shareSettings={"shareType": "SPECIFIC_PROJECTS"}),
         "reservation r"),
        ("compute.sharedReservationsOwnerProjects",
         of(RESERVATION, name="r", shareSettings={"shareType": "LOCAL"}), None),
        ("compute.restrictCloudNATUsage", of(NAT, name="n"), "RouterNat n"),
        ("compute.restrictVpcPeering", of(CONNECTION),
         "peering with servicenetworking.googleapis.com"),
        ("gcp.restrictNonCmekServices", of(BUCKET, name="b"), "bucket b"),
        ("gcp.restrictNonCmekServices",
         of(BUCKET, name="b", encryption={"defaultKmsKeyName": KEY}), None),
        ("gcp.restrictNonCmekServices", of(NAT, name="n"), None),
        ("gcp.restrictCmekCryptoKeyProjects",
         of(REPOSITORY, repositoryId="i", kmsKeyName=KEY), f"repository i with {KEY}"),
        ("gcp.restrictCmekCryptoKeyProjects",
         of(REPOSITORY, repositoryId="i", kmsKeyName=f"{KEY}/cryptoKeyVersions/1"), None),
    ],
)  # fmt: skip
def test_a_constraint_judges_what_it_is_about_in_the_project_of_each(
    name: str, resource: DeclaredResource, judged: str | None
) -> None:
    def found(each: DeclaredResource) -> list[tuple[str, str]]:
        return [(found.resource, found.project) for found in subjects(name, each)]

    assert found(resource) == ([] if judged is None else [(judged, PROJECT)])
    away = DeclaredResource(resource.type, "in-state", {**resource.inputs, "project": OTHER})
    if name != "compute.restrictVpcPeering":  # the network's project is what counts there
        assert found(away) == ([] if judged is None else [(judged, OTHER)])


def test_constraints_that_are_enforced_or_not_list_no_values() -> None:
    assert {each.name for each in CONSTRAINTS if not each.is_list} == {
        "iam.disableCrossProjectServiceAccountUsage",
        "iam.disableServiceAccountCreation",
        "storage.publicAccessPrevention",
        "storage.uniformBucketLevelAccess",
    }


def test_members_are_judged_once_a_project_and_accounts_never() -> None:
    for name in ("iam.allowedPolicyMemberDomains", "iam.managed.allowedPolicyMembers"):
        found = subjects(
            name,
            of(ON_BUCKET, member="group:g@x.com"),
            of(ON_PROJECT, member="group:g@x.com"),
            of(ON_PROJECT, member="group:g@x.com", project=OTHER),
            of("x:y:Z", members=["domain:x.com", "allUsers", "serviceAccount:a@b", "user:u@x.com"]),
        )
        assert [(each.resource, each.project) for each in found] == [
            ("member group:g@x.com", PROJECT), ("member group:g@x.com", OTHER),
            ("member domain:x.com", PROJECT), ("member allUsers", PROJECT),
            ("member user:u@x.com", PROJECT),
        ]  # fmt: skip


def test_a_match_is_of_a_name_a_path_or_nothing() -> None:
    assert (match_nothing("a"), match_value("a", "b")("b"), match_value("a")("ab")) == (
        False, True, False,
    )  # fmt: skip
    covers = match_path("projects/p/x", "projects/1/x")
    values = ["projects/p/x", "under:projects/1", "projects/p", "projects/p/x/y", "projects/2"]
    assert [covers(each) for each in values] == [True, True, True, False, False]


FLAG = Constraint("c", "it is refused", lambda _: iter(()), "", is_list=False)
ASKED = question("project p", "policy c")
ADMIN = "ask its administrator for an exception of projects/p"


def judged(constraint: Constraint, document: Any, *values: str) -> Any:
    found = [Subject(f"r {each}", "p", match_path(each)) for each in values]
    return organization_policies.judge(ASKED, constraint, "p", found, document)


def test_what_is_enforced_or_not_judges_all_alike() -> None:
    on = {"spec": {"rules": [{"enforce": True}]}}
    assert judged(FLAG, on, "a") == ASKED.refused("enforced", "r a: it is refused", ADMIN)
    assert judged(FLAG, {}, "a") == ASKED.ok("nothing restricted: stops none of 1")
    assert judged(FLAG, None, "a") == ASKED.unknown(
        "there is no such project, or no such constraint", "orgpolicy.policy.get"
    )
    assert judged(FLAG, ASKED.unknown("403")) == ASKED.unknown("403")


def test_of_some_limits_nothing_in_the_stack_gets_round() -> None:
    assert {each.name for each in CONSTRAINTS if not each.mend} == {
        "compute.restrictSharedVpcHostProjects", "compute.restrictSharedVpcSubnetworks",
        "compute.trustedImageProjects", "gcp.restrictServiceUsage",
    }  # fmt: skip
