"""Makes the grants that the network, the reservations, single jobs or the stack file ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.plan.encryption import KeyUser
from vertex_training.plan.grants import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_KEY,
    ON_REPOSITORY,
    ON_SECRET,
    ON_SUBNET,
    GrantRequest,
)


class JobGrants(pulumi.ComponentResource):
    """The stack's own grants on keys that its jobs name."""

    def __init__(
        self,
        name: str,
        *,
        grants: Sequence[GrantRequest],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: the service agent, which must exist before it is granted anything."""
        super().__init__("vertextraining:training:JobGrants", name, None, opts)
        make_grants(name, grants, pulumi.ResourceOptions(parent=self, depends_on=after))
        self.register_outputs({})


class ExtraGrants(pulumi.ComponentResource):
    """Grants that the stack file asks for by name, beside those that follow from it."""

    def __init__(
        self,
        name: str,
        *,
        grants: Sequence[GrantRequest],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``after``: what they are on."""
        super().__init__("vertextraining:iam:ExtraGrants", name, None, opts)
        make_grants(name, grants, pulumi.ResourceOptions(parent=self, depends_on=after))
        self.register_outputs({})


class KeyAccess(pulumi.ComponentResource):
    """Who may encrypt with the stack's own key. What is encrypted with it waits for this.

    Makes no key: neither a key nor its ring can ever be deleted.
    """

    def __init__(
        self,
        name: str,
        *,
        project: str,
        users: Sequence[KeyUser],
        grants: Sequence[GrantRequest],
        api_of: Callable[[str], Sequence[pulumi.Resource]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``api_of``: the API of a service, which must be enabled.

        Owns the agents, too: a service makes its own on first use, and a grant to one that is not
        there fails.
        """
        super().__init__("vertextraining:encryption:KeyAccess", name, None, opts)
        agents = [
            gcp.projects.ServiceIdentity(
                f"{name}-{user.service}-agent",
                project=project,
                service=f"{user.service}.googleapis.com",
                opts=pulumi.ResourceOptions(parent=self, depends_on=api_of(user.service)),
            )
            for user in users
        ]
        waits = [*agents, *api_of("cloudkms")]
        make_grants(name, grants, pulumi.ResourceOptions(parent=self, depends_on=waits))
        self.register_outputs({})


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
    if grant.type == ON_KEY:
        return gcp.kms.CryptoKeyIAMMember(
            f"{name}-{grant.key}",
            crypto_key_id=grant.resource,
            role=grant.role,
            member=grant.member,
            opts=opts,
        )
    if grant.type in (ON_BUCKET, ON_SECRET, ON_ACCOUNT, ON_REPOSITORY):
        return _on_resource(f"{name}-{grant.key}", grant, opts)
    return gcp.projects.IAMMember(
        f"{name}-{grant.key}",
        project=grant.project,
        role=grant.role,
        member=grant.member,
        opts=opts,
    )


def _on_resource(name: str, grant: GrantRequest, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """A grant on a bucket, a secret, an account or a repository of the stack."""
    role, member = grant.role, grant.member
    if grant.type == ON_BUCKET:
        bucket = grant.resource.removeprefix("b/")
        return gcp.storage.BucketIAMMember(name, bucket=bucket, role=role, member=member, opts=opts)
    if grant.type == ON_SECRET:
        return gcp.secretmanager.SecretIamMember(
            name, secret_id=grant.resource, role=role, member=member, opts=opts
        )
    if grant.type == ON_ACCOUNT:
        return gcp.serviceaccount.IAMMember(
            name, service_account_id=grant.resource, role=role, member=member, opts=opts
        )
    _, project, _, location, _, repository = grant.resource.split("/")
    return gcp.artifactregistry.RepositoryIamMember(
        name,
        project=project,
        location=location,
        repository=repository,
        role=role,
        member=member,
        opts=opts,
    )
