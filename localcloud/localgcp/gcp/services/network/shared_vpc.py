"""Shared VPC: host projects and the service projects attached to them.

A local cloud has as many projects as ids that begin with ``local-``; the host is simply another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.network.compute import Compute
from localgcp.inventory import resource_paths
from localgcp.inventory.vpc import (
    ATTACHMENT,
    HOST_PROJECT,
    SERVICE_PROJECT,
    attached,
    subnetworks_of,
)


@dataclass(frozen=True)
class HostProject(Compute):
    """A project that shares its networks (``gcp.compute.SharedVPCHostProject``)."""

    title: str = "Shared VPC Host"

    def exists(self, id_: str) -> str:
        return f"The project '{id_}' is already a Shared VPC host."

    def owner(self, cloud: Cloud, id_: str) -> str:
        return id_

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        for host in (each.outputs["hostProject"] for each in cloud.store.list(SERVICE_PROJECT)):
            if attached(cloud.store, host, project):
                reason = f"The project '{project}' is a service project of the host '{host}'."
                raise CloudError(doing, 400, reason, "invalidResourceUsage")

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        for each in cloud.store.list(SERVICE_PROJECT):
            if each.outputs["hostProject"] == id_:
                doing = f"Error disabling {self.title} {id_!r}"
                service = each.outputs["serviceProject"]
                reason = f"The host project '{id_}' still has the service project '{service}'."
                raise CloudError(doing, 400, reason, "resourceInUseByAnotherResource")


@dataclass(frozen=True)
class ServiceProject(Compute):
    """A project that uses a host's networks (``gcp.compute.SharedVPCServiceProject``)."""

    title: str = "Shared VPC Service Project"

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        return text(dict(values), "hostProject")

    def exists(self, id_: str) -> str:
        host, _, service = id_.partition("/")
        return f"The project '{service}' is attached to the host '{host}' already."

    def owner(self, cloud: Cloud, id_: str) -> str:
        return id_.partition("/")[0]

    def import_id(self, cloud: Cloud, given: str) -> str:
        return given

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        service = text(inputs, "serviceProject")
        cloud.guard(service)
        if cloud.store.get(HOST_PROJECT, project) is None:
            reason = f"The project '{project}' is not a Shared VPC host project."
            raise CloudError(doing, 400, reason, "invalid")
        if cloud.store.get(HOST_PROJECT, service):
            reason = f"The project '{service}' is a Shared VPC host itself."
            raise CloudError(doing, 400, reason, "invalidResourceUsage")
        for each in cloud.store.list(SERVICE_PROJECT):
            if each.outputs["serviceProject"] == service and each.outputs["hostProject"] != project:
                host = each.outputs["hostProject"]
                reason = f"The project '{service}' is attached to the host '{host}' already."
                raise CloudError(doing, 400, reason, "invalidResourceUsage")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        host, _, service = id_.partition("/")
        for each in cloud.store.list(ATTACHMENT, service):
            for path in subnetworks_of(cloud.store, each):
                if resource_paths.project_of(path) == host:
                    reason = f"The resource '{each.id}' still uses the shared '{path}'."
                    doing = f"Error detaching {self.title} {id_!r}"
                    raise CloudError(doing, 400, reason, "resourceInUseByAnotherResource")
