"""Who reaches which data: by a grant, or by acting as an account that has one."""

from __future__ import annotations

import pytest

from vertex_training.plan.access import Access, Binding, reachable

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
    ],
)
def test_a_role_by_which_a_member_acts_as_an_account_reaches_its_data(role: str) -> None:
    assert [(e.verb, e.target, e.through) for e in _reached(role) if e.kind == "bucket"] == [
        ("reads", "acme-data", (ACCOUNT,))
    ]


def test_a_role_that_only_shows_an_account_reaches_nothing() -> None:
    assert [e for e in _reached("roles/iam.serviceAccountViewer") if e.kind == "bucket"] == []


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
    ],
)
def test_a_role_on_a_project_reaches_all_that_it_is_about(
    role: str, verb: str, target: str
) -> None:
    [access] = reachable([Binding("user:ann@example.com", role, "project", "acme-ml-dev")])
    assert access.verb == verb
    assert (access.kind, access.target) == (f"{target} of project", "acme-ml-dev")
