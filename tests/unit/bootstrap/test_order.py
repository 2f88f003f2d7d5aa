"""What each resource of an environment lies in and waits for, and what the environment tells."""

from __future__ import annotations

from typing import Any, Final

import pulumi
import pytest

from tests.unit.bootstrap.recorder import registered

COMPUTE: Final = "109876543210-compute"
EVERYTHING: Final = {
    "schedules": True,
    "pullRequests": True,
    "protectedAccounts": [f"{COMPUTE}@developer.gserviceaccount.com"],
}


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def export(name: str, value: Any) -> None:
        pulumi.Output.from_input(value).apply(lambda known: found.update({name: known}))

    monkeypatch.setattr(pulumi, "export", export)
    return found


OUTPUTS: Final = {
    "backend": "gs://acme-ml-prod-pulumi-state",
    "secretsProvider": "gcpkms://projects/acme-ml-prod/locations/us-central1/keyRings/pulumi-prod/"
    "cryptoKeys/stack-secrets",
    "workloadIdentityProvider": "projects/109876543210/locations/global/workloadIdentityPools/"
    "github-prod/providers/github",
    "planAccount": "ci-plan-prod@acme-ml-prod.iam.gserviceaccount.com",
    "deployAccount": "ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com",
    "deployer": "serviceAccount:ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com",
}
POOL: Final = (
    "principalSet://iam.googleapis.com/projects/109876543210/locations/global/"
    "workloadIdentityPools/github-prod/attribute.ci_role"
)


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, {}),
        (
            EVERYTHING,
            {
                "advancer": f"{POOL}/advance",
                "previewAccount": "ci-preview-prod@acme-ml-prod.iam.gserviceaccount.com",
                "builder": f"{POOL}/build",
            },
        ),
    ],
)
def test_an_environment_tells_what_github_and_the_stack_need(
    exported: dict[str, Any], given: dict[str, Any], more: dict[str, str]
) -> None:
    registered("prod", **given)
    assert exported == OUTPUTS | more
