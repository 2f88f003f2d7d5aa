"""Workload identity pools and their providers. No token is exchanged here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory.store import project_number

POOL: Final = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"


@dataclass(frozen=True)
class Pool(ResourceType):
    """A workload identity pool (``gcp.iam.WorkloadIdentityPool``)."""

    rules: ClassVar = {"workloadIdentityPoolId": rules.pool_id}

    title: str = "WorkloadIdentityPool"
    api: str | None = "iam.googleapis.com"

    def exists(self, id_: str) -> str:
        return "Requested entity already exists"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project, "name": _named_by_number(id_, project), "state": "ACTIVE"}


@dataclass(frozen=True)
class Provider(ResourceType):
    """A provider of a pool (``gcp.iam.WorkloadIdentityPoolProvider``)."""

    title: str = "WorkloadIdentityPoolProvider"
    api: str | None = "iam.googleapis.com"

    def exists(self, id_: str) -> str:
        return "Requested entity already exists"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        pool = _pool(project, inputs)
        if cloud.store.get(POOL, pool) is None:
            raise CloudError(doing, 404, f"Requested entity was not found: {pool}", "notFound")
        # https://cloud.google.com/iam/docs/workload-identity-federation#mapping
        if inputs.get("oidc") and "google.subject" not in (inputs.get("attributeMapping") or {}):
            reason = "The attribute mapping must contain a mapping for google.subject."
            raise CloudError(doing, 400, reason, "badRequest")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"project": project, "name": _named_by_number(id_, project), "state": "ACTIVE"}


def _pool(project: str, inputs: Mapping[str, Any]) -> str:
    name = text(dict(inputs), "workloadIdentityPoolId")
    return f"projects/{project}/locations/global/workloadIdentityPools/{name}"


def _named_by_number(id_: str, project: str) -> str:
    return id_.replace(f"projects/{project}/", f"projects/{project_number(project)}/", 1)
