"""A stack's network, planned from its settings: names, owners and grants.

Components, references and rules share this plan. ``stack_rules.network`` checks the settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vertex_training.catalog.resource_types import ON_PROJECT, ON_SUBNET
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training.settings.network import SharedVpc


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Network of a stack."""

    mode: Literal["peering", "psc"]
    project: str
    """Id of the project that owns the network."""
    name: str
    path: str
    """Name for jobs: ``projects/NUMBER/global/networks/NAME``; empty without a project number."""
    subnet: str
    """``projects/P/regions/R/subnetworks/NAME``; empty without a subnet."""
    attachment: str
    """``projects/P/regions/R/networkAttachments/NAME``; empty with peering."""
    ranges: Mapping[str, str]
    """Names of reserved ranges by key."""
    dns_peering: tuple[Mapping[str, str], ...]
    """Entries of ``pscInterfaceConfig.dnsPeeringConfigs``."""
    host: SharedVpc | None

    @property
    def id(self) -> str:
        """Return the network's full name: ``projects/PROJECT/global/networks/NAME``."""
        return f"projects/{self.project}/global/networks/{self.name}"

    @property
    def interface(self) -> dict[str, Any]:
        """Return the ``pscInterfaceConfig`` of jobs that use the network."""
        result: dict[str, Any] = {"networkAttachment": self.attachment}
        if self.dns_peering:
            result["dnsPeeringConfigs"] = [dict(config) for config in self.dns_peering]
        return result

    @property
    def references(self) -> dict[str, Any]:
        """Return the values of job files' references to the network."""
        if self.mode == "psc":
            return {"network.attachment": self.attachment, "network.interface": self.interface}
        named = {f"network.ranges.{key}": name for key, name in self.ranges.items()}
        return {"network.name": self.path, **named}


def plan_network(settings: Settings) -> NetworkPlan | None:
    """Plan the network of the stack; return None if its jobs use no network."""
    network, names, host = settings.network, settings.names, settings.shared_vpc
    if network.mode == "none":
        return None
    project, number = owner(settings)
    name = network.existing.rsplit("/", 1)[1] if network.existing else names.network()
    subnet = ""
    if network.subnet:
        here = f"projects/{project}/regions/{names.region}/subnetworks/{names.network()}"
        subnet = network.subnet.existing or here
    attachment = network.attachment.existing or (
        f"projects/{names.project}/regions/{names.region}/networkAttachments/{names.network()}"
    )
    return NetworkPlan(
        mode=network.mode,
        project=project,
        name=name,
        path=f"projects/{number}/global/networks/{name}" if number else "",
        subnet=subnet,
        attachment=attachment if network.mode == "psc" else "",
        ranges={
            key: r.existing or r.name or names.ip_range(key) for key, r in network.ranges.items()
        },
        dns_peering=tuple(
            {
                "domain": peering.domain,
                "targetProject": peering.target_project or project,
                "targetNetwork": peering.target_network or name,
            }
            for peering in network.dns_peering.values()
        ),
        host=host,
    )


def owner(settings: Settings) -> tuple[str, str]:
    """Return id and number of the project that owns the network; an unknown number is empty."""
    host, known = settings.shared_vpc, _numbers(settings)
    if not settings.network.existing:
        project = host.host_project if host else settings.project
        return project, known[project]
    id_or_number = settings.network.existing.split("/")[1]
    if id_or_number.isdecimal():
        return _project_of(settings, settings.network.existing), id_or_number
    return id_or_number, known.get(id_or_number, "")


def _numbers(settings: Settings) -> dict[str, str]:
    known = {settings.project: settings.project_number}
    if host := settings.shared_vpc:
        known[host.host_project] = host.host_project_number
    return known


def _project_of(settings: Settings, path: str) -> str:
    """Return the id of the project in a resource name; its number if the id is unknown."""
    id_or_number = path.split("/")[1]
    ids = {number: id_ for id_, number in _numbers(settings).items()}
    return ids.get(id_or_number, id_or_number)


def network_grants(settings: Settings, network: NetworkPlan | None) -> list[GrantRequest]:
    """Return all grants that the network needs, including grants that other teams must make."""
    if network is None:
        return []
    host = settings.shared_vpc
    managed = {settings.project, *([host.host_project] if host and host.manage_host else [])}
    requests = _requests(settings, network)
    return [dataclasses.replace(grant, ours=grant.project in managed) for grant in requests]


def _requests(settings: Settings, plan: NetworkPlan) -> Iterator[GrantRequest]:
    agent = f"serviceAccount:{settings.names.vertex_agent()}"
    if plan.mode == "psc":
        project = _project_of(settings, plan.attachment)
        yield GrantRequest("attaches", ON_PROJECT, grants.NETWORK_ADMIN, agent, project)
    if plan.host:
        yield from _users(settings, plan, agent)
    targets = {config["targetProject"] for config in plan.dns_peering}
    for target in sorted({settings.project, *targets} if targets and plan.mode == "psc" else ()):
        key = f"looks-up-{target}"
        yield GrantRequest(key, ON_PROJECT, grants.DNS_PEER, agent, target)


def _users(settings: Settings, plan: NetworkPlan, agent: str) -> Iterator[GrantRequest]:
    """Yield grants to use the host's network, on the subnet or else on the project."""
    type_ = ON_SUBNET if plan.subnet else ON_PROJECT
    project = _project_of(settings, plan.subnet) if plan.subnet else plan.project
    role, subnet = grants.NETWORK_USER, plan.subnet
    yield GrantRequest("uses-agent", type_, role, agent, project, subnet)
    for member in dict.fromkeys(settings.all_submitters):
        yield GrantRequest(f"uses-{member}", type_, role, member, project, subnet)
