"""The project's APIs, and the service agent of Vertex AI.

Owns which APIs are enabled. Disables none: another stack of the project may need it, and disabling
``compute`` deletes every machine.
"""

from __future__ import annotations

from collections.abc import Collection

import pulumi
import pulumi_gcp as gcp

from vertex_training.infra import catalog


def needed(sections: Collection[str]) -> list[str]:
    """APIs of a stack that uses the given parts of the stack file, like ``secrets``."""
    return [
        row["api"]
        for row in catalog.load("apis.yaml")
        if row["when"] == "always" or row["when"] in sections
    ]


class Apis(pulumi.ComponentResource):
    """The APIs of one project, all enabled."""

    vertex_agent: pulumi.Output[str]
    """Address of the Vertex AI Service Agent, once it exists."""

    def __init__(
        self,
        name: str,
        project: str,
        *,
        sections: Collection[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("vertextraining:apis:Apis", name, None, opts)
        self.services = {
            api: gcp.projects.Service(
                f"{name}-{api.removesuffix('.googleapis.com')}",
                project=project,
                service=api,
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in needed(sections)
        }
        # Google creates a service agent on first use, and a grant to one that does not exist
        # fails. So it is created here, and everything else waits for it.
        self.agent = gcp.projects.ServiceIdentity(
            f"{name}-vertex-agent",
            project=project,
            service="aiplatform.googleapis.com",
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[self.services["aiplatform.googleapis.com"]]
            ),
        )
        self.vertex_agent = self.agent.email
        self.register_outputs({"vertex_agent": self.vertex_agent})

    def on(self, *apis: str) -> list[pulumi.Resource]:
        """The APIs a resource waits for, by short name: ``apis.on("storage")``."""
        return [self.services[f"{api}.googleapis.com"] for api in apis]
