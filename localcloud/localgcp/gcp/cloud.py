"""Access to the local cloud for all reads and writes: project guard, enabled APIs, errors."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from localgcp.errors import CloudError, RefusedError
from localgcp.gcp.codec import plain
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import TypeSchema
from localgcp.inventory.projects import LOCAL_PREFIX, is_local
from localgcp.inventory.store import Store, project_number

#: Inputs or outputs of a resource.
Values = dict[str, Any]
HOME_VARIABLE: Final = "VT_LOCAL_HOME"

# Names of the services in the cloud's own message.
_TITLES: Final = {
    "aiplatform.googleapis.com": "Vertex AI API",
    "artifactregistry.googleapis.com": "Artifact Registry API",
    "billingbudgets.googleapis.com": "Cloud Billing Budget API",
    "cloudkms.googleapis.com": "Cloud Key Management Service (KMS) API",
    "cloudresourcemanager.googleapis.com": "Cloud Resource Manager API",
    "compute.googleapis.com": "Compute Engine API",
    "dns.googleapis.com": "Cloud DNS API",
    "iam.googleapis.com": "Identity and Access Management (IAM) API",
    "logging.googleapis.com": "Cloud Logging API",
    "monitoring.googleapis.com": "Cloud Monitoring API",
    "secretmanager.googleapis.com": "Secret Manager API",
    "servicenetworking.googleapis.com": "Service Networking API",
    "storage.googleapis.com": "Cloud Storage API",
}


@dataclass
class Cloud:
    """The local cloud for one resource type and one provider configuration."""

    type: TypeSchema
    settings: Settings
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @cached_property
    def store(self) -> Store:
        """The local cloud's state. Raises RefusedError outside of the local shell."""
        home = self.environment.get(HOME_VARIABLE)
        if not home:
            raise RefusedError(
                f"{HOME_VARIABLE} is not set, so the local cloud cannot be used. Hint: run pulumi "
                "through `vt local up` or inside `vt local shell`"
            )
        return Store(Path(home) / "cloud.sqlite")

    def in_project_of(self, id_: str, state: Mapping[str, Any]) -> Cloud:
        """Return a copy for the resource's own project, which may differ from the provider's."""
        project = plain(state.get("project"))
        if not project and self.environment.get(HOME_VARIABLE):
            resource = self.store.get(self.type.token, id_)
            project = resource.project if resource else None
        if not project:
            return self
        return replace(self, settings=replace(self.settings, project=str(project)))

    def guard(self, project: str) -> None:
        """Raise RefusedError for a project that is not local."""
        if not project:
            raise RefusedError(
                f"{self.type.token}: project: required field is not set. "
                "Hint: pulumi config set gcp:project PROJECT, then pulumi up"
            )
        if not is_local(project):
            raise RefusedError(
                f"project '{project}' is not a local project (its id does not begin with "
                f"'{LOCAL_PREFIX}'); the stand-in for the gcp plugin previews it but refuses to "
                "read or write it. Hint: run pulumi outside `vt local shell` to reach Google Cloud"
            )

    def need_api(self, project: str, service: str | None, doing: str) -> None:
        """Raise CloudError 403 if an API is not enabled in the project, as the cloud does."""
        if service is None or self.store.service_enabled(project, service):
            return
        title = _TITLES.get(service, service)
        raise CloudError(
            doing,
            403,
            f"{title} has not been used in project {project} before or it is disabled. Enable it "
            f"by adding {service} to the stack's gcp.projects.Service resources, and make this "
            "resource depend on it",
            "SERVICE_DISABLED",
        )


def normal_project(path: str, project: str) -> str:
    """Return a resource path with the project's id in place of its number."""
    number = project_number(project) if project else ""
    return path.replace(f"projects/{number}/", f"projects/{project}/", 1) if number else path


def now() -> str:
    """Return the current time in the format of Google's APIs."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_number() -> str:
    """Return a random number, as services assign to their resources."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def text(inputs: Mapping[str, Any], key: str) -> str:
    """Return a string input; "" if it is unset."""
    value = inputs.get(key)
    return "" if value is None else str(value)
