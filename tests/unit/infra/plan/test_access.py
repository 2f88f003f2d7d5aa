"""Who reaches which data: by a grant, or by acting as an account that has one."""

from __future__ import annotations

import pytest

from vertex_training.plan.access import AGENT, Access, Binding, reachable

ACCOUNT = "trainer@acme-ml-dev.iam.gserviceaccount.com"
DATA = Binding(f"serviceAccount:{ACCOUNT}", "roles/storage.objectViewer", "bucket", "acme-data")


def _reached(role: str) -> list[Access]:
    acts = Binding("user:ann@example.com", role, "account", ACCOUNT)
    return [each for each in reachable([DATA, acts]) if each.member == acts.member]


@pytest.mark.parametrize(
    "role",
    [
        "roles/iam.serviceAccountUser",
        "roles/iam.serviceAccountTokenCreator",
        "roles/iam.serviceAccountOpenIdTokenCreator",
        "roles/iam.serviceAccountKeyAdmin",
        "roles/iam.serviceAccountAdmin",
        "roles/iam.workloadIdentityUser",
        "roles/owner",
        "roles/editor",
        "roles/admin",
        "roles/writer",
    ],
)
def test_a_role_by_which_a_member_acts_as_an_account_reaches_its_data(role: str) -> None:
    assert [(e.verb, e.target, e.through) for e in _reached(role) if e.kind == "bucket"] == [
        ("reads", "acme-data", (ACCOUNT,))
    ]


@pytest.mark.parametrize("role", ["roles/iam.serviceAccountViewer", "roles/viewer", "roles/reader"])
def test_a_role_that_only_shows_an_account_reaches_nothing(role: str) -> None:
    assert [e for e in _reached(role) if e.kind == "bucket"] == []


@pytest.mark.parametrize(
    ("role", "verb", "target"),
    [
        ("roles/storage.objectViewer", "reads", "all buckets"),
        ("roles/storage.objectUser", "writes", "all buckets"),
        ("roles/storage.admin", "writes", "all buckets"),
        ("roles/secretmanager.secretAccessor", "reads", "all secrets"),
        ("roles/artifactregistry.writer", "writes", "all repositories"),
        ("roles/viewer", "reads", "everything"),
        ("roles/editor", "writes", "everything"),
        ("roles/owner", "writes", "everything"),
        ("roles/reader", "reads", "everything"),
        ("roles/writer", "writes", "everything"),
        ("roles/admin", "writes", "everything"),
    ],
)
def test_a_role_on_a_project_reaches_all_that_it_is_about(
    role: str, verb: str, target: str
) -> None:
    [access] = reachable([Binding("user:ann@example.com", role, "project", "acme-ml-dev")])
    assert access.verb == verb
    assert (access.kind, access.target) == (f"{target} of project", "acme-ml-dev")


@pytest.mark.parametrize(
    ("role", "found"),
    [
        ("roles/storage.objectAdmin", ("writes", "all buckets of project")),
        ("roles/storage.legacyBucketReader",
         ("roles/storage.legacyBucketReader", "all buckets of project")),
        ("roles/artifactregistry.reader", ("reads", "all repositories of project")),
        ("roles/bigquery.dataViewer", ("reads", "all datasets of project")),
        ("roles/bigquery.dataEditor", ("writes", "all datasets of project")),
        ("roles/bigquery.dataOwner", ("writes", "all datasets of project")),
        ("roles/bigquery.admin", ("roles/bigquery.admin", "all datasets of project")),
        ("roles/bigquery.jobUser", None),
        ("roles/logging.viewer", None),
    ],
)  # fmt: skip
def test_other_roles_on_a_project_say_themselves_what_they_allow(
    role: str, found: tuple[str, str] | None
) -> None:
    access = reachable([Binding(ANN, role, "project", "acme-ml-dev")])
    assert {(each.verb, each.kind) for each in access} == ({found} if found else set())
    assert reachable([Binding(ANN, role, "folder", "1234")]) == set()


