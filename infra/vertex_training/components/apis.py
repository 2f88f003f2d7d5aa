"""APIs of the project, and the service agent of Vertex AI.

APIs are never disabled: another stack may need them, and disabling ``compute`` deletes all
machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import catalog
from vertex_training.components.ordering import Scope
from vertex_training.settings.model import Settings

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
    """Vertex AI Service Agent; only set if ``apis`` has Vertex AI."""

    def __init__(
        self,
        scope: Scope,
        project: str,
        apis: Sequence[str],
        *,
        after: Sequence[pulumi.Resource] = (),
    ) -> None:
        """Enable ``apis``, short names like those of :func:`needed`."""
        super().__init__("vertextraining:apis:Apis", scope.name, None, scope.opts)
        inside = pulumi.ResourceOptions(parent=self, depends_on=after)
        self.services = {
            api: enable_api(f"{scope.name}-{api}", api, project, inside) for api in apis
        }
        if api := self.services.get(VERTEX_AI):
            # Google creates service agents on first use, and a grant to a missing one fails. So it
            # is created here, and everything else waits for it.
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
