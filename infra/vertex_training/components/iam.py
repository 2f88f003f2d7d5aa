"""Declare the grants that ``vertex_training.plan`` requests, by type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.catalog.resource_types import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_DATASET,
    ON_KEY,
    ON_PROJECT,
    ON_REPOSITORY,
    ON_SECRET,
    ON_SUBNET,
)
from vertex_training.components.ordering import Scope
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.naming import is_service_agent
from vertex_training.plan import grants as grant_plan
from vertex_training.plan.grants import GrantRequest
from vertex_training.stack import Stack

#: Type of a grant -> function of resource name, request and granted resource.
MAKERS: Final[Mapping[str, Callable[..., pulumi.Resource]]] = {
    ON_PROJECT: lambda name, grant, _, **rest: gcp.projects.IAMMember(
        name, project=grant.project, **rest
    ),
    ON_BUCKET: lambda name, grant, on, **rest: gcp.storage.BucketIAMMember(
        name, bucket=on, condition=_condition(grant), **rest
    ),
    ON_DATASET: lambda name, grant, on, **rest: gcp.bigquery.DatasetIamMember(
        name, dataset_id=on, project=grant.project, **rest
    ),
    ON_SECRET: lambda name, _, on, **rest: gcp.secretmanager.SecretIamMember(
        name, secret_id=on, **rest
    ),
    ON_ACCOUNT: lambda name, _, on, **rest: gcp.serviceaccount.IAMMember(
        name, service_account_id=on, **rest
    ),
    ON_KEY: lambda name, _, on, **rest: gcp.kms.CryptoKeyIAMMember(name, crypto_key_id=on, **rest),
    ON_SUBNET: lambda name, grant, on, **rest: gcp.compute.SubnetworkIAMMember(
        name, subnetwork=on, project=grant.project, region=_location(grant), **rest
    ),
    ON_REPOSITORY: lambda name, grant, on, **rest: gcp.artifactregistry.RepositoryIamMember(
        name, repository=on, project=grant.project, location=_location(grant), **rest
    ),
}
#: Component types in the state: grants on the stack's key, and grants for jobs.
KEY_ACCESS: Final = "vertextraining:encryption:KeyAccess"
JOB_GRANTS: Final = "vertextraining:training:JobGrants"
#: Grant types that need the full name of the granted resource, not its last part.
FULL_NAMES: Final = (ON_SECRET, ON_ACCOUNT, ON_KEY)


class Grants(pulumi.ComponentResource):
    """Grants that no other component declares, and the service agents that receive them."""

    def __init__(
        self,
        token: str,
        scope: Scope,
        grants: Iterable[GrantRequest],
        *,
        project: str = "",
        services: Mapping[str, Sequence[pulumi.Resource]] | None = None,
        after: Sequence[pulumi.Resource] = (),
    ) -> None:
        """Declare the grants in a component of type ``token``.

        ``services`` maps services to their APIs. Their service agents in ``project`` are created
        first, since a grant to a missing agent fails.
        """
        super().__init__(token, scope.name, None, scope.opts)
        agents = [
            gcp.projects.ServiceIdentity(
                f"{scope.name}-{service}-agent",
                project=project,
                service=f"{service}.googleapis.com",
                opts=pulumi.ResourceOptions(parent=self, depends_on=api),
            )
            for service, api in (services or {}).items()
        ]
        options = pulumi.ResourceOptions(parent=self, depends_on=[*agents, *after])
        make_grants(scope.name, grants, options)
        self.register_outputs({})


def grants_beside(
    token: str, scope: Scope, grants: Iterable[GrantRequest], after: Sequence[pulumi.Resource]
) -> list[Grants]:
    """Declare a component with the grants that the stack makes, if there is any."""
    ours = [grant for grant in grants if grant.ours]
    return [Grants(token, scope, ours, after=after)] if ours else []


def log_external_grants(
    stack: Stack, requests: Mapping[str, JobRequest], component: pulumi.Resource | None = None
) -> None:
    """Log the external grants that other teams must make before jobs can run."""
    grants = stack.grants(requests)
    if report := grant_plan.report(stack.declared, grants):
        pulumi.log.info(report, component)


def make_grants(
    name: str,
    grants: Iterable[GrantRequest],
    opts: pulumi.ResourceOptions,
    outputs: Mapping[str, pulumi.Input[str]] | None = None,
) -> dict[str, pulumi.Resource]:
    """Declare the grants that the stack itself makes; return their resources by key.

    ``outputs`` maps resources or members of requests to outputs of the stack's resources, on which
    the grants then depend. Grants to service agents on other resources are kept on deletion, since
    other stacks of the project need them.
    """
    known = outputs or {}
    kept = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(retain_on_delete=True))

    def is_shared(grant: GrantRequest) -> bool:
        return is_service_agent(grant.member) and grant.resource not in known

    def name_of(grant: GrantRequest) -> str:
        return grant.resource if grant.type in FULL_NAMES else grant.resource.rpartition("/")[2]

    return {
        grant.key: MAKERS[grant.type](
            f"{name}-{grant.key}",
            grant,
            known.get(grant.resource, name_of(grant)),
            role=grant.role,
            member=known.get(grant.member, grant.member),
            opts=kept if is_shared(grant) else opts,
        )
        for grant in grants
        if grant.ours
    }


def _location(grant: GrantRequest) -> str:
    return grant.resource.split("/")[3]


def _condition(grant: GrantRequest) -> Any:
    return grant.condition and gcp.storage.BucketIAMMemberConditionArgs(
        title=grant.condition.title, expression=grant.condition.expression
    )
