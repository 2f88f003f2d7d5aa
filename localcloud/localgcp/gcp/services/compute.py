"""Common code of the types of Compute Engine: locks, errors and users of networks."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import CloudError
from localgcp.gcp.cloud import Cloud, Values, text
from localgcp.gcp.codec import plain
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, StoredResource
from localgcp.inventory.vpc import ADDRESS, ATTACHMENT, NETWORK, SUBNETWORK
from localgcp.vertex import job_networks

FIREWALL: Final = "gcp:compute/firewall:Firewall"
ROUTER: Final = "gcp:compute/router:Router"
NAT: Final = "gcp:compute/routerNat:RouterNat"
INSTANCE: Final = "gcp:compute/instance:Instance"

# Resources of these types refer to a network or a subnetwork, which cannot be deleted before.
_USERS: Final = (SUBNETWORK, FIREWALL, ROUTER, ADDRESS, ATTACHMENT, NAT, INSTANCE)
_IN_REGIONS: Final = ("region", "zone", "network", "router")


@dataclass(frozen=True)
class Compute(ResourceType):
    """A resource type of Compute Engine."""

    api: str | None = "compute.googleapis.com"
    exists: str = "The resource '{id}' already exists"

    def part(self, cloud: Cloud, inputs: Mapping[str, Any], tf: str) -> str:
        part = super().part(cloud, inputs, tf)
        return resource_paths.short_name(part) if tf in _IN_REGIONS else part

    def create(self, cloud: Cloud, inputs: Values) -> ExistingResource:
        with self._exclusive(cloud, inputs):
            return super().create(cloud, inputs)

    def update(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        with self._exclusive(cloud, olds):
            return super().update(cloud, id_, inputs, olds)

    def delete(self, cloud: Cloud, id_: str, olds: Values) -> None:
        with self._exclusive(cloud, olds):
            super().delete(cloud, id_, olds)

    @contextmanager
    def _exclusive(self, cloud: Cloud, values: Mapping[str, Any]) -> Iterator[None]:
        # Two parallel changes must not allocate the same address range.
        cloud.guard(self.project(cloud, plain(values)))
        with cloud.store.path.with_name("compute.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        user = next(users(cloud.store, id_), None)
        if user:
            raise in_use(f"Error deleting {self.title}", self.noun, id_, user)
        super().unmake(cloud, id_, olds)


def in_use(doing: str, noun: str, path: str, user: str) -> CloudError:
    """Return the error for deleting a resource that another resource uses."""
    reason = f"The {noun} resource '{path}' is already being used by '{user}'"
    return CloudError(doing, 400, reason, "resourceInUseByAnotherResource")


def invalid(doing: str, field: str, value: Any, reason: str) -> CloudError:
    """Return the error for an invalid value of one field."""
    text_ = f"Invalid value for field 'resource.{field}': '{value}'. {reason}"
    return CloudError(doing, 400, text_, "invalid")


def own_network(cloud: Cloud, project: str, inputs: Mapping[str, Any], doing: str) -> str:
    """Return the path of the project's network in ``inputs["network"]``. Raises CloudError."""
    network = text(inputs, "network")
    path = resource_paths.resolve(cloud.store, network, "networks", project=project)
    if resource_paths.project_of(path) != project:
        reason = "Cross project referencing is not allowed for this resource."
        raise invalid(doing, "network", network, reason)
    if cloud.store.get(NETWORK, path) is None:
        raise invalid(doing, "network", network, "The referenced network resource cannot be found.")
    return path


def users(store: Store, path: str) -> Iterator[str]:
    """Yield the paths of resources and jobs that use a network, subnetwork or attachment."""
    collection = path.split("/")[-2]
    if collection == "networkAttachments":
        yield from (job.name for job in job_networks.jobs_on_attachment(store, path))
        return
    for type_ in _USERS:
        for resource in store.list(type_):
            references = _references(resource, collection)
            home = {"project": resource.project, "region": resource.outputs.get("region") or ""}
            if any(
                resource_paths.resolve(store, reference, collection, **home) == path
                for reference in references
            ):
                if type_ == NAT:
                    project, region, router, _ = resource.id.split("/")
                    yield f"projects/{project}/regions/{region}/routers/{router}"
                else:
                    yield resource.id


def _references(resource: StoredResource, collection: str) -> list[str]:
    values = resource.outputs
    if resource.type == INSTANCE:
        field = collection.removesuffix("s")
        return [
            reference[field]
            for reference in values.get("networkInterfaces") or []
            if reference.get(field)
        ]
    if collection == "networks":
        subnetworks = values.get("network")
        return [subnetworks] if subnetworks else []
    subnetworks = values.get("subnetworks") or []
    return [
        reference["name"] if isinstance(reference, dict) else reference for reference in subnetworks
    ]