@pytest.mark.parametrize(
    ("role", "verb"),
    [
        ("roles/storage.legacyObjectReader", "reads"),
        ("roles/storage.legacyObjectOwner", "writes"),
        ("roles/storage.legacyBucketReader", "roles/storage.legacyBucketReader"),
    ],
)
def test_a_role_of_an_acl_says_what_it_allows(role: str, verb: str) -> None:
    assert reachable([Binding(ANN, role, "object", "b/o")]) == {Access(ANN, verb, "object", "b/o")}


ANN = "user:ann@example.com"
USER = "roles/iam.serviceAccountUser"
ONE, TWO = (f"{name}@acme-ml-dev.iam.gserviceaccount.com" for name in ("one", "two"))


def reads(member: str, *through: str) -> Access:
    return Access(member, "reads", "bucket", "acme-data", through)


def test_accounts_are_named_in_the_order_of_acting_and_a_circle_ends() -> None:
    bindings = [
        Binding(ANN, USER, "account", f"projects/acme-ml-dev/serviceAccounts/{ONE}"),
        Binding(f"serviceAccount:{ONE}", USER, "account", TWO),
        Binding(f"serviceAccount:{TWO}", USER, "account", ONE),
        Binding(f"serviceAccount:{TWO}", "roles/storage.objectViewer", "bucket", "acme-data"),
    ]
    assert reachable(bindings) == {
        reads(ANN, ONE, TWO),
        reads(f"serviceAccount:{ONE}", TWO),
        reads(f"serviceAccount:{TWO}"),
    }


def test_of_two_ways_the_shortest_is_told() -> None:
    bindings = [
        Binding(ANN, USER, "account", ONE),
        Binding(ANN, "roles/storage.objectViewer", "bucket", "acme-data"),
        Binding(f"serviceAccount:{ONE}", "roles/storage.objectViewer", "bucket", "acme-data"),
    ]
    assert reachable(bindings) == {reads(ANN), reads(f"serviceAccount:{ONE}")}


def test_who_may_act_as_the_accounts_of_a_project_reaches_what_each_of_them_does() -> None:
    elsewhere = "three@acme-ml-prod.iam.gserviceaccount.com"
    bindings = [
        Binding(ANN, USER, "project", "projects/acme-ml-dev"),
        Binding(f"serviceAccount:{ONE}", "roles/storage.objectViewer", "bucket", "acme-data"),
        Binding(f"serviceAccount:{elsewhere}", "roles/storage.objectUser", "bucket", "acme-data"),
    ]
    found = {each for each in reachable(bindings) if each.member == ANN}
    assert found == {reads(ANN, ONE)}
    on_bucket = [Binding(ANN, USER, "bucket", "acme-data"), *bindings[1:]]
    assert {each.through for each in reachable(on_bucket) if each.member == ANN} == {()}


KIM = "user:kim@example.com"


def _of_agent(member: str, *through: str) -> set[Access]:
    return {
        Access(member, "writes", f"{data} of project", "acme-ml-dev", (*through, AGENT))
        for data in ("all buckets", "all datasets")
    }


@pytest.mark.parametrize("role", ["roles/aiplatform.user", "roles/aiplatform.admin"])
def test_who_submits_jobs_reaches_what_a_job_without_an_account_does(role: str) -> None:
    assert reachable([Binding(KIM, role, "project", "acme-ml-dev")]) == _of_agent(KIM)
    assert reachable([Binding(KIM, role, "folder", "1")]) == set()


def test_who_acts_as_an_account_that_submits_jobs_reaches_it_too() -> None:
    """A grant of one's own is nearer."""
    trainer = f"serviceAccount:{ACCOUNT}"
    bindings = [
        Binding(trainer, "roles/aiplatform.user", "project", "acme-ml-dev"),
        Binding(trainer, "roles/storage.objectAdmin", "project", "acme-ml-dev"),
        Binding(KIM, "roles/iam.serviceAccountUser", "account", ACCOUNT),
    ]
    buckets, datasets = sorted(_of_agent(KIM, ACCOUNT))
    nearer = Access(KIM, "writes", buckets.kind, buckets.target, (ACCOUNT,))
    assert {each for each in reachable(bindings) if each.member == KIM} == {nearer, datasets}


def test_who_only_looks_at_jobs_reaches_no_data() -> None:
    assert reachable([Binding(KIM, "roles/aiplatform.viewer", "project", "acme-ml-dev")]) == set()
