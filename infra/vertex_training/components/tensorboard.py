"""The TensorBoard instance of a stack, which jobs name by ``${tensorboard.name}``.

An instance has no rights of its own: who may call Vertex AI in the project may read and write it.
Jobs find it by its labels, since the service chooses its id (``customjob.google.tensorboards``).
Its data is that of jobs, and has their key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.ordering import Scope
from vertex_training.settings.model import Settings

#: What an instance costs; it grows with the logs of jobs, which no file tells.
COST: Final = (
    "is billed by the data that jobs log to it, which no limit of the stack bounds: "
    "https://cloud.google.com/vertex-ai/pricing#tensorboard"
)


class Tensorboard(pulumi.ComponentResource):
    """One instance, in the stack's region."""

    name: pulumi.Output[str]
    """``projects/NUMBER/locations/REGION/tensorboards/ID``; unknown until it is made."""

    def __init__(
        self, scope: Scope, settings: Settings, *, after: Sequence[pulumi.Resource]
    ) -> None:
        """``after``: Vertex AI is enabled, and may use the key."""
        super().__init__("vertextraining:tensorboard:Tensorboard", scope.name, None, scope.opts)
        key = settings.key_for("jobs")
        instance = gcp.vertex.AiTensorboard(
            f"{scope.name}-instance",
            project=settings.project,
            region=settings.region,
            display_name=settings.tensorboard,
            description=f"Logs of training jobs of stack {settings.stack}",
            encryption_spec=(
                gcp.vertex.AiTensorboardEncryptionSpecArgs(kms_key_name=key) if key else None
            ),
            labels=settings.names.labels(settings.labels),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.name = instance.name
        self.register_outputs({"name": self.name})


def make_tensorboard(
    scope: Scope, settings: Settings, after: Sequence[pulumi.Resource]
) -> list[Tensorboard]:
    """The instance, and a line about its cost; nothing without one, or with one that is there."""
    if not settings.tensorboard or "/" in settings.tensorboard:
        return []
    pulumi.log.info(f"TensorBoard '{settings.tensorboard}' {COST}")
    return [Tensorboard(scope.child("tensorboard"), settings, after=after)]
