"""Roles of a project's own. Kept and granted; which permission a role holds is not asked here.

This type follows the documentation; unlike the others it was not held against the official plugin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.base import ResourceType

CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
# https://cloud.google.com/iam/docs/reference/rest/v1/projects.roles/create
_ID: Final = re.compile(r"^[a-zA-Z0-9_.]{3,64}$")
_PERMISSION: Final = re.compile(r"^[a-z0-9-]+(\.[a-zA-Z0-9]+){2}$")


@dataclass(frozen=True)
class CustomRole(ResourceType):
    """A role of a project (``gcp.projects.IAMCustomRole``)."""

    title: str = "Custom Project Role"
    api: str | None = "iam.googleapis.com"

    def exists(self, id_: str) -> str:
        return f"A role named {id_.rpartition('/')[2]} in {id_.partition('/roles/')[0]} exists"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        role = text(inputs, "roleId")
        if not _ID.match(role):
            raise CloudError(doing, 400, f"The role_id {role} has an invalid form.", "badRequest")
        self._permissions(inputs, doing)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project, "name": id_, "deleted": False}

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        self._permissions(inputs, f"Error updating {self.title} {id_!r}")
        return {}

    def _permissions(self, inputs: dict[str, Any], doing: str) -> None:
        for permission in inputs.get("permissions") or []:
            if not _PERMISSION.match(permission):
                reason = f"Permission {permission} is not valid."
                raise CloudError(doing, 400, reason, "badRequest")
