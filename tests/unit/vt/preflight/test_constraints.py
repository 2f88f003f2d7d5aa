"""Organization policies: which resources each constraint judges, and what a policy lets through."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.stacks import HOST, PEERING, planned
from tests.unit.vt.preflight.documents import FORBIDDEN, PROJECT, context
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    CONNECTION,
    ENDPOINT,
    MODEL_VERSION,
    ON_BUCKET,
    ON_PROJECT,
    REPOSITORY,
    RESERVATION,
    SECRET,
    TENSORBOARD,
)
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight import organization_policies
from vertex_training_cli.preflight.answers import question
from vertex_training_cli.preflight.constraints import (
    CONSTRAINTS,
    GOOGLE_PRODUCERS,
    INSTANCE,
    NAT,
    SERVICE,
    SERVICE_PROJECT,
    Constraint,
    Subject,
)
from vertex_training_cli.preflight.effective_policy import (
    EffectivePolicy,
    match_location,
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


def request(account: str = "", message: Any = None) -> Any:
    return SimpleNamespace(account=account, message=message or {})


@pytest.mark.parametrize(
    ("name", "resource", "judged"),
    [
        ("iam.disableServiceAccountCreation", of(ACCOUNT, accountId="a"), "account a"),
        ("gcp.restrictServiceUsage", of(SERVICE, service="x.googleapis.com"),
         "API x.googleapis.com"),
        ("storage.uniformBucketLevelAccess", of(BUCKET, name="b"), "bucket b"),
        ("storage.uniformBucketLevelAccess", of(BUCKET), "bucket in-state"),
        ("storage.uniformBucketLevelAccess", of(BUCKET, uniformBucketLevelAccess=True), None),
        ("storage.publicAccessPrevention", of(ON_BUCKET, bucket="b", member="allUsers"),
         "allUsers of bucket b"),
        ("storage.publicAccessPrevention", of(ON_BUCKET, bucket="b", member="user:a@x.com"), None),
        ("storage.publicAccessPrevention", of(ON_PROJECT, member="allUsers"), None),
        ("storage.publicAccessPrevention",
         of("gcp:storage/bucketIAMBinding:BucketIAMBinding", bucket="b",
            members=["user:a@x.com", "allAuthenticatedUsers"]),
         "allAuthenticatedUsers of bucket b"),
        ("storage.softDeletePolicySeconds", of(BUCKET, name="b"), "bucket b (604800 s)"),
        ("storage.softDeletePolicySeconds",
         of(BUCKET, name="b", softDeletePolicy={"retentionDurationSeconds": 0.0}),
         "bucket b (0 s)"),
        ("compute.trustedImageProjects",
         of(INSTANCE, name="i", bootDisk={"initializeParams": {"image": "debian-cloud/debian-12"}}),
         "machine i of debian-cloud/debian-12"),
        ("compute.trustedImageProjects", of(INSTANCE, name="i"), None),
        ("compute.trustedImageProjects",
         of(INSTANCE, name="i", bootDisk={"initializeParams": {"image": "debian-12"}}), None),
        ("compute.sharedReservationsOwnerProjects",
         of(RESERVATION, name="r", shareSettings={"shareType": "SPECIFIC_PROJECTS"}),
         "reservation r"),
        ("compute.sharedReservationsOwnerProjects",
         of(RESERVATION, name="r", shareSettings={"shareType": "LOCAL"}), None),
        ("compute.sharedReservationsOwnerProjects", of(RESERVATION, name="r"), None),
        ("compute.restrictCloudNATUsage", of(NAT, name="n"), "RouterNat n"),
        ("compute.restrictVpcPeering", of(CONNECTION),
         "peering with servicenetworking.googleapis.com"),
        ("gcp.restrictNonCmekServices", of(BUCKET, name="b"), "bucket b"),
        ("gcp.restrictNonCmekServices",
         of(BUCKET, name="b", encryption={"defaultKmsKeyName": KEY}), None),
        ("gcp.restrictNonCmekServices", of(SECRET, secretId="s", replicas=[{"key": [KEY]}]), None),
        ("gcp.restrictNonCmekServices", of(NAT, name="n"), None),
        ("gcp.restrictCmekCryptoKeyProjects",
         of(REPOSITORY, repositoryId="i", kmsKeyName=KEY), f"repository i with {KEY}"),
        ("gcp.restrictCmekCryptoKeyProjects",
         of(REPOSITORY, repositoryId="i", kmsKeyName=f"{KEY}/cryptoKeyVersions/1"), None),
        ("gcp.restrictCmekCryptoKeyProjects", of(REPOSITORY, repositoryId="i"), None),
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


def test_locations_are_those_of_resources_of_their_copies_and_of_jobs() -> None:
    found = subjects(
        "gcp.resourceLocations",
        of(BUCKET, name="b", location="EU"),
        of(RESERVATION, name="r", zone="us-east4-a", project=OTHER),
        of(SECRET, secretId="s",
           replication={"userManaged": {"replicas": [{"location": "us-east1"}, {}]}}),
        of(ON_BUCKET, bucket="b", location="eu"),
        of(ACCOUNT, accountId="a"),
        requests={"train": request()},
    )  # fmt: skip
    assert [(each.resource, each.project) for each in found] == [
        ("bucket b in eu", PROJECT),
        ("reservation r in us-east4-a", OTHER),
        ("secret s in us-east1", PROJECT),
        ("job train in us-central1", PROJECT),
    ]
    assert [each.covers("in:us-locations") for each in found] == [False, True, True, True]


def test_jobs_as_accounts_of_another_project_are_judged_there() -> None:
    found = subjects(
        "iam.disableCrossProjectServiceAccountUsage",
        requests={
            "own": request(f"t@{PROJECT}.iam.gserviceaccount.com"),
            "away": request(f"t@{OTHER}.iam.gserviceaccount.com"),
            "default": request("12-compute@developer.gserviceaccount.com"),
            "none": request(),
        },
    )
    assert [(each.resource, each.project) for each in found] == [
        (f"job away as t@{OTHER}.iam.gserviceaccount.com", OTHER)
    ]


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


@pytest.mark.parametrize(
    ("member", "value", "covers"),
    [
        ("user:u@x.com", "user:u@x.com", True),
        ("user:u@x.com", "group:u@x.com", False),
        ("user:u@x.com", "serviceAccount:a@b", False),
        # a customer, or a set of members of one: who is in it cannot be asked
        ("user:u@x.com", "C01abcdef", None),
        ("user:u@x.com", "principalSet://x", None),
        # everybody is of no customer
        ("allUsers", "C01abcdef", False),
        ("allUsers", "allUsers", True),
    ],
)
def test_a_member_is_covered_by_its_own_name(member: str, value: str, covers: bool | None) -> None:
    [found] = subjects("iam.allowedPolicyMemberDomains", of(ON_BUCKET, member=member))
    assert found.covers(value) is covers


@pytest.mark.parametrize(
    ("type_", "api"),
    [
        (BUCKET, "storage"), (REPOSITORY, "artifactregistry"), (SECRET, "secretmanager"),
        (TENSORBOARD, "aiplatform"), (ENDPOINT, "aiplatform"), (MODEL_VERSION, "aiplatform"),
    ],
)  # fmt: skip
def test_what_has_no_key_is_judged_by_its_api(type_: str, api: str) -> None:
    found = subjects("gcp.restrictNonCmekServices", of(type_), requests={"train": request()})
    assert found[0].covers(f"{api}.googleapis.com") is True
    assert found[0].covers("is.googleapis.com") is False
    assert (found[1].resource, found[1].project) == ("job train", PROJECT)
    assert found[1].covers("aiplatform.googleapis.com") is True
    sealed = {"train": request(message={"encryptionSpec": {"kmsKeyName": KEY}})}
    assert subjects("gcp.restrictNonCmekServices", requests=sealed) == []
    [keyed] = subjects("gcp.restrictCmekCryptoKeyProjects", requests=sealed)
    assert (keyed.resource, keyed.project) == (f"job train with {KEY}", PROJECT)


@pytest.mark.parametrize(
    ("value", "covers"),
    [
        (f"projects/{PROJECT}", True),
        ("under:projects/109876543210", True),  # the same project by its number
        (KEY.rpartition("/cryptoKeys")[0], True),
        (f"projects/{OTHER}", False),
        ("under:folders/1", None),
    ],
)
def test_a_key_is_of_its_project_by_id_and_by_number(value: str, covers: bool | None) -> None:
    resource = of(BUCKET, name="b", encryption={"defaultKmsKeyName": KEY})
    [found] = subjects("gcp.restrictCmekCryptoKeyProjects", resource)
    assert found.covers(value) is covers


def test_a_shared_reservation_and_a_host_are_covered_by_id_and_by_number() -> None:
    shared = of(RESERVATION, name="r", shareSettings={"shareType": "SPECIFIC_PROJECTS"})
    [found] = subjects("compute.sharedReservationsOwnerProjects", shared)
    assert found.covers("projects/109876543210") is found.covers(f"projects/{PROJECT}") is True
    attached = of(SERVICE_PROJECT, hostProject=HOST["hostProject"], serviceProject=PROJECT)
    [host] = subjects(
        "compute.restrictSharedVpcHostProjects", attached, network=PEERING, sharedVpc=HOST
    )
    assert (host.resource, host.project) == ("host project acme-net-prod", PROJECT)
    assert host.covers("projects/345678901234") is host.covers("projects/acme-net-prod") is True
    assert host.covers(f"projects/{PROJECT}") is False


def test_a_peering_is_with_googles_producers_in_the_project_of_the_network() -> None:
    [own] = subjects("compute.restrictVpcPeering", of(CONNECTION), network=PEERING)
    assert own.project == PROJECT
    assert own.covers(f"under:{GOOGLE_PRODUCERS}") is own.covers(GOOGLE_PRODUCERS) is True
    assert own.covers("under:organizations/1") is None
    [away] = subjects("compute.restrictVpcPeering", of(CONNECTION), network=PEERING, sharedVpc=HOST)
    assert away.project == "acme-net-prod"


def test_a_subnet_of_a_host_is_judged_by_its_path() -> None:
    network = {"mode": "psc", "subnet": {"range": "10.20.0.0/26"}}
    [found] = subjects("compute.restrictSharedVpcSubnetworks", network=network, sharedVpc=HOST)
    subnet = "projects/acme-net-prod/regions/us-central1/subnetworks/training-prod"
    assert (found.resource, found.project) == (f"subnet {subnet}", PROJECT)
    assert found.covers(subnet) is True
    assert subjects("compute.restrictSharedVpcSubnetworks", network=network) == []
    assert subjects("compute.restrictSharedVpcSubnetworks", network=PEERING, sharedVpc=HOST) == []
    [nat] = subjects("compute.restrictCloudNATUsage", of(NAT), network=network)
    own = f"projects/{PROJECT}/regions/us-central1/subnetworks/training-prod"
    assert nat.covers(own) is nat.covers(f"under:projects/{PROJECT}") is True
    [bare] = subjects("compute.restrictCloudNATUsage", of(NAT))
    assert bare.covers(own) is False


@pytest.mark.parametrize(
    ("image", "covers"),
    [
        ("debian-cloud/debian-12", True),
        ("projects/debian-cloud/global/images/d", True),
        ("https://www.googleapis.com/compute/v1/projects/debian-cloud/global/images/d", True),
        ("projects/other/global/images/d", False),
    ],
)
def test_an_image_is_of_the_project_in_its_name(image: str, covers: bool) -> None:
    machine = of(INSTANCE, name="i", bootDisk={"initializeParams": {"image": image}})
    [found] = subjects("compute.trustedImageProjects", machine)
    assert found.covers("projects/debian-cloud") is covers


@pytest.mark.parametrize("value", ["604800", "0", "7776000"])
def test_seconds_and_apis_are_covered_by_themselves(value: str) -> None:
    [seconds] = subjects("storage.softDeletePolicySeconds", of(BUCKET, name="b"))
    assert seconds.covers(value) is (value == "604800")
    [api] = subjects("gcp.restrictServiceUsage", of(SERVICE, service="a.googleapis.com"))
    assert (api.covers("a.googleapis.com"), api.covers("b.googleapis.com")) == (True, False)


RULES = {
    "spec": {
        "rules": [
            {"enforce": True, "parameters": {"allowedMembers": ["is:a", "b"], "n": 3}},
            {"enforce": False, "parameters": {"allowedMembers": ["unused"]}},
            {"values": {"allowedValues": ["c"], "deniedValues": ["d", "e"]}},
        ]
    }
}


@pytest.mark.parametrize(
    ("document", "policy", "words"),
    [
        ({}, EffectivePolicy(), "nothing restricted"),
        ({"spec": {"rules": None}}, EffectivePolicy(), "nothing restricted"),
        ({"spec": {"rules": [{"enforce": True}]}}, EffectivePolicy(enforced=True), "enforced"),
        ({"spec": {"rules": [{"denyAll": True}]}}, EffectivePolicy(deny_all=True), "all denied"),
        ({"spec": {"rules": [{"allowAll": True}]}}, EffectivePolicy(), "nothing restricted"),
        (RULES, EffectivePolicy(True, False, ("c", "is:a", "b"), ("d", "e")),
         "enforced; allowed: c, is:a, b; denied: d, e"),
    ],
)  # fmt: skip
def test_a_policy_is_what_its_rules_say(document: Any, policy: EffectivePolicy, words: str) -> None:
    assert EffectivePolicy.parse(document) == policy
    assert str(policy) == words


@pytest.mark.parametrize(
    ("allowed", "denied", "expected"),
    [
        (("in:us-locations",), ("in:new-group",), None),
        (("in:us-locations",), ("in:us-locations",), False),
        (("in:new-group",), (), None),
        (("in:new-group", "in:us-locations"), (), True),
        (("in:europe-locations", "in:new-group"), (), None),
        ((), ("in:new-group",), None),
        ((), ("in:europe-locations",), True),
        (("is:us-central1",), ("is:us-east1",), True),
    ],
)
def test_what_is_not_known_is_neither_allowed_nor_denied(
    allowed: tuple[str, ...], denied: tuple[str, ...], expected: bool | None
) -> None:
    policy = EffectivePolicy(allowed=allowed, denied=denied)
    assert policy.allows(match_location("us-central1")) is expected
    assert EffectivePolicy(deny_all=True, allowed=allowed).allows(match_value("x")) is False


def test_a_match_is_of_a_name_a_path_or_nothing() -> None:
    assert (match_nothing("a"), match_value("a", "b")("b"), match_value("a")("ab")) == (
        False, True, False,
    )  # fmt: skip
    covers = match_path("projects/p/x", "projects/1/x")
    values = ["projects/p/x", "under:projects/1", "projects/p", "projects/p/x/y", "projects/2"]
    assert [covers(each) for each in values] == [True, True, True, False, False]


LIST = Constraint("c", "it is refused", lambda _: iter(()), "leave it out")
FLAG = Constraint("c", "it is refused", lambda _: iter(()), "", is_list=False)
ASKED = question("project p", "policy c")
ADMIN = "ask its administrator for an exception of projects/p"


def judged(constraint: Constraint, document: Any, *values: str) -> Any:
    found = [Subject(f"r {each}", "p", match_path(each)) for each in values]
    return organization_policies.judge(ASKED, constraint, "p", found, document)


def test_a_judgement_names_what_is_stopped_then_what_is_not_known() -> None:
    allowed = {"spec": {"rules": [{"values": {"allowedValues": ["a", "folders/1"]}}]}}
    words = "allowed: a, folders/1"
    assert judged(LIST, allowed, "a", "a") == ASKED.ok(f"{words}: stops none of 2")
    assert judged(LIST, allowed, "a", "b", "b") == ASKED.unknown(
        f"{words}: whether that covers r b cannot be asked", mend=f"{ADMIN}; or leave it out"
    )
    only = {"spec": {"rules": [{"values": {"allowedValues": ["a"]}}]}}
    assert judged(LIST, only, "a", "b", "c", "b") == ASKED.refused(
        "allowed: a", "r b, r c: it is refused", f"{ADMIN}; or leave it out"
    )
    many = judged(LIST, only, *(f"x{n}" for n in range(14)))
    named = ", ".join(f"r x{n}" for n in range(12))
    assert many.meets == f"{named} and 2 more: it is refused"
    assert judged(LIST, only, *(f"x{n}" for n in range(12))).meets == f"{named}: it is refused"


def test_what_is_enforced_or_not_judges_all_alike() -> None:
    on = {"spec": {"rules": [{"enforce": True}]}}
    assert judged(FLAG, on, "a") == ASKED.refused("enforced", "r a: it is refused", ADMIN)
    assert judged(FLAG, {}, "a") == ASKED.ok("nothing restricted: stops none of 1")
    assert judged(FLAG, None, "a") == ASKED.unknown(
        "there is no such project, or no such constraint", "orgpolicy.policy.get"
    )
    assert judged(FLAG, ASKED.unknown("403")) == ASKED.unknown("403")


def test_a_constraint_is_asked_once_a_project_where_something_is_still_to_make() -> None:
    made = of(ACCOUNT, accountId="old", project=PROJECT)
    api = of(SERVICE, service="x.googleapis.com", project=PROJECT)
    new = [of(ACCOUNT, accountId=n, project=project) for n, project in
           (("c", OTHER), ("a", PROJECT), ("b", OTHER))]  # fmt: skip
    url = "https://orgpolicy.googleapis.com/v2/projects/{}/policies/{}:getEffectivePolicy"
    name = "iam.disableServiceAccountCreation"
    documents = {
        url.format(PROJECT, name): {"spec": {"rules": [{"enforce": True}]}},
        url.format(OTHER, name): FORBIDDEN,
        url.format(PROJECT, "gcp.restrictServiceUsage"): {},
    }
    found = list(organization_policies.ask(context(documents, made, api, *new, made=[made])))
    assert [(each.subject, each.asked, each.answer, each.meets) for each in found] == [
        (f"project {PROJECT}", f"policy {name}", "enforced", "account a: the creation is refused"),
        (f"project {OTHER}", f"policy {name}",
         f"project {OTHER} cannot be read: 403 Forbidden", ""),
        (f"project {PROJECT}", "policy gcp.restrictServiceUsage",
         "nothing restricted: stops none of 1", ""),
    ]  # fmt: skip


def test_of_some_limits_nothing_in_the_stack_gets_round() -> None:
    assert {each.name for each in CONSTRAINTS if not each.mend} == {
        "compute.restrictSharedVpcHostProjects", "compute.restrictSharedVpcSubnetworks",
        "compute.trustedImageProjects", "gcp.restrictServiceUsage",
    }  # fmt: skip
