"""GitHub's tokens instead of keys: a pool, and a provider that takes one repository's only.

GitHub signs the tokens of every repository there is, so the condition on numbers is what keeps all
others out: names of owners and repositories can be given up and registered by somebody else.
https://docs.cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from foundation.settings import Settings

ISSUER = "https://token.actions.githubusercontent.com"


def subject(settings: Settings, context: str) -> str:
    """``sub`` of tokens for a context like ``pull_request`` or ``environment:prod``.

    https://docs.github.com/en/actions/reference/security/oidc
    """
    return f"repo:{settings.github.owner}/{settings.github.repository}:{context}"


def deploys(settings: Settings) -> str:
    """Subject of the jobs that deploy: those of the environment."""
    return subject(settings, f"environment:{settings.environment}")


def plans(settings: Settings) -> tuple[str, ...]:
    """Subjects of the jobs that look: of pull requests, and of the deployed branch at night.

    A pull request from a fork gets no token at all.
    """
    branch = f"ref:refs/heads/{settings.github.branch}"
    return subject(settings, "pull_request"), subject(settings, branch)


def condition(settings: Settings) -> str:
    """What every token must fulfil; those that deploy must also come from the branch.

    A GitHub environment that forgot to restrict its branches does not open anything.
    """
    github = settings.github
    return (
        f"assertion.repository_owner_id == '{github.owner_id}' && "
        f"assertion.repository_id == '{github.repository_id}' && "
        f"(assertion.sub != '{deploys(settings)}' || "
        f"assertion.ref == 'refs/heads/{github.branch}')"
    )


class Federation(pulumi.ComponentResource):
    """The pool and its provider."""

    pool: str
    """Name of the pool, with the project's number, as IAM members and workflows spell it."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: the APIs that must be on."""
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
            attribute_condition=condition(settings),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.pool = (
            f"projects/{settings.project_number}/locations/global/workloadIdentityPools/{pool_id}"
        )
        self.register_outputs({"pool": self.pool})

    def principal(self, sub: str) -> str:
        """IAM member for the tokens with this subject."""
        return f"principal://iam.googleapis.com/{self.pool}/subject/{sub}"
