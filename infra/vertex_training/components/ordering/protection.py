"""The first resource that a destroy meets; in a protected environment it is the one that refuses.

Pulumi looks at the protection of a resource when its turn comes. Without this one, a ``destroy``
cancels the jobs and deletes secrets and images, and stops at the protected bucket at the end
(docs/adr/0029).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pulumi

from vertex_training.components.ordering.component_dependencies import custom_resources
from vertex_training.pulumi_internals import DependencyResource


class Protection(pulumi.ComponentResource):
    """Waits for all other components, so it goes before them. Has nothing inside."""

    def __init__(
        self,
        name: str,
        protects: bool,
        *,
        after: Sequence[pulumi.ComponentResource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``protects``: whether anything of the stack is protected. ``after``: every component.

        It is there also where nothing is protected: one that left the program while the state
        protects it could never be deleted.
        """
        waits = pulumi.ResourceOptions(depends_on=_everything_in(after), protect=protects)
        opts = pulumi.ResourceOptions.merge(opts, waits)
        super().__init__("vertextraining:protection:Protection", name, None, opts)
        self.register_outputs({})


def _everything_in(
    components: Sequence[pulumi.ComponentResource],
) -> pulumi.Output[Sequence[pulumi.Resource]]:
    """All resources in the components that could be registered.

    Named one by one: after a deletion that was refused the engine goes on with what the refused
    resource does not need, and it does not count what is inside of a component it names.
    """

    async def registered() -> Sequence[pulumi.Resource]:
        found = [*components, *custom_resources(components)]
        # One that cannot be created ends the program by itself.
        urns = await asyncio.gather(*(each.urn.future() for each in found), return_exceptions=True)
        return [DependencyResource(urn) for urn in urns if urn and isinstance(urn, str)]

    return pulumi.Output.from_input(registered())
