"""Dependencies on components as such, in a few words of state (docs/adr/0013).

The SDK has no public way to depend on a component without naming each of its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pulumi

from vertex_training.pulumi_internals import DependencyResource, children_of


def component_dependencies(
    components: Sequence[pulumi.Resource],
) -> pulumi.Output[Sequence[pulumi.Resource]]:
    """Dependencies on ``components`` themselves, in place of each resource inside of them.

    Use it for a resource whose parent waits for all of ``components`` already. The engine orders
    deletions by what a resource names itself, and where that is a component, by its children; it
    ignores what the parent names. The SDK would name all children.

    A resource that was registered and does not exist is named itself: ``--target`` left it out, or
    its creation failed. The engine only stops for resources that are named directly.
    """
    return pulumi.Output.from_input(_dependencies(components))


async def _dependencies(components: Sequence[pulumi.Resource]) -> Sequence[pulumi.Resource]:
    found: list[pulumi.Resource] = []
    for resource in components:
        if isinstance(resource, pulumi.ComponentResource):
            found.append(DependencyResource(await resource.urn.future() or ""))
        else:
            found.append(resource)
    if not pulumi.runtime.is_dry_run():  # in a preview, what is to be created has no id either
        for resource in custom_resources(components):
            if not await resource.id.is_known():
                found.append(resource)
    return found


def custom_resources(resources: Sequence[pulumi.Resource]) -> Iterator[pulumi.CustomResource]:
    """All resources in components, as the SDK finds them for ``depends_on``."""
    for resource in inside(resources):
        # One of another process, known by its URN alone, has nothing else.
        if isinstance(resource, pulumi.CustomResource) and not isinstance(
            resource, DependencyResource
        ):
            yield resource


def inside(resources: Iterable[pulumi.Resource]) -> Iterator[pulumi.Resource]:
    """The resources, and all that is in those that are components, at any depth."""
    for resource in resources:
        yield resource
        if isinstance(resource, pulumi.ComponentResource):
            yield from inside(children_of(resource))
