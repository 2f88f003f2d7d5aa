"""A stack's network and reservations, planned from its settings: names, owners, grants and costs.

Components, references and rules share these plans. ``stack_rules.network`` checks the settings.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from vertex_training.catalog import costs, machines
from vertex_training.catalog.costs import HOURS_A_MONTH
from vertex_training.catalog.resource_types import ON_PROJECT, ON_SUBNET
from vertex_training.customjob.rules.capacity import KEY
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training.settings.network import Reservation, SharedVpc


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
    project, number = network_owner(settings)
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


def network_owner(settings: Settings) -> tuple[str, str]:
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


@dataclass(frozen=True, slots=True)
class ReservationPlan:
    """A planned or existing reservation of the stack."""

    key: str
    path: str
    """Full name: ``projects/P/zones/Z/reservations/NAME``."""
    machine_type: str
    accelerator_type: str
    """Accelerator type in the form of jobs, like ``NVIDIA_H100_MEGA_80GB``; empty without GPUs."""
    accelerator_count: int
    settings: Reservation

    @property
    def project(self) -> str:
        """Return the id or number of the project that owns the reservation."""
        return self.path.split("/")[1]

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]

    def rate(self, region: str) -> costs.Rate | None:
        """Return the hourly price of one reserved machine; None without a known price."""
        kind, count = self.accelerator_type or None, self.accelerator_count
        return costs.hourly(self.machine_type, kind, count, region, fee=False)

    @property
    def affinity(self) -> dict[str, Any]:
        """Return the ``reservationAffinity`` of a job that uses the reservation."""
        # Any matching job uses an open reservation:
        # https://docs.cloud.google.com/compute/docs/instances/reservations-overview
        if not self.settings.specific_reservation_required:
            return {"reservationAffinityType": "ANY_RESERVATION"}
        return affinity_to(self.path)


def affinity_to(path: str) -> dict[str, Any]:
    """Return the ``reservationAffinity`` of a job that uses the reservation with a full name."""
    return {"reservationAffinityType": "SPECIFIC_RESERVATION", "key": KEY, "values": [path]}


def plan_reservations(settings: Settings) -> dict[str, ReservationPlan]:
    """Plan all reservations of the stack, by key."""
    plans = dict[str, ReservationPlan]()
    for key, reservation in settings.reservations.items():
        project = reservation.project or settings.project
        name = reservation.name or settings.names.reservation(key)
        created = f"projects/{project}/zones/{reservation.zone}/reservations/{name}"
        path, machine = reservation.existing or created, reservation.machine_type
        plans[key] = ReservationPlan(key, path, machine, *accelerators(reservation), reservation)
    return plans


def accelerators(given: Reservation) -> tuple[str, int]:
    """Return type and number of a machine's GPUs, from the settings or the machine type."""
    if given.accelerator_type:
        return given.accelerator_type, given.accelerator_count or 1
    machine = machines.machine_type(given.machine_type)
    if machine and machine.accelerator_required and len(machine.accelerators) == 1:
        [(name, counts)] = machine.accelerators.items()
        if len(counts) == 1:
            return name, counts[0]
    return "", 0


def reservation_grants(
    settings: Settings, plans: Mapping[str, ReservationPlan]
) -> list[GrantRequest]:
    """Return a grant on each project that owns a reservation of jobs."""
    agent = f"serviceAccount:{settings.names.vertex_agent()}"
    owners: dict[str, bool] = {}
    for plan in plans.values():
        if plan.settings.specific_reservation_required:
            own = plan.project in (settings.project, settings.project_number)
            # The stack may grant in another project where it creates reservations.
            ours = own or not plan.settings.existing
            project = settings.project if own else plan.project
            owners[project] = owners.get(project, False) or ours
    type_, role = ON_PROJECT, grants.SEE_RESERVATION
    return [
        GrantRequest(f"finds-{project}", type_, role, agent, project, ours=ours)
        for project, ours in sorted(owners.items())
    ]


def cost_lines(
    plans: Mapping[str, ReservationPlan], region: str, now: datetime.datetime
) -> list[str]:
    """Return a line with the cost of each reservation that the stack creates."""
    return [_cost(plan, region, now) for plan in plans.values() if not plan.settings.existing]


def _cost(plan: ReservationPlan, region: str, now: datetime.datetime) -> str:
    settings = plan.settings
    rate = plan.rate(region)
    head = f"reservation {plan.key}: {settings.count} x {plan.machine_type} in {settings.zone}"
    end = "from creation to deletion, used or unused"
    if rate is None:
        return f"{head}: no known price; billed {end}"
    hour = rate.usd * settings.count
    text = f"{head}: ${hour:,.2f} an hour, ${hour * 24:,.0f} a day"
    text += f", ${hour * HOURS_A_MONTH:,.0f} a month"
    hours = lifetime(settings, now)
    text += f", ${hour * hours:,.0f} in total" if hours is not None else ""
    where = "" if rate.exact else f", for region {rate.region}"
    return f"{text}, billed {end} (list price {rate.date}, {rate.source}{where})"


def monthly(plan: ReservationPlan, region: str, now: datetime.datetime) -> float | None:
    """Return the cost in USD for a month, or for a shorter lifetime; None without a price."""
    rate, hours = plan.rate(region), lifetime(plan.settings, now)
    kept = HOURS_A_MONTH if hours is None else min(hours, HOURS_A_MONTH)
    return None if rate is None else rate.usd * plan.settings.count * kept


def lifetime(given: Reservation, now: datetime.datetime) -> float | None:
    """Return the hours until Google deletes the reservation; None if it never does."""
    if given.delete_after_duration:
        return int(given.delete_after_duration.removesuffix("s")) / 3600
    if given.delete_at_time:
        return max(0.0, (given.delete_at_time - now).total_seconds() / 3600)
    return None
