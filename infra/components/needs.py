"""What every job of a stack depends on, in a few words of state (docs/adr/0013)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pulumi
from pulumi.resource import DependencyResource


def as_wholes(parts: Sequence[pulumi.Resource]) -> pulumi.Output[Sequence[pulumi.Resource]]:
    """Dependencies on components as such, in place of on each resource inside of them.

    For a resource whose parent waits for all of ``parts`` already. What they are for: the engine
    orders deletions by what a resource names itself and, where that is a component, by its
    children; not by what its parent names. The SDK would name all children.

    A resource that was registered and is not there is named itself: ``--target`` left it out, or
    its creation failed, and only of those it is told by name the engine knows not to go on.
    """
    return pulumi.Output.from_input(_named(parts))


async def _named(parts: Sequence[pulumi.Resource]) -> Sequence[pulumi.Resource]:
    found: list[pulumi.Resource] = []
    for part in parts:
        if isinstance(part, pulumi.ComponentResource):
            found.append(DependencyResource(await part.urn.future() or ""))
        else:
            found.append(part)
    if not pulumi.runtime.is_dry_run():  # there, what is to be created has no id either
        for resource in _inside(parts):
            if not await resource.id.is_known():
                found.append(resource)
    return found


def _inside(parts: Sequence[pulumi.Resource]) -> Iterator[pulumi.CustomResource]:
    """All resources in components, as the SDK finds them for ``depends_on``."""
    for part in parts:
        if isinstance(part, pulumi.ComponentResource):
            yield from _inside(sorted(part._childResources, key=lambda child: child._name))
        elif isinstance(part, pulumi.CustomResource):
            yield part
