"""The network of a stack, derived from its settings: names, owners, grants. Pure.

Components, references and rules all use this plan, so a preview, ``vt check`` and the cloud mean
the same network. ``stack_rules.network`` reports contradictory settings; this module
assumes that there are none.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from vertex_training.naming import Names
from vertex_training.plan import grants
from vertex_training.plan.grants import GrantRequest
from vertex_training.settings.model import Settings
from vertex_training.settings.network import Network, SharedVpc


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of a stack that has one."""

    mode: Literal["peering", "psc"]
    project: str
    """Id of the project that owns the network."""
    name: str
    """The network's short name."""
    path: str
    """``projects/NUMBER/global/networks/NAME``, as jobs take it; empty if no number is known."""
    subnet: str
    """``projects/P/regions/R/subnetworks/NAME``; empty without one."""
    attachment: str
    """``projects/P/regions/R/networkAttachments/NAME``; empty in peering."""
    ranges: Mapping[str, str]
    """Names of the reserved ranges by their key."""
    dns_peering: tuple[Mapping[str, str], ...]
    """As ``pscInterfaceConfig.dnsPeeringConfigs`` takes them."""
    host: SharedVpc | None

    @property
    def id(self) -> str:
        """``projects/PROJECT/global/networks/NAME``, as resources take it."""
        return f"projects/{self.project}/global/networks/{self.name}"

    @property
    def interface(self) -> dict[str, Any]:
        """``pscInterfaceConfig`` of a job."""
        found: dict[str, Any] = {"networkAttachment": self.attachment}
        if self.dns_peering:
            found["dnsPeeringConfigs"] = [dict(config) for config in self.dns_peering]
        return found

    @property
    def references(self) -> dict[str, Any]:
        """What job files may name, by the name."""
        if self.mode == "psc":
            return {"network.attachment": self.attachment, "network.interface": self.interface}
        named = {f"network.ranges.{key}": name for key, name in self.ranges.items()}
        return {"network.name": self.path, **named}


