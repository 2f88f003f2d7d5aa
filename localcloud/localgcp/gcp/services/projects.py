"""APIs of a project (``gcp.projects.Service``), and roles of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.base import ResourceType


@dataclass(frozen=True)
class ProjectService(ResourceType):
    """Turning an API on is idempotent in the cloud: a second resource for it is no conflict.

    It stays on when the resource goes, as others may need it, unless ``disableOnDestroy`` is set.
    """

    rules: ClassVar = {"service": rules.api_name}

    title: str = "Project Service"
    overwrites: bool = True

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"{self.project(cloud, inputs)}/{text(dict(inputs), 'service')}"

    def owner(self, cloud: Cloud, id_: str) -> str:
        return self.import_id(cloud, id_).partition("/")[0]

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given if "/" in given else f"{cloud.settings.project}/{given}"

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        return not olds.get("disableOnDestroy")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project}


CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
# https://cloud.google.com/iam/docs/reference/rest/v1/projects.roles/create
_ID: Final = re.compile(r"^[a-zA-Z0-9_.]{3,64}$")
_PERMISSION: Final = re.compile(r"^[a-z0-9-]+(\.[a-zA-Z0-9]+){2}$")


@dataclass(frozen=True)
class CustomRole(ResourceType):
    """A role of a project (``gcp.projects.IAMCustomRole``).

    Kept and granted; which permission a role holds is not asked here. This type follows the
    documentation; unlike the others it was not held against the official plugin.
    """

    title: str = "Custom Project Role"
    api: str | None = "iam.googleapis.com"

    def exists(self, id_: str) -> str:
        return f"A role named {id_.rpartition('/')[2]} in {id_.partition('/roles/')[0]} exists"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        role = text(inputs, "roleId")
        if not _ID.fullmatch(role):
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
            if not _PERMISSION.fullmatch(permission):
                reason = f"Permission {permission} is not valid."
                raise CloudError(doing, 400, reason, "badRequest")
