"""Grants on the stack's own key, for the agents of the services that encrypt with it. Pure.

Jobs are not here: a job names the key in its request, and ``job_grants`` has the grant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Covered, Settings


@dataclass(frozen=True, slots=True)
class KeyUser:
    """A service that encrypts with the key. Its agent is in ``domain``."""

    covered: Covered
    service: str
    domain: str


#: Which agents use a key for what: storage/docs/encryption/customer-managed-keys,
#: artifact-registry/docs/cmek, secret-manager/docs/cmek, all on docs.cloud.google.com.
USERS: Final = (
    KeyUser("buckets", "storage", "gs-project-accounts"),
    KeyUser("registry", "artifactregistry", "gcp-sa-artifactregistry"),
    KeyUser("secrets", "secretmanager", "gcp-sa-secretmanager"),
)


def key_users(settings: Settings) -> list[KeyUser]:
    """The services that encrypt something of this stack with its key."""
    used: dict[str, bool] = {
        "buckets": True,
        "registry": not settings.registry.existing,
        "secrets": any(not secret.existing for secret in settings.secrets.values()),
    }
    return [user for user in USERS if used[user.covered] and settings.key_for(user.covered)]


def encryption_grants(settings: Settings) -> list[GrantRequest]:
    """One for each of them. The key's own project makes them if it is another one."""
    if settings.encryption is None:
        return []
    key = settings.encryption.key
    project = key.split("/")[1]
    return [
        GrantRequest(
            user.covered,
            grants.ON_KEY,
            grants.USE_KEY,
            f"serviceAccount:{settings.names.service_agent(user.domain)}",
            project,
            ours=project == settings.project,
            resource=key,
        )
        for user in key_users(settings)
    ]
