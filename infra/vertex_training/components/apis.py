"""The project's APIs, and the service agent of Vertex AI.

Owns which APIs are enabled. Disables none: another stack of the project may need it, and disabling
``compute`` deletes every machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import catalog

DOMAIN: Final = ".googleapis.com"
VERTEX_AI: Final = "aiplatform.googleapis.com"


def needed(sections: Collection[str]) -> list[str]:
    """APIs of a stack that uses the given parts of the stack file, like ``secrets``."""
    return [
        row["api"]
        for row in catalog.load("apis.yaml")
        if row["when"] == "always" or row["when"] in sections
    ]


def enable_api(
    name: str, api: str, project: str, opts: pulumi.ResourceOptions
) -> gcp.projects.Service:
    """An API of a project, like ``storage.googleapis.com``; it stays on when this goes."""
    return gcp.projects.Service(
        name, project=project, service=api, disable_on_destroy=False, opts=opts
    )


class Apis(pulumi.ComponentResource):
    """The APIs of one project, all enabled."""

    agent: gcp.projects.ServiceIdentity
    """The Vertex AI Service Agent; only with Vertex AI among the APIs."""

    def __init__(
        self,
        name: str,
        project: str,
        apis: Sequence[str],
        *,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``apis`` by their full names, like :func:`needed` lists them."""
        super().__init__("vertextraining:apis:Apis", name, None, opts)
        inside = pulumi.ResourceOptions(parent=self, depends_on=after)
        self.services = {
            api: enable_api(f"{name}-{api.removesuffix(DOMAIN)}", api, project, inside)
            for api in apis
        }
        if api := self.services.get(VERTEX_AI):
            # Google creates a service agent on first use, and a grant to one that does not exist
            # fails. So it is created here, and everything else waits for it.
            self.agent = gcp.projects.ServiceIdentity(
                f"{name}-vertex-agent",
                project=project,
                service=VERTEX_AI,
                opts=pulumi.ResourceOptions(parent=self, depends_on=[api]),
            )
        self.register_outputs({"vertex_agent": self.agent.email} if api else {})

    def on(self, *apis: str) -> list[pulumi.Resource]:
        """The APIs a resource waits for, by short name: ``apis.on("storage")``."""
        return [self.services[f"{api}{DOMAIN}"] for api in apis]
