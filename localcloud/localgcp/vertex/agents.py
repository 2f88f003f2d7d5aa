"""Google's service agents that act for a job: their addresses and roles in the local cloud."""

from __future__ import annotations

from typing import Final

from localgcp.inventory.store import Store, project_number

NETWORK_ADMIN: Final = frozenset({"roles/compute.networkAdmin", "roles/compute.admin"})
NETWORK_USER: Final = NETWORK_ADMIN | {"roles/compute.networkUser"}
VIEWER: Final = frozenset({"roles/compute.viewer", "roles/compute.admin", "roles/viewer"})
DNS_PEER: Final = frozenset({"roles/dns.peer", "roles/dns.admin"})
IMAGE_READER: Final = frozenset(
    {
        *("roles/artifactregistry.reader", "roles/artifactregistry.writer", "roles/viewer"),
        *("roles/artifactregistry.repoAdmin", "roles/artifactregistry.admin"),
    }
)
LOG_WRITERS: Final = frozenset({"roles/logging.logWriter", "roles/logging.admin"})
# Roles that contain the permissions of all other roles here.
_PRIMITIVE: Final = frozenset({"roles/owner", "roles/editor"})


def service_agent(project: str) -> str:
    """Return the address of a project's Vertex AI Service Agent (project id)."""
    return f"service-{project_number(project)}@gcp-sa-aiplatform.iam.gserviceaccount.com"


def has_role(store: Store, email: str, roles: frozenset[str], *places: str) -> bool:
    """Return whether the account has one of these roles on one of these resources."""
    member = f"serviceAccount:{email}"
    wanted = roles | _PRIMITIVE
    return any(not wanted.isdisjoint(store.roles(place, member)) for place in places)
