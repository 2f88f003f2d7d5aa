"""Makes the grants that ``network_plan`` and ``reservation_plan`` ask for."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_gcp as gcp

from infra.plan import grants
from infra.plan.network import Right


def make(
    name: str, rights: Iterable[Right], opts: pulumi.ResourceOptions
) -> dict[str, pulumi.Resource]:
    """The grants that are the stack's to make, by their key; others are told, not made."""
    return {right.key: _make(name, right, opts) for right in rights if right.ours}


def _make(name: str, right: Right, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    if right.type == grants.ON_SUBNET:
        _, _, _, region, _, subnet = right.subnet.split("/")
        return gcp.compute.SubnetworkIAMMember(
            f"{name}-{right.key}",
            project=right.project,
            region=region,
            subnetwork=subnet,
            role=right.role,
            member=right.member,
            opts=opts,
        )
    return gcp.projects.IAMMember(
        f"{name}-{right.key}",
        project=right.project,
        role=right.role,
        member=right.member,
        opts=opts,
    )
