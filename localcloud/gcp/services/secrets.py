"""Secret Manager secrets and their versions; the local cloud writes no value down."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from localcloud.gcp.cloud import Cloud, CloudError, RefusedError, normal_project, now, text
from localcloud.gcp.services.base import Service
from localcloud.inventory.store import SECRET, project_number

VERSION: Final = "gcp:secretmanager/secretVersion:SecretVersion"
_VALUES: Final = ("secretData", "secretDataWo")

_ID = re.compile(r"^[a-zA-Z0-9_-]{1,255}$")


@dataclass(frozen=True)
class Secret(Service):
    """A secret (`gcp.secretmanager.Secret`)."""

    title: str = "Secret"
    api: str | None = "secretmanager.googleapis.com"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        name = text(inputs, "secretId")
        if not _ID.match(name):
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


@dataclass(frozen=True)
class SecretVersion(Service):
    """A value of a secret (`gcp.secretmanager.SecretVersion`): that there is one, not which.

    The number of a version that was destroyed is given again; in the cloud it is not.
    """

    title: str = "SecretVersion"
    api: str | None = "secretmanager.googleapis.com"

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        secret = self._secret(cloud, values)
        return secret.split("/")[1] if secret.startswith("projects/") else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        secret = self._secret(cloud, inputs)
        if cloud.store.get(SECRET, secret) is None:
            raise CloudError(doing, 404, f"Secret [{secret}] not found.", "notFound")

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        project, secret = self.project(cloud, inputs), self._secret(cloud, inputs)
        name = f"projects/{project_number(project)}/secrets/{secret.rpartition('/')[2]}"
        held = [v.id for v in cloud.store.list(VERSION, project) if v.id.startswith(f"{name}/")]
        newest = max((int(each.rpartition("/")[2]) for each in held), default=0)
        return f"{name}/versions/{newest + 1}"

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"name": id_, "version": id_.rpartition("/")[2], "createTime": now()}

    def kept(self, values: dict[str, Any]) -> dict[str, Any]:
        """A digest stands for the value; after a refresh the engine keeps its own copy."""
        kept = super().kept(values)
        for name in _VALUES:
            if kept.get(name):
                kept[name] = {"asset": hashlib.sha256(str(kept[name]).encode()).hexdigest()}
        return kept

    def _secret(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        return normal_project(text(dict(values), "secret"), cloud.settings.project)
