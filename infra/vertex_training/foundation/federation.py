"""Workload Identity Federation: a pool, and a provider that accepts tokens of one repository.

GitHub signs the tokens of all repositories. The provider's condition compares numeric ids, because
other users can register abandoned names of owners and repositories. The provider maps each token to
the role (:class:`Role`) that the token's claims allow, and accounts are bound to roles. The token's
subject is not compared, because it has two formats and contains names.
https://docs.cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.foundation.settings import Settings

#: https://docs.github.com/en/actions/reference/security/oidc
ISSUER: Final = "https://token.actions.githubusercontent.com"
#: Number of Dependabot's account: https://api.github.com/users/dependabot[bot]
DEPENDABOT: Final = "49699333"
#: Value of an attribute that a token does not have.
NONE: Final = "none"


class Role(enum.StrEnum):
    """Purpose of a workflow job. Each purpose has its own account or principal."""

    PREVIEW = enum.auto()
    """Previews of pull requests."""
    PLAN = enum.auto()
    """Plans and drift checks of the deployed branch, in the GitHub environment ``NAME-plan``."""
    DEPLOY = enum.auto()
    """Deployments of the deployed branch, in the GitHub environment."""
    ADVANCE = enum.auto()
    """Timed submissions of schedules. Has no account: a stack lists tokens in ``submitters``."""
    BUILD = enum.auto()
    """Builds of images. Has no account: a stack lists tokens in ``builders``."""


def role_conditions(settings: Settings) -> dict[Role, str]:
    """Return the CEL condition of each role. A token fulfills at most one condition."""

    def on_branch(suffix: str, runs: str) -> str:
        return (
            f"has(assertion.environment) && "
            f"assertion.environment == '{settings.environment}{suffix}' && "
            f"assertion.ref == 'refs/heads/{settings.github.branch}' && {runs}"
        )

    after_merge = _run("deploy", "push", "workflow_dispatch")
    at_night = _run("drift", "schedule", "workflow_dispatch")
    conditions = {
        Role.DEPLOY: on_branch("", after_merge),
        Role.PLAN: on_branch("-plan", f"({after_merge} || {at_night})"),
    }
    if settings.schedules:
        by_timer = _run("advance", "schedule", "workflow_dispatch")
        conditions[Role.ADVANCE] = on_branch("-advance", by_timer)
    if settings.pull_requests:
        conditions[Role.PREVIEW] = (
            f"!has(assertion.environment) && {_run('preview', 'pull_request')} && "
            "!assertion.head_ref.startsWith('dependabot/')"
        )
        # Images of a branch are built before the review, so builds require `pullRequests`.
        conditions[Role.BUILD] = on_branch("-images", _run("images", "workflow_dispatch"))
    return conditions


def _run(workflow: str, *events: str) -> str:
    """Return the CEL condition that one of these events started a workflow, at the run's ref.

    ``job_workflow_ref`` is the file with the job's steps. Both sides of the comparison contain the
    repository's name, so a new name does not change the result.
    """
    listed = ", ".join(f"'{event}'" for event in events)
    file = f"assertion.repository + '/.github/workflows/{workflow}.yml@' + assertion.ref"
    return f"assertion.event_name in [{listed}] && assertion.job_workflow_ref == {file}"


def attribute_mapping(settings: Settings) -> dict[str, str]:
    """Return the CEL expressions of token attributes. IAM policies compare only ``ci_role``."""
    role = f"'{NONE}'"
    for name, condition in role_conditions(settings).items():
        role = f"{condition} ? '{name}' : ({role})"
    claims = ("repository_id", "repository_owner_id", "ref", "event_name", "job_workflow_ref")
    return {
        # Audit logs contain this subject. GitHub's own subject can exceed the limit of 127 bytes.
        "google.subject": "assertion.repository_id + ':' + assertion.run_id",
        **{f"attribute.{claim}": f"assertion.{claim}" for claim in claims},
        "attribute.environment": (f"has(assertion.environment) ? assertion.environment : '{NONE}'"),
        "attribute.ci_role": role,
    }


def attribute_condition(settings: Settings) -> str:
    """Return the CEL condition for all tokens: the repository's ids, a role, no Dependabot."""
    github = settings.github
    return (
        f"assertion.repository_owner_id == '{github.owner_id}' && "
        f"assertion.repository_id == '{github.repository_id}' && "
        f"assertion.actor_id != '{DEPENDABOT}' && "
        f"attribute.ci_role != '{NONE}'"
    )


class Federation(pulumi.ComponentResource):
    """The workload identity pool and its provider."""

    pool: str
    """Resource name of the pool with the project's number, for IAM members and workflows."""

    def __init__(self, name: str, *, settings: Settings, after: Sequence[pulumi.Resource]) -> None:
        """Declare the pool and the provider, which depend on ``after``."""
        super().__init__("vertextraining:bootstrap:Federation", name)
        pool_id, github = f"github-{settings.stack}", settings.github
        pool = gcp.iam.WorkloadIdentityPool(
            f"{name}-pool",
            project=settings.project,
            workload_identity_pool_id=pool_id,
            display_name=f"GitHub ({settings.stack})",
            description=f"Workflows of {github.owner}/{github.repository} (owner "
            f"{github.owner_id}, repository {github.repository_id})",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        gcp.iam.WorkloadIdentityPoolProvider(
            f"{name}-provider",
            project=settings.project,
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id="github",
            display_name="GitHub Actions",
            oidc=gcp.iam.WorkloadIdentityPoolProviderOidcArgs(issuer_uri=ISSUER),
            attribute_mapping=attribute_mapping(settings),
            attribute_condition=attribute_condition(settings),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.pool = (
            f"projects/{settings.project_number}/locations/global/workloadIdentityPools/{pool_id}"
        )
        self.register_outputs({"pool": self.pool})

    def principals(self, role: Role) -> str:
        """Return the IAM member for all tokens that have this role."""
        return f"principalSet://iam.googleapis.com/{self.pool}/attribute.ci_role/{role}"
