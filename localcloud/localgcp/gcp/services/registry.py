"""Artifact Registry repositories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, now, text
from localgcp.gcp.services.base import ResourceType

_ID: Final = re.compile(r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")
_FORMATS: Final = frozenset(
    {"DOCKER", "MAVEN", "NPM", "APT", "YUM", "PYTHON", "KFP", "GO", "GENERIC"}
)


#: https://docs.cloud.google.com/artifact-registry/docs/repositories/cleanup-policy-overview
_MOST_POLICIES: Final = 10


@dataclass(frozen=True)
class Repository(ResourceType):
    """A repository (``gcp.artifactregistry.Repository``); its packages are not kept here."""

    title: str = "Repository"
    api: str | None = "artifactregistry.googleapis.com"

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        name, kind = text(inputs, "repositoryId"), text(inputs, "format").upper()
        if not _ID.fullmatch(name):
            reason = f'invalid repository id "{name}": it must match {_ID.pattern}'
            raise CloudError(doing, 400, reason, "badRequest")
        if kind not in _FORMATS:
            raise CloudError(doing, 400, f'unsupported repository format "{kind}"', "badRequest")
        for reason in _wrong_policies(inputs.get("cleanupPolicies") or []):
            raise CloudError(doing, 400, reason, "badRequest")

    def exists(self, id_: str) -> str:
        return "the repository already exists"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        location, name = self._location(cloud, inputs), text(inputs, "repositoryId")
        host = f"{location}-{text(inputs, 'format').lower()}.pkg.dev"
        created = now()
        return {
            "project": project,
            "location": location,
            "name": name,
            "registryUri": f"{host}/{project}/{name}",
            "createTime": created,
            "updateTime": created,
        }

    def remake(
        self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        return {"updateTime": now()}

    def _location(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return text(dict(inputs), "location") or cloud.settings.region


def _wrong_policies(policies: list[dict[str, Any]]) -> Iterator[str]:
    """Why clean-up policies are refused. Here none is ever carried out: nothing is deleted."""
    if len(policies) > _MOST_POLICIES:
        yield f"a repository has at most {_MOST_POLICIES} cleanup policies"
    for policy in policies:
        name = policy.get("id")
        if policy.get("condition") and policy.get("mostRecentVersions"):
            yield f'cleanup policy "{name}" has a condition and most_recent_versions: one of them'
        if policy.get("mostRecentVersions") and policy.get("action") != "KEEP":
            yield f'cleanup policy "{name}": most_recent_versions is for KEEP'
