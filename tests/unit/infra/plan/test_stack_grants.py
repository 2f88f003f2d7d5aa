"""Every grant that follows from a stack file: who gets which role, on what, and who makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.infra.stacks import HOST, HOST_NETWORK, PEERING, PSC, planned, stack
from vertex_training.plan import stack_grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.plan.network import network_grants

PROJECT = "acme-ml-prod"
ML = "group:ml@example.com"
AGENT = "serviceAccount:service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"


def rows(found: Iterable[GrantRequest]) -> list[tuple[str, str, str, str, bool]]:
    """Key, role, member, place, and whether the stack makes it."""
    return [(g.key, g.role, g.member, g.place, g.ours) for g in found]


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
