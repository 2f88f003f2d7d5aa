"""APIs of the project, service agents, and the grants that ``vertex_training.plan`` requests.

APIs are never disabled: another stack may need them, and disabling ``compute`` deletes all
machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import catalog
from vertex_training.catalog import resource_types
from vertex_training.components.ordering import Resources, Scope
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.naming import is_service_agent
from vertex_training.plan import grants as grant_plan
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack

DOMAIN: Final = ".googleapis.com"
VERTEX_AI: Final = "aiplatform"


def needed(settings: Settings) -> list[str]:
    """Return the short names of the APIs that a stack needs (``catalog/apis.yaml``)."""
    network = settings.network
    used = {
        "always": True,
        "batch": any(job.backend == "batch" for job in settings.jobs.values()),
        "secrets": bool(settings.secrets),
        "tables": reads_tables(settings) or bool(settings.snapshots),
        "datasets": reads_tables(settings),
        "imageBuilds": settings.builds_images,
        "scanning": bool(settings.registry.scanning),
        "peering": network.mode == "peering",
        "dnsPeering": bool(network.dns_peering),
        "watched": settings.is_watched or settings.stops_idle_jobs,
        "budget": settings.budget is not None,
        "encryption": settings.encryption is not None,
    }
    return [
        row["api"].removesuffix(DOMAIN) for row in catalog.load("apis.yaml") if used[row["when"]]
    ]


def reads_tables(settings: Settings) -> bool:
    """Return True if an account has access to BigQuery datasets."""
    return any(account.datasets for account in settings.service_accounts.values())


def enable_api(
    name: str, api: str, project: str, opts: pulumi.ResourceOptions
) -> gcp.projects.Service:
    """Declare an enabled API, like ``storage``. ``pulumi destroy`` does not disable the API."""
    return gcp.projects.Service(
        name, project=project, service=f"{api}{DOMAIN}", disable_on_destroy=False, opts=opts
    )


class Apis(pulumi.ComponentResource):
    """The enabled APIs of one project."""

    agent: gcp.projects.ServiceIdentity
    """Vertex AI Service Agent; missing if Vertex AI is not in ``apis``."""

    def __init__(
        self, scope: Scope, project: str, apis: Sequence[str], *, after: Resources = ()
    ) -> None:
        """Enable ``apis``, short names like those of :func:`needed`."""
        super().__init__("vertextraining:apis:Apis", scope.name, None, scope.opts)
        inside = pulumi.ResourceOptions(parent=self, depends_on=after)
        self.services = {
            api: enable_api(f"{scope.name}-{api}", api, project, inside) for api in apis
        }
        if api := self.services.get(VERTEX_AI):
            # Google creates service agents on first use, and a grant to a missing agent fails. So
            # this component creates the agent, and other components wait for it.
            self.agent = gcp.projects.ServiceIdentity(
                f"{scope.name}-vertex-agent",
                project=project,
                service=f"{VERTEX_AI}{DOMAIN}",
                opts=pulumi.ResourceOptions(parent=self, depends_on=[api]),
            )
        self.register_outputs({"vertex_agent": self.agent.email} if api else {})

    def on(self, *apis: str) -> list[pulumi.Resource]:
        """Return the named APIs as dependencies of a resource: ``apis.on("storage")``."""
        return [self.services[api] for api in apis]


#: Type of a grant -> name of the input for the granted resource.
RESOURCE_INPUTS: Final = {
    resource_types.ON_PROJECT: "project",
    resource_types.ON_BUCKET: "bucket",
    resource_types.ON_DATASET: "dataset_id",
    resource_types.ON_SECRET: "secret_id",
    resource_types.ON_ACCOUNT: "service_account_id",
    resource_types.ON_KEY: "crypto_key_id",
    resource_types.ON_SUBNET: "subnetwork",
    resource_types.ON_REPOSITORY: "repository",
}
#: Types of grants with separate inputs for the location of the granted resource.
LOCATIONS: Final = {resource_types.ON_SUBNET: "region", resource_types.ON_REPOSITORY: "location"}
#: Component types in the state: grants on the stack's key, and grants for jobs.
KEY_ACCESS: Final = "vertextraining:encryption:KeyAccess"
JOB_GRANTS: Final = "vertextraining:training:JobGrants"
#: Grant types that need the full name of the granted resource, not its last part.
FULL_NAMES: Final = (resource_types.ON_SECRET, resource_types.ON_ACCOUNT, resource_types.ON_KEY)


class Grants(pulumi.ComponentResource):
    """Grants that no other component declares, and the service agents that receive them."""

    def __init__(
        self,
        token: str,
        scope: Scope,
        grants: Iterable[GrantRequest],
        *,
        project: str = "",
        services: Mapping[str, Resources] | None = None,
        after: Resources = (),
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
                service=f"{service}{DOMAIN}",
                opts=pulumi.ResourceOptions(parent=self, depends_on=api),
            )
            for service, api in (services or {}).items()
        ]
        options = pulumi.ResourceOptions(parent=self, depends_on=[*agents, *after])
        make_grants(scope.name, grants, options)
        self.register_outputs({})


def grants_beside(
    token: str, scope: Scope, grants: Iterable[GrantRequest], after: Resources
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
    resources: dict[str, pulumi.Resource] = {}
    for grant in (grant for grant in grants if grant.ours):
        # The type `gcp:storage/bucketIAMMember:BucketIAMMember` is the class of `gcp.storage`.
        _, module, name_of_class = grant.type.split(":")
        make = getattr(getattr(gcp, module.partition("/")[0]), name_of_class)
        is_shared = is_service_agent(grant.member) and grant.resource not in known
        resources[grant.key] = make(
            f"{name}-{grant.key}",
            **_inputs(grant, known.get(grant.resource)),
            role=grant.role,
            member=known.get(grant.member, grant.member),
            opts=kept if is_shared else opts,
        )
    return resources


def _inputs(grant: GrantRequest, output: pulumi.Input[str] | None) -> dict[str, Any]:
    is_full = not grant.resource or grant.type in FULL_NAMES
    resource = grant.resource if is_full else grant.resource.rpartition("/")[2]
    inputs: dict[str, Any] = {RESOURCE_INPUTS[grant.type]: resource if output is None else output}
    if grant.type in (*LOCATIONS, resource_types.ON_DATASET, resource_types.ON_PROJECT):
        inputs["project"] = grant.project
    if grant.type in LOCATIONS:
        inputs[LOCATIONS[grant.type]] = grant.resource.split("/")[3]
    if condition := grant.condition:
        title, expression = condition.title, condition.expression
        inputs["condition"] = {"title": title, "expression": expression}
    return inputs
