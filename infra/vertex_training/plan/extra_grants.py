"""Grants that the stack file asks for by name: ``members``, ``roles`` and ``datasets``. Pure.

They come beside those that follow from what accounts do. The owners of other projects grant what is
theirs, and owners of datasets what is on them: a dataset has a list of entries and no policy of its
own, which two writers would overwrite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings

#: Section -> type of the grants on its entries.
TYPES: Final = {
    "buckets": grants.ON_BUCKET,
    "secrets": grants.ON_SECRET,
    "serviceAccounts": grants.ON_ACCOUNT,
    "registry": grants.ON_REPOSITORY,
}


def members_by_place(
    settings: Settings,
) -> Iterator[tuple[tuple[str, ...], Mapping[str, list[str]]]]:
    """Path of each ``members`` in the stack file, with its members by role."""
    for key, bucket in settings.buckets.items():
        yield ("buckets", key), bucket.members
    for key, secret in settings.secrets.items():
        yield ("secrets", key), secret.members
    for key, account in settings.service_accounts.items():
        yield ("serviceAccounts", key), account.members
    yield ("registry",), settings.registry.members


def resource_at(settings: Settings, place: tuple[str, ...]) -> str:
    """Full name of what is at a place in the stack file, as ``GrantRequest.resource`` has it."""
    names = settings.names
    if place == ("registry",):
        return names.repository_path()
    section, key = place
    if section == "buckets":
        return f"b/{names.bucket(key)}"
    return names.secret(key) if section == "secrets" else names.account(key)


def extra_grants(settings: Settings) -> list[GrantRequest]:
    """All of them; the stack makes those in its own project."""
    found = [
        GrantRequest(
            "-".join((*place, role, member)),
            TYPES[place[0]],
            role,
            member,
            settings.project,
            resource=resource_at(settings, place),
        )
        for place, by_role in members_by_place(settings)
        for role, members in by_role.items()
        for member in dict.fromkeys(members)
    ]
    return [*found, *_roles(settings)]


def _roles(settings: Settings) -> Iterator[GrantRequest]:
    """Roles of accounts in projects, and on datasets."""
    for key, account in settings.service_accounts.items():
        member = f"serviceAccount:{settings.names.account_email(key)}"
        for project, roles in account.roles.items():
            for role in dict.fromkeys(roles):
                name = f"serviceAccounts-{key}-{role}-{project}"
                ours = project == settings.project
                yield GrantRequest(name, grants.ON_PROJECT, role, member, project, ours=ours)
        for dataset, roles in account.datasets.items():
            project, _, name = dataset.partition(".")
            for role in dict.fromkeys(roles):
                yield GrantRequest(
                    f"serviceAccounts-{key}-{role}-{dataset}",
                    resource_types.ON_DATASET,
                    role,
                    member,
                    project,
                    ours=False,
                    resource=f"projects/{project}/datasets/{name}",
                )