def plan_network(settings: Settings) -> NetworkPlan | None:
    """The network of the stack, or None if its jobs use none."""
    network, names, host = settings.network, settings.names, settings.shared_vpc
    if network.mode == "none":
        return None
    project, number = owner(settings)
    name = network.existing.rsplit("/", 1)[1] if network.existing else names.network()
    subnet = ""
    if network.subnet:
        here = f"projects/{project}/regions/{names.region}/subnetworks/{names.network()}"
        subnet = network.subnet.existing or here
    return NetworkPlan(
        mode=network.mode,
        project=project,
        name=name,
        path=f"projects/{number}/global/networks/{name}" if number else "",
        subnet=subnet,
        attachment=_attachment(network, names) if network.mode == "psc" else "",
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
    """Id and number of the project that owns the network; an empty number is not known.

    An existing network may be named with its project's id or number.
    """
    host, known = settings.shared_vpc, _numbers(settings)
    if not settings.network.existing:
        project = host.host_project if host else settings.project
        return project, known[project]
    given = settings.network.existing.split("/")[1]
    if given.isdecimal():
        return _project_of(settings, settings.network.existing), given
    return given, known.get(given, "")


def _numbers(settings: Settings) -> dict[str, str]:
    """Id of each project whose number is known -> that number."""
    known = {settings.project: settings.project_number}
    if host := settings.shared_vpc:
        known[host.host_project] = host.host_project_number
    return known


def _project_of(settings: Settings, path: str) -> str:
    """Id of the project in a resource name, which may have its number; the number if unknown."""
    given = path.split("/")[1]
    return next((id_ for id_, number in _numbers(settings).items() if number == given), given)


def _attachment(network: Network, names: Names) -> str:
    made = f"projects/{names.project}/regions/{names.region}/networkAttachments/{names.network()}"
    return network.attachment.existing or made


def network_grants(settings: Settings, network: NetworkPlan | None) -> list[GrantRequest]:
    """Every grant that the stack's network needs, the other team's among them."""
    if network is None:
        return []
    host = settings.shared_vpc
    managed = {settings.project, *([host.host_project] if host and host.manage_host else [])}
    found = _of_psc(settings, network) if network.mode == "psc" else _of_peering(settings, network)
    return [dataclasses.replace(grant, ours=grant.project in managed) for grant in found]


def _of_psc(settings: Settings, found: NetworkPlan) -> Iterator[GrantRequest]:
    agent = f"serviceAccount:{settings.names.vertex_agent()}"
    project = _project_of(settings, found.attachment)
    yield GrantRequest("attaches", grants.ON_PROJECT, grants.NETWORK_ADMIN, agent, project)
    if found.host:
        yield from _users(settings, found, agent)
    targets = {config["targetProject"] for config in found.dns_peering}
    for target in sorted({settings.project, *targets} if targets else ()):
        key = f"looks-up-{target}"
        yield GrantRequest(key, grants.ON_PROJECT, grants.DNS_PEER, agent, target)


def _of_peering(settings: Settings, found: NetworkPlan) -> Iterator[GrantRequest]:
    if found.host:
        agent = f"serviceAccount:{settings.names.vertex_agent()}"
        yield from _users(settings, found, agent)


def _users(settings: Settings, found: NetworkPlan, agent: str) -> Iterator[GrantRequest]:
    """Users of the host's network: of the subnet, or of the project where there is none."""
    type_ = grants.ON_SUBNET if found.subnet else grants.ON_PROJECT
    project = _project_of(settings, found.subnet) if found.subnet else found.project
    role, subnet = grants.NETWORK_USER, found.subnet
    yield GrantRequest("uses-agent", type_, role, agent, project, subnet)
    for member in dict.fromkeys(settings.all_submitters):
        yield GrantRequest(f"uses-{member}", type_, role, member, project, subnet)


Block = ipaddress.IPv4Network | ipaddress.IPv6Network
Direction = Literal["INGRESS", "EGRESS"]
#: Ranges with every address: what a rule without ranges holds for.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
#: Half of the addresses of the internet; all of IPv6 are in ``2000::/3``:
#: https://www.iana.org/assignments/ipv6-address-space
_HALF: Final = {4: 2**31, 6: 2**124}


def open_ranges(inputs: Mapping[str, Any] | None, direction: Direction) -> tuple[str, ...]:
    """Ranges by which an enabled rule of this direction lets any address through; empty if none.

    A rule without sources or destinations holds for all:
    https://docs.cloud.google.com/firewall/docs/firewalls
    """
    if not inputs or not _allows(inputs):
        return ()
    is_egress = inputs.get("direction") == "EGRESS"
    if is_egress != (direction == "EGRESS"):
        return ()
    if is_egress:
        return covering(inputs.get("destinationRanges") or ANYWHERE)
    named = any(map(inputs.get, ("sourceTags", "sourceServiceAccounts")))
    return covering(inputs.get("sourceRanges") or (() if named else ANYWHERE))


def reaches_anywhere(inputs: Mapping[str, Any] | None) -> bool:
    """Whether machines reach any address by a rule: outward, or inward of every machine there is.

    An ingress rule without ranges of destinations is for the machines that it is about.
    """
    if not inputs or not _allows(inputs):
        return False
    return bool(covering(inputs.get("destinationRanges")) or open_ranges(inputs, "EGRESS"))


def _allows(inputs: Mapping[str, Any]) -> bool:
    """Whether the rule is on, and lets something through."""
    return bool(inputs.get("allows")) and inputs.get("disabled") is not True


def covering(ranges: Any) -> tuple[str, ...]:
    """Those of a rule's ranges that have as many addresses as half of the internet, or more.

    Alone, or else together: whoever may not name ``0.0.0.0/0`` names its two halves. Empty if they
    have less, or are not known yet.

    >>> covering(["10.0.0.0/8", "2000::/3"]), covering(["0.0.0.0/2", "192.0.0.0/2", "10.0.0.1"])
    (('2000::/3',), ('0.0.0.0/2', '192.0.0.0/2', '10.0.0.1'))
    """
    blocks = [(str(text), found) for text in _listed(ranges) if (found := _block(text))]
    if alone := tuple(text for text, block in blocks if _is_half([block])):
        return alone
    versions = [[each for each in blocks if each[1].version == version] for version in (4, 6)]
    together = (same for same in versions if same and _is_half([block for _, block in same]))
    return tuple(text for same in together for text, _ in same)


def _listed(ranges: Any) -> Sequence[Any]:
    return ranges if isinstance(ranges, list | tuple) else ()


def _block(text: Any) -> Block | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None  # a value that is known later


def _is_half(blocks: Sequence[Any]) -> bool:
    addresses = sum(block.num_addresses for block in ipaddress.collapse_addresses(blocks))
    return addresses >= _HALF[blocks[0].version]
