"""Workload Identity Federation: a pool, and a provider that accepts one repository's tokens.

GitHub signs the tokens of all repositories. The provider's condition compares numeric ids, because
names of owners and repositories can be given up and registered by somebody else.
https://docs.cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from foundation.settings import Settings

#: https://docs.github.com/en/actions/reference/security/oidc
ISSUER: Final = "https://token.actions.githubusercontent.com"


def subject(settings: Settings, context: str) -> str:
    """Subject (``sub``) of tokens for a context like ``pull_request`` or ``environment:prod``.

    https://docs.github.com/en/actions/reference/security/oidc
    """
    return f"repo:{settings.github.owner}/{settings.github.repository}:{context}"


def deploy_subject(settings: Settings) -> str:
    """Subject of the jobs that deploy: those of the GitHub environment."""
    return subject(settings, f"environment:{settings.environment}")


def preview_subjects(settings: Settings) -> tuple[str, ...]:
    """Subjects of the jobs that preview: pull requests, and nightly jobs of the deployed branch.

    GitHub gives pull requests of forks no token.
    """
    branch = f"ref:refs/heads/{settings.github.branch}"
    return subject(settings, "pull_request"), subject(settings, branch)


def attribute_condition(settings: Settings) -> str:
    """CEL condition on every token. A token that deploys must also come from the branch.

    So a GitHub environment without a branch restriction still deploys nothing else.
    """
    github = settings.github
    return (
        f"assertion.repository_owner_id == '{github.owner_id}' && "
        f"assertion.repository_id == '{github.repository_id}' && "
        f"(assertion.sub != '{deploy_subject(settings)}' || "
        f"assertion.ref == 'refs/heads/{github.branch}')"
    )


class Federation(pulumi.ComponentResource):
    """The workload identity pool and its provider."""

    pool: str
    """Resource name of the pool with the project's number, as IAM members and workflows use it."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: resources to wait for, such as enabled APIs."""
        super().__init__("vertextraining:bootstrap:Federation", name, None, opts)
        pool_id = f"github-{settings.stack}"
        pool = gcp.iam.WorkloadIdentityPool(
            f"{name}-pool",
            project=settings.project,
            workload_identity_pool_id=pool_id,
            display_name=f"GitHub ({settings.stack})",
            description="Workflows of one repository; see the condition of its provider",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        gcp.iam.WorkloadIdentityPoolProvider(
            f"{name}-provider",
            project=settings.project,
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id="github",
            display_name="GitHub Actions",
            oidc=gcp.iam.WorkloadIdentityPoolProviderOidcArgs(issuer_uri=ISSUER),
            attribute_mapping={
                "google.subject": "assertion.sub",
                "attribute.repository_id": "assertion.repository_id",
                "attribute.repository_owner_id": "assertion.repository_owner_id",
                "attribute.ref": "assertion.ref",
            },
            attribute_condition=attribute_condition(settings),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.pool = (
            f"projects/{settings.project_number}/locations/global/workloadIdentityPools/{pool_id}"
        )
        self.register_outputs({"pool": self.pool})

    def principal(self, sub: str) -> str:
        """IAM member for tokens with the subject ``sub``."""
        return f"principal://iam.googleapis.com/{self.pool}/subject/{sub}"
