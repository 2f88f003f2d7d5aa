"""Grants that the stack file asks for by name."""

from tests.unit.infra.stacks import planned

GROUP = "group:analysts@example.com"
READ = "roles/storage.objectViewer"


def test_members_of_a_role_are_grants_on_the_one_resource():
    found = planned(
        buckets={"data": {"members": {READ: [GROUP, GROUP]}}},
        secrets={"key": {"members": {"roles/secretmanager.secretVersionAdder": [GROUP]}}},
        serviceAccounts={"trainer": {"members": {"roles/iam.workloadIdentityUser": [GROUP]}}},
        registry={"members": {"roles/artifactregistry.reader": [GROUP]}},
    ).extra_grants
    assert [(grant.resource, grant.role, grant.ours) for grant in found] == [
        ("b/acme-ml-prod-data-prod", READ, True),
        (
            "projects/acme-ml-prod/secrets/key-prod",
            "roles/secretmanager.secretVersionAdder",
            True,
        ),
        (
            "projects/acme-ml-prod/serviceAccounts/"
            "trainer-prod@acme-ml-prod.iam.gserviceaccount.com",
            "roles/iam.workloadIdentityUser",
            True,
        ),
        (
            "projects/acme-ml-prod/locations/us-central1/repositories/training-prod",
            "roles/artifactregistry.reader",
            True,
        ),
    ]


def test_a_role_in_another_project_is_its_owners_to_grant():
    roles = {
        "acme-ml-prod": ["roles/bigquery.jobUser"],
        "acme-warehouse": ["roles/bigquery.dataViewer"],
    }
    stack = planned(serviceAccounts={"trainer": {"roles": roles}})
    assert [grant.ours for grant in stack.extra_grants] == [True, False]
    told = stack.external_grants({})
    assert "The owners of acme-warehouse must do this" in told
    assert (
        "gcloud projects add-iam-policy-binding acme-warehouse "
        "--member='serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com' "
        "--role=roles/bigquery.dataViewer" in told
    )
    assert "roles/bigquery.dataViewer: the stack file asks for it" in told


def test_a_renamed_bucket_keeps_its_members():
    before = planned(buckets={"data": {"members": {READ: [GROUP]}}}).extra_grants
    renamed = {"corpus": {"formerly": "data", "members": {READ: [GROUP]}}}
    assert planned(buckets=renamed).extra_grants == before
