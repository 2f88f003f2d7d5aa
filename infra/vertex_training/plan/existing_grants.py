"""Grants on what other projects own and the stack uses; their owners make them. Pure.

On what exists in the stack's own project, the stack makes its grants itself, member by member: it
never writes a whole policy.
"""

from __future__ import annotations

from collections.abc import Iterator

from vertex_training.naming import IMAGE_BUILD, project_of_account
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings


def elsewhere(settings: Settings) -> dict[tuple[str, str], str]:
    """Section and key of what another project owns -> that project."""
    found: dict[tuple[str, str], str] = {}
    for key, bucket in settings.buckets.items():
        if bucket.existing and bucket.project:
            found["buckets", key] = bucket.project
    for key, account in settings.service_accounts.items():
        if account.existing:
            found["serviceAccounts", key] = project_of_account(account.existing)
    if settings.registry.existing:
        found["registry", ""] = settings.registry.existing.split("/")[1]
    for key, secret in settings.secrets.items():
        if secret.existing:
            found["secrets", key] = secret.existing.split("/")[1]
    return {place: project for place, project in found.items() if project != settings.project}


def existing_grants(settings: Settings) -> list[GrantRequest]:
    """What the owners of other projects must grant for the stack's accounts to work."""
    owners = elsewhere(settings)
    return [
        GrantRequest(
            f"existing-{section}-{key}-{role}-{member}",
            type_,
            role,
            member,
            owners[section, key],
            ours=False,
            resource=resource,
        )
        for section, key, type_, role, member, resource in wanted(settings)
        if (section, key) in owners
    ]


def wanted(settings: Settings) -> Iterator[tuple[str, str, str, str, str, str]]:
    """(section, key, type, role, member, resource) of all grants on what the stack file names."""
    yield from _of_accounts(settings)
    if settings.builds_images:
        names = settings.names
        place = "registry", "", grants.ON_REPOSITORY
        account = f"serviceAccount:{names.account_email(IMAGE_BUILD)}"
        yield *place, grants.PUSH_IMAGES, account, names.repository_path()
        for builder in dict.fromkeys(settings.builders):
            yield *place, grants.PULL_IMAGES, builder, names.repository_path()


def _of_accounts(settings: Settings) -> Iterator[tuple[str, str, str, str, str, str]]:
    names = settings.names
    for key, account in settings.service_accounts.items():
        member = f"serviceAccount:{names.account_email(key)}"
        for bucket in dict.fromkeys((*account.reads, *account.writes)):
            role = grants.WRITE_OBJECTS if bucket in account.writes else grants.READ_OBJECTS
            yield "buckets", bucket, grants.ON_BUCKET, role, member, f"b/{names.bucket(bucket)}"
        for secret in dict.fromkeys(account.secrets):
            path = names.secret(secret)
            yield "secrets", secret, grants.ON_SECRET, grants.READ_SECRET, member, path
        place = "serviceAccounts", key, grants.ON_ACCOUNT
        for submitter in dict.fromkeys(settings.submitters_of(key)):
            yield *place, grants.ACT_AS, submitter, names.account(key)
        # general/custom-service-account: "in a different project" the agent needs this role, and
        # that project lifts iam.disableCrossProjectServiceAccountUsage.
        agent = f"serviceAccount:{names.vertex_agent()}"
        yield *place, grants.CREATE_TOKENS, agent, names.account(key)
