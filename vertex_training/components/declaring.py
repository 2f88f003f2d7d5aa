"""What the components have in common when they declare: order, APIs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import pulumi

from vertex_training.components.reading import Arguments
from vertex_training.infra.components.apis import DOMAIN, Apis

T = TypeVar("T")


def prerequisites(
    opts: pulumi.ResourceOptions | None, arguments: Arguments
) -> list[pulumi.Resource]:
    """What all in a component waits for: its own ``depends_on``, and where its values are from."""
    given: Any = opts.depends_on if opts else None
    own = [given] if isinstance(given, pulumi.Resource) else list(given or [])
    return [*own, *arguments.dependencies]


def apis_of(
    component: pulumi.Resource,
    name: str,
    project: str,
    apis: Sequence[str],
    after: Sequence[pulumi.Resource],
) -> Apis:
    """The APIs that a component needs, by short name: ``storage``. All in it waits for them.

    ``after``: what they wait for, so that all in the component does.
    """
    full = [f"{api}{DOMAIN}" for api in apis]
    inside = pulumi.ResourceOptions(parent=component)
    return Apis(f"{name}-apis", project, full, after=after, opts=inside)


def output_of(component: pulumi.Resource, value: T) -> pulumi.Output[T]:
    """A value that is known, also in a preview; what takes it waits for all of ``component``.

    An output of one resource would let a job start before the grants beside it are made.
    """

    return pulumi.Output({component}, _of(value), _of(True))


async def _of(value: T) -> T:
    return value
