"""Vertex AI endpoints (``gcp.vertex.AiEndpoint``); what is deployed is the API's business.

The service writes ``deployedModels`` and ``trafficSplit`` (``localgcp.serving.records``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory.store import project_number


def _json(value: Any) -> str | None:
    try:
        json.loads(value)
    except ValueError as error:
        return f'"traffic_split" contains an invalid JSON: {error}'
    return None


@dataclass(frozen=True)
class AiEndpoint(ResourceType):
    """An endpoint, without what is deployed to it."""

    longest_name: ClassVar = 10
    rules: ClassVar[Mapping[str, Callable[[Any], str | None]]] = MappingProxyType(
        {"trafficSplit": _json}
    )

    title: str = "Endpoint"
    api: str | None = "aiplatform.googleapis.com"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        if not re.fullmatch(r"[1-9]\d{0,9}", name := text(inputs, "name")):
            reason = f"Invalid endpoint_id: {name!r}; 1 to 10 digits are expected, no leading 0."
            raise CloudError(doing, 400, reason, "badRequest")
        self._check_split(inputs, [], doing)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        created = now()
        made = {"project": project, "createTime": created, "updateTime": created}
        if inputs.get("dedicatedEndpointEnabled"):
            made["dedicatedEndpointDns"] = _dns(project, inputs)
        split = text(inputs, "trafficSplit") or "{}"
        return {**made, "etag": re.sub(r"\D", "", created), "trafficSplit": split}

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        found = cloud.store.get(cloud.type.token, id_)
        current = found.outputs if found else {}
        deployed = current.get("deployedModels") or []
        self._check_split(inputs, deployed, f"Error updating Endpoint {id_!r}")
        split = text(inputs, "trafficSplit") or current.get("trafficSplit") or "{}"
        dns = _dns(project, inputs) if inputs.get("dedicatedEndpointEnabled") else ""
        made = {"updateTime": now(), "deployedModels": deployed, "trafficSplit": split}
        return {**made, "dedicatedEndpointDns": dns}

    def _check_split(self, inputs: dict[str, Any], deployed: list[Any], doing: str) -> None:
        split: dict[str, int] = json.loads(text(inputs, "trafficSplit") or "{}")
        if not split:
            return
        if unknown := sorted(set(split) - {each["id"] for each in deployed}):
            reason = f"traffic_split names {', '.join(unknown)}, which the endpoint does not have."
            raise CloudError(doing, 400, reason, "badRequest")
        if sum(split.values()) != 100:
            raise CloudError(doing, 400, f"traffic_split must sum to 100: {split}", "badRequest")

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        found = cloud.store.get(cloud.type.token, id_)
        if deployed := (found.outputs.get("deployedModels") or []) if found else []:
            names = ", ".join(each["id"] for each in deployed)
            reason = f"Endpoint {id_} has deployed models: {names}. Undeploy them first."
            raise CloudError(f"Error deleting Endpoint {id_!r}", 400, reason, "failedPrecondition")
        super().unmake(cloud, id_, olds)


def _dns(project: str, inputs: dict[str, Any]) -> str:
    place = f"{text(inputs, 'location')}-{project_number(project)}"
    return f"{text(inputs, 'name')}.{place}.prediction.vertexai.goog"
