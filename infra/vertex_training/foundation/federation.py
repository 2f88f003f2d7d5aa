"""Workload Identity Federation: a pool, and a provider that accepts one repository's tokens.

GitHub signs the tokens of all repositories. The provider's condition compares numeric ids, because
names of owners and repositories can be given up and registered by somebody else. The provider maps
each token to the one role (:class:`Role`) that its claims allow, and accounts are bound to roles.
Nothing compares the token's subject: its text has two forms, and a name in either.
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
#: The number of Dependabot's account: https://api.github.com/users/dependabot[bot]
DEPENDABOT: Final = "49699333"
#: Value of an attribute that a token does not have.
NONE: Final = "none"


class Role(enum.StrEnum):
    """Purposes for which a workflow's job signs in: one account each."""

    PREVIEW = enum.auto()
    """Pull requests."""
    PLAN = enum.auto()
    """Jobs of the GitHub environment's plans, ``NAME-plan``: drift checks, plans of the branch."""
    DEPLOY = enum.auto()
    """Jobs of the GitHub environment, on the deployed branch."""
    ADVANCE = enum.auto()
    """Slots of schedules, by a timer. It has no account: a stack lists its tokens among its
    ``submitters``."""
    BUILD = enum.auto()
    """Builds of images. It has no account: a stack lists its tokens among its ``builders``."""


def role_conditions(settings: Settings) -> dict[Role, str]:
    """CEL condition of each role. No two of them hold for one token."""
    on_branch = f"assertion.ref == 'refs/heads/{settings.github.branch}'"
    after_merge = f"{_event('push', 'workflow_dispatch')} && {_workflow('deploy')}"
    at_night = f"{_event('schedule', 'workflow_dispatch')} && {_workflow('drift')}"
    conditions = {
        Role.DEPLOY: (
            f"has(assertion.environment) && assertion.environment == '{settings.environment}' && "
            f"{on_branch} && {after_merge}"
        ),
        Role.PLAN: (
            f"has(assertion.environment) && assertion.environment == '{settings.environment}-plan'"
            f" && {on_branch} && ({after_merge} || {at_night})"
        ),
    }
    if settings.schedules:
        by_timer = f"{_event('schedule', 'workflow_dispatch')} && {_workflow('advance')}"
        conditions[Role.ADVANCE] = (
            f"has(assertion.environment) && "
            f"assertion.environment == '{settings.environment}-advance' && "
            f"{on_branch} && {by_timer}"
        )
    if settings.pull_requests:
        conditions[Role.PREVIEW] = (
            f"!has(assertion.environment) && {_event('pull_request')} && {_workflow('preview')} && "
            "!assertion.head_ref.startsWith('dependabot/')"
        )
        # A branch's images are built before it is reviewed: only where its previews run as well.
        conditions[Role.BUILD] = (
            f"has(assertion.environment) && "
            f"assertion.environment == '{settings.environment}-images' && "
            f"{on_branch} && {_event('workflow_dispatch')} && {_workflow('images')}"
        )
    return conditions


def _event(*names: str) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"assertion.event_name in [{listed}]"


def _workflow(name: str) -> str:
    """CEL condition: the job is written in this workflow, at the ref that the run is for.

    ``job_workflow_ref`` names the file with the job's steps: another one for a reusable workflow.
    Both sides name the repository, so the comparison holds after it is renamed.
    """
    file = f"assertion.repository + '/.github/workflows/{name}.yml@' + assertion.ref"
    return f"assertion.job_workflow_ref == {file}"


def attribute_mapping(settings: Settings) -> dict[str, str]:
    """CEL expressions of the token's attributes. IAM policies compare ``ci_role`` only."""
    role = f"'{NONE}'"
    for name, condition in role_conditions(settings).items():
        role = f"{condition} ? '{name}' : ({role})"
    claims = ("repository_id", "repository_owner_id", "ref", "event_name", "job_workflow_ref")
    return {
        # Shown in audit logs. GitHub's own subject can be longer than the 127 bytes allowed.
        "google.subject": "assertion.repository_id + ':' + assertion.run_id",
        **{f"attribute.{claim}": f"assertion.{claim}" for claim in claims},
        "attribute.environment": (f"has(assertion.environment) ? assertion.environment : '{NONE}'"),
        "attribute.ci_role": role,
    }


def attribute_condition(settings: Settings) -> str:
    """CEL condition on every token: the repository's numbers, a role, and not Dependabot."""
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
            description=_description(settings),
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
        """IAM member for all tokens with this role."""
        return f"principalSet://iam.googleapis.com/{self.pool}/attribute.ci_role/{role}"


def _description(settings: Settings) -> str:
    github = settings.github
    ids = f"owner {github.owner_id}, repository {github.repository_id}"
    return f"Workflows of {github.owner}/{github.repository} ({ids})"
