"""APIs of a project (``gcp.projects.Service``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

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
