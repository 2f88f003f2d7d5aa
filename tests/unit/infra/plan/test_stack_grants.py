"""Every grant that follows from a stack file: who gets which role, on what, and who makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE, HOST, HOST_NETWORK, PEERING, PSC, planned, stack
from vertex_training.plan import facts, grants, stack_grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.network import network_grants
from vertex_training.plan.references import reference_table
from vertex_training.settings.model import Settings

PROJECT = "acme-ml-prod"
TRAINER = f"serviceAccount:trainer-prod@{PROJECT}.iam.gserviceaccount.com"
ML = "group:ml@example.com"
AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
ACCOUNT = f"projects/{PROJECT}/serviceAccounts/trainer-prod@{PROJECT}.iam.gserviceaccount.com"


def rows(found: Iterable[GrantRequest]) -> list[tuple[str, str, str, str, bool]]:
    """Key, role, member, place, and whether the stack makes it."""
    return [(g.key, g.role, g.member, g.place, g.ours) for g in found]


def of_account(*, fetches: bool = False, **account: Any) -> list[tuple[str, str, str, str, bool]]:
    settings = stack(
        deployers=["user:ci@example.com"],
        buckets={"data": {}, "out": {}, "theirs": {"existing": "acme-x", "project": "acme-data"}},
        secrets={"key": {}},
        serviceAccounts={"trainer": account},
    )
    return rows(stack_grants.account_grants(settings, "trainer", fetches_packages=fetches))


LOGS = ("logs", "roles/logging.logWriter", TRAINER, f"projects/{PROJECT}", True)
ACTING = [
    (f"submitter-{member}", "roles/iam.serviceAccountUser", member, ACCOUNT, True)
    for member in (ML, "user:ci@example.com")
]


def reads(bucket: str, name: str, *, ours: bool = True) -> tuple[str, str, str, str, bool]:
    return (f"reads-{bucket}", "roles/storage.objectViewer", TRAINER, f"b/{name}", ours)


def test_an_account_that_is_asked_nothing_of_writes_logs_alone() -> None:
    assert of_account() == [LOGS, *ACTING]


def test_an_account_gets_what_it_names_once_and_the_wider_of_two_roles() -> None:
    found = of_account(
        fetches=True,
        reads=["data", "out", "data", "theirs"],
        writes=["out"],
        secrets=["key", "key"],
        callsVertex=True,
        datasets={"acme-warehouse.clicks": ["roles/bigquery.dataViewer"]},
    )
    assert found == [
        reads("data", "acme-ml-prod-data-prod"),
        ("writes-out", "roles/storage.objectUser", TRAINER, "b/acme-ml-prod-out-prod", True),
        reads("theirs", "acme-x", ours=False),
        reads("staging", "acme-ml-prod-staging-prod"),
        (
            *("reads-secret-key", "roles/secretmanager.secretAccessor", TRAINER),
            *("projects/acme-ml-prod/secrets/key-prod", True),
        ),
        LOGS,
        ("vertex", "roles/aiplatform.user", TRAINER, f"projects/{PROJECT}", True),
        ("tables", "roles/bigquery.readSessionUser", TRAINER, f"projects/{PROJECT}", True),
        *ACTING,
    ]


def test_an_account_of_another_project_is_its_owners_and_lets_the_agent_run_jobs_as_it() -> None:
    email = "guest-1@acme-guests.iam.gserviceaccount.com"
    path = f"projects/acme-guests/serviceAccounts/{email}"
    found = of_account(existing=email)
    assert found[1:] == [
        (f"submitter-{ML}", "roles/iam.serviceAccountUser", ML, path, False),
        (
            *("submitter-user:ci@example.com", "roles/iam.serviceAccountUser"),
            *("user:ci@example.com", path, False),
        ),
        ("agent", "roles/iam.serviceAccountTokenCreator", AGENT, path, False),
    ]
    assert (found[0][0], found[0][2]) == ("logs", f"serviceAccount:{email}")


IMAGE = {"context": "jobs/x", "digest": f"sha256:{'1' * 64}"}


def test_who_builds_images_may_add_sources_and_change_none() -> None:
    kim = "user:kim@example.com"
    settings = Settings.model_validate(BASE | {"images": {"x": IMAGE}, "builders": [kim, kim]})
    builder = f"serviceAccount:image-build-prod@{PROJECT}.iam.gserviceaccount.com"
    acting = (
        f"projects/{PROJECT}/serviceAccounts/image-build-prod@{PROJECT}.iam.gserviceaccount.com"
    )
    repository = f"projects/{PROJECT}/locations/us-central1/repositories/training-prod"
    staging, project = "b/acme-ml-prod-staging-prod", f"projects/{PROJECT}"
    found = list(stack_grants.build_grants(settings))
    assert rows(found) == [
        ("logs", "roles/logging.logWriter", builder, project, True),
        ("reads-source", "roles/storage.objectViewer", builder, staging, True),
        ("pushes", "roles/artifactregistry.writer", builder, repository, True),
        (f"builder-{kim}", "roles/cloudbuild.builds.editor", kim, project, True),
        (f"builder-logs-{kim}", "roles/logging.viewer", kim, project, True),
        (f"builder-reads-{kim}", "roles/storage.objectViewer", kim, staging, True),
        (f"builder-adds-{kim}", "roles/storage.objectCreator", kim, staging, True),
        (f"builder-pulls-{kim}", "roles/artifactregistry.reader", kim, repository, True),
        (f"builder-acts-{kim}", "roles/iam.serviceAccountUser", kim, acting, True),
    ]
    [conditional] = [grant for grant in found if grant.condition]
    assert conditional.role == "roles/storage.objectCreator"
    assert conditional.condition == grants.Condition(
        "sources of images",
        "resource.name.startsWith('projects/_/buckets/acme-ml-prod-staging-prod/objects/images/')",
    )
    derived = stack_grants.derived_grants(settings)
    assert [grant.key for grant in derived] == [grant.key for grant in found]
    assert stack_grants.derived_grants(stack(builders=["user:kim@example.com"])) == []


KEY = "projects/{}/locations/us-central1/keyRings/ml/cryptoKeys/k"


@pytest.mark.parametrize(
    ("given", "users"),
    [
        ({}, ["buckets", "registry"]),
        ({"secrets": {"a": {}}}, ["buckets", "registry", "secrets"]),
        ({"secrets": {"a": {"existing": "projects/acme-ml-prod/secrets/x"}}},
         ["buckets", "registry"]),
        ({"registry": {"existing": "projects/acme-x/locations/us-central1/repositories/r"}},
         ["buckets"]),
    ],
)  # fmt: skip
def test_the_agents_of_services_that_store_something_may_use_the_key(
    given: dict[str, Any], users: list[str]
) -> None:
    domains = {
        "buckets": "gs-project-accounts",
        "registry": "gcp-sa-artifactregistry",
        "secrets": "gcp-sa-secretmanager",
    }
    for project, ours in ((PROJECT, True), ("acme-keys", False)):
        settings = stack(encryption={"key": KEY.format(project)}, **given)
        assert rows(stack_grants.encryption_grants(settings)) == [
            (
                user,
                "roles/cloudkms.cryptoKeyEncrypterDecrypter",
                f"serviceAccount:service-109876543210@{domains[user]}.iam.gserviceaccount.com",
                KEY.format(project),
                ours,
            )
            for user in users
        ]
    assert stack_grants.encryption_grants(stack(**given)) == []
    only = stack(encryption={"key": KEY.format(PROJECT), "covers": ["jobs"]}, **given)
    assert stack_grants.encryption_grants(only) == []


def test_every_list_of_members_of_a_stack_file_is_known_by_its_path() -> None:
    group = "group:x@example.com"
    settings = stack(
        builders=["user:b@example.com"],
        deployers=["user:d@example.com"],
        teams={"vision": {"submitters": ["user:v@example.com"]}},
        buckets={"data": {"members": {"roles/storage.objectViewer": [group]}}},
        secrets={"key": {"members": {"roles/secretmanager.viewer": [group]}}},
        serviceAccounts={
            "trainer": {
                "submitters": ["user:s@example.com"],
                "members": {"roles/iam.workloadIdentityUser": [group]},
            }
        },
        registry={"members": {"roles/artifactregistry.reader": [group]}},
    )
    assert dict(stack_grants.member_lists(settings)) == {
        ("submitters",): [ML],
        ("deployers",): ["user:d@example.com"],
        ("builders",): ["user:b@example.com"],
        ("teams", "vision", "submitters"): ["user:v@example.com"],
        ("serviceAccounts", "trainer", "submitters"): ["user:s@example.com"],
        ("buckets", "data", "members", "roles/storage.objectViewer"): [group],
        ("secrets", "key", "members", "roles/secretmanager.viewer"): [group],
        ("serviceAccounts", "trainer", "members", "roles/iam.workloadIdentityUser"): [group],
        ("registry", "members", "roles/artifactregistry.reader"): [group],
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"network": PEERING}, []),
        (
            {"network": PSC},
            [("attaches", "roles/compute.networkAdmin", AGENT, f"projects/{PROJECT}", True)],
        ),
        (
            {"network": PSC | {"dnsPeering": {"a": {
                "domain": "a.internal.", "targetProject": "acme-dns-1"}}}},
            [
                ("attaches", "roles/compute.networkAdmin", AGENT, f"projects/{PROJECT}", True),
                ("looks-up-acme-dns-1", "roles/dns.peer", AGENT, "projects/acme-dns-1", False),
                (f"looks-up-{PROJECT}", "roles/dns.peer", AGENT, f"projects/{PROJECT}", True),
            ],
        ),
        *(
            (
                {
                    "network": {
                        **{"mode": "peering", "existing": HOST_NETWORK},
                        **{"ranges": {"workers": {"existing": "theirs"}}},
                    },
                    "sharedVpc": HOST | {"manageHost": managed},
                },
                [
                    ("uses-agent", "roles/compute.networkUser", AGENT, "projects/acme-net-prod",
                     managed),
                    (f"uses-{ML}", "roles/compute.networkUser", ML, "projects/acme-net-prod",
                     managed),
                ],
            )
            for managed in (True, False)
        ),
    ],
)  # fmt: skip
def test_who_may_use_the_network(given: dict[str, Any], found: Any) -> None:
    plan = planned(**given)
    assert rows(network_grants(plan.declared, plan.network)) == found


def test_a_subnet_of_a_host_is_used_by_the_agent_and_by_who_submits_or_deploys() -> None:
    plan = planned(
        network=PSC | {"existing": HOST_NETWORK},
        sharedVpc=HOST,
        deployers=["user:ci@example.com", ML],
    )
    subnet = "projects/acme-net-prod/regions/us-central1/subnetworks/training-prod"
    found = rows(network_grants(plan.declared, plan.network))
    assert found[1:] == [
        (f"uses-{name}", "roles/compute.networkUser", member, subnet, True)
        for name, member in (("agent", AGENT), (ML, ML), ("user:ci@example.com",) * 2)
    ]


def test_limits_of_a_stack_and_of_teams_reach_the_rules_of_jobs() -> None:
    settings = stack(
        limits={"maxUsdPerJob": 5, "machineTypes": ["n1-*"], "strategies": ["SPOT"]},
        teams={"vision": {"limits": {"maxUsdPerTeam": 9}}, "speech": {}},
        serviceAccounts={"a": {}, "b": {"team": "vision"}, "c": {"team": "speech"}},
    )
    limits = facts.job_limits(settings)
    assert (limits.usd, limits.priced, limits.machine_types, limits.strategies, limits.source) == (
        *(5, True, ("n1-*",), ("SPOT",), "limits"),
    )
    teams = facts.account_limits(settings)
    assert {address.partition("@")[0]: (each.usd, each.priced, each.source)
            for address, each in teams.items()} == {
        "b-prod": (None, True, "teams.vision.limits"),
        "c-prod": (None, False, "teams.speech.limits"),
    }  # fmt: skip
    unpriced = stack(limits={"maxUsdPerJob": 5, "allowUnpriced": True})
    assert facts.job_limits(unpriced).priced is False
    plain = facts.job_limits(stack())
    assert (plain.usd, plain.priced, plain.machine_types, plain.strategies) == (
        *(None, False, None, None),
    )


def test_what_a_file_leaves_out_comes_of_three_fields_and_labels() -> None:
    given = {
        "serviceAccount": "${serviceAccounts.trainer}",
        "timeout": "60s",
        "outputDirectory": "gs://a",
        "labels": {"a": "b"},
    }
    found = facts.file_defaults(stack(jobDefaults=given, serviceAccounts={"trainer": {}}))
    assert dict(found.fields) == {
        ("serviceAccount",): "${serviceAccounts.trainer}",
        ("scheduling", "timeout"): "60s",
        ("baseOutputDirectory", "outputUriPrefix"): "gs://a",
    }
    assert found.labels == {"a": "b"}
    assert dict(facts.file_defaults(stack()).fields) == {}


def test_all_that_job_files_may_name() -> None:
    plan = planned(
        buckets={"data": {}},
        secrets={"key": {}},
        serviceAccounts={"trainer": {}},
        images={"x": {"digest": f"sha256:{'1' * 64}"}},
        network=PSC,
    )
    table = reference_table(plan.declared, plan.network, plan.reservations, {}, {})
    attachment = f"projects/{PROJECT}/regions/us-central1/networkAttachments/training-prod"
    assert table == {
        "stack.name": "prod",
        "stack.project": PROJECT,
        "stack.projectNumber": "109876543210",
        "stack.region": "us-central1",
        "buckets.data": "gs://acme-ml-prod-data-prod",
        "buckets.data.name": "acme-ml-prod-data-prod",
        "buckets.data.mount": "/gcs/acme-ml-prod-data-prod",
        "serviceAccounts.trainer": f"trainer-prod@{PROJECT}.iam.gserviceaccount.com",
        "secrets.key": f"projects/{PROJECT}/secrets/key-prod",
        "secrets.key.value": f"projects/{PROJECT}/secrets/key-prod/versions/latest#value",
        "images.x": "us-central1-docker.pkg.dev/acme-ml-prod/training-prod/x@sha256:" + "1" * 64,
        "network.attachment": attachment,
        "network.interface": {"networkAttachment": attachment},
    }
