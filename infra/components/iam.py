"""Makes the grants that the network and the reservations need."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi
import pulumi_gcp as gcp

from infra.plan.grants import ON_SUBNET, GrantRequest


def make_grants(
    name: str, grants: Iterable[GrantRequest], opts: pulumi.ResourceOptions
) -> dict[str, pulumi.Resource]:
    """The grants that are the stack's to make, by their key; external ones are reported only."""
    return {grant.key: _make(name, grant, opts) for grant in grants if grant.ours}


def _make(name: str, grant: GrantRequest, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    if grant.type == ON_SUBNET:
        _, _, _, region, _, subnet = grant.subnet.split("/")
        return gcp.compute.SubnetworkIAMMember(
            f"{name}-{grant.key}",
            project=grant.project,
            region=region,
            subnetwork=subnet,
            role=grant.role,
            member=grant.member,
            opts=opts,
        )
    return gcp.projects.IAMMember(
        f"{name}-{grant.key}",
        project=grant.project,
        role=grant.role,
        member=grant.member,
        opts=opts,
    )
