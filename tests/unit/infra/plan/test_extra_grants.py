"""Grants that the stack file asks for by name."""

import shlex

import pytest

from tests.unit.infra.stacks import external_report, planned, refused
from vertex_training.plan.grants import READ_TABLES
from vertex_training.plan.stack_grants import derived_grants, extra_grants

GROUP = "group:analysts@example.com"
READ = "roles/storage.objectViewer"


def test_members_of_a_role_are_grants_on_the_one_resource():
    found = extra_grants(
        planned(
            buckets={"data": {"members": {READ: [GROUP, GROUP]}}},
            secrets={"key": {"members": {"roles/secretmanager.secretVersionAdder": [GROUP]}}},
            serviceAccounts={"trainer": {"members": {"roles/iam.workloadIdentityUser": [GROUP]}}},
            registry={"members": {"roles/artifactregistry.reader": [GROUP]}},
        ).declared
    )
    # What states name never moves: a key is part of a resource's name.
    assert [grant.key for grant in found] == [
        f"buckets-data-{READ}-{GROUP}",
        f"secrets-key-roles/secretmanager.secretVersionAdder-{GROUP}",
        f"serviceAccounts-trainer-roles/iam.workloadIdentityUser-{GROUP}",
        f"registry-roles/artifactregistry.reader-{GROUP}",
    ]
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
    assert [(grant.key, grant.ours) for grant in extra_grants(stack.declared)] == [
        ("serviceAccounts-trainer-roles/bigquery.jobUser-acme-ml-prod", True),
        ("serviceAccounts-trainer-roles/bigquery.dataViewer-acme-warehouse", False),
    ]
    told = external_report(stack)
    assert "The owners of acme-warehouse must do this" in told
    assert (
        "gcloud projects add-iam-policy-binding acme-warehouse "
        "--member='serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com' "
        "--role=roles/bigquery.dataViewer" in told
    )
    assert "roles/bigquery.dataViewer: the stack file asks for it" in told


def test_a_renamed_bucket_keeps_its_members():
    before = extra_grants(planned(buckets={"data": {"members": {READ: [GROUP]}}}).declared)
    renamed = {"corpus": {"formerly": "data", "members": {READ: [GROUP]}}}
    assert extra_grants(planned(buckets=renamed).declared) == before


def test_roles_on_a_dataset_of_the_project_are_the_stacks_to_grant():
    datasets = {"acme-ml-prod.clicks": ["roles/bigquery.dataViewer"]}
    found = planned(serviceAccounts={"trainer": {"datasets": datasets}})
    [grant] = extra_grants(found.declared)
    assert (grant.ours, grant.resource) == (True, "projects/acme-ml-prod/datasets/clicks")
    assert external_report(found) == ""


def test_only_an_account_that_reads_tables_may_make_read_sessions_in_the_project():
    def sessions(**account):
        grants = derived_grants(planned(serviceAccounts={"trainer": account}).declared)
        return [(each.project, each.ours) for each in grants if each.role == READ_TABLES]

    datasets = {"acme-warehouse.clicks": ["roles/bigquery.dataViewer"]}
    assert sessions(datasets=datasets) == [("acme-ml-prod", True)]
    assert sessions() == []
    asked = {"acme-ml-prod": [READ_TABLES]}
    assert sessions(datasets=datasets, roles=asked) == []  # granted once, as the stack file asks


def test_roles_on_a_dataset_are_its_owners_to_grant_in_one_statement():
    datasets = {"acme-warehouse.clicks": ["roles/bigquery.dataViewer"]}
    found = planned(serviceAccounts={"trainer": {"datasets": datasets}})
    [grant] = extra_grants(found.declared)
    assert (grant.ours, grant.resource) == (False, "projects/acme-warehouse/datasets/clicks")
    told = external_report(found)
    assert "acme-warehouse  dataset clicks  roles/bigquery.dataViewer" in told
    [command] = [line for line in told.splitlines() if line.startswith("bq ")]
    assert shlex.split(command) == [
        "bq",
        "query",
        "--project_id=acme-warehouse",
        "--use_legacy_sql=false",
        "GRANT `roles/bigquery.dataViewer` ON SCHEMA `acme-warehouse`.clicks TO "
        '"serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"',
    ]


@pytest.mark.parametrize("name", ["clicks", "acme-warehouse.a b", "acme-warehouse.x`; DROP", "a.b"])
def test_a_dataset_has_its_project_and_no_sql(name):
    account = {"trainer": {"datasets": {name: ["roles/bigquery.dataViewer"]}}}
    [(path, _)] = refused(serviceAccounts=account)
    assert path.startswith("serviceAccounts.trainer.datasets")


def test_no_basic_role_is_asked_for_on_a_dataset():
    account = {"trainer": {"datasets": {"acme-warehouse.clicks": ["roles/owner"]}}}
    [(path, text)] = refused(serviceAccounts=account)
    assert path == "serviceAccounts.trainer.datasets.acme-warehouse.clicks[0]"
    assert "is a basic role" in text
