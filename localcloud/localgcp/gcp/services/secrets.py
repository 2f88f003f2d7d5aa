"""Secret Manager secrets; their values are in ``localgcp.reads.secretmanager``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError, RefusedError
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory.store import project_number

_ID: Final = re.compile(r"^[a-zA-Z0-9_-]{1,255}$")


@dataclass(frozen=True)
class Secret(ResourceType):
    """A secret (``gcp.secretmanager.Secret``)."""

    name_as_given: ClassVar = True
    longest_name: ClassVar = 255
    # resource_secret_manager_secret.go
    updated_in_place: ClassVar = ("customerManagedEncryption",)

    title: str = "Secret"
    api: str | None = "secretmanager.googleapis.com"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        name = text(inputs, "secretId")
        if not _ID.fullmatch(name):
            reason = f"Secret ID [{name}] does not match the pattern [[a-zA-Z_0-9]+]."
            raise CloudError(doing, 400, reason.replace("[a-zA-Z_0-9]+", _ID.pattern), "badRequest")

    def exists(self, id_: str) -> str:
        return f"Secret [{id_}] already exists."

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        name = f"projects/{project_number(project)}/secrets/{text(inputs, 'secretId')}"
        annotations = dict(inputs.get("annotations") or {})
        return {
            "project": project,
            "name": name,
            "createTime": now(),
            "effectiveAnnotations": annotations,
        }

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        return {"effectiveAnnotations": dict(inputs.get("annotations") or {})}

    def delete(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        if olds.get("deletionProtection"):
            raise RefusedError(
                f"cannot destroy secret {id_} without setting deletion_protection=false "
                "and running `pulumi up`"
            )
        super().delete(cloud, id_, olds)
