"""Models of sections ``network``, ``sharedVpc`` and ``reservations`` of a stack file.

A resource with ``existing`` belongs to another owner: the stack uses but never creates it.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Final, Literal

import pydantic
from pydantic import Field

from vertex_training.settings.section import (
    Key,
    NamedSection,
    ProjectId,
    ProjectNumber,
    Section,
    form,
)


def _network(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as wrong:
        raise ValueError(f"must be an IPv4 block like 10.20.0.0/24: {wrong}") from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("must be an IPv4 address like 10.64.0.0") from None


def _ports(text: str) -> str:
    numbers = [int(number) for number in text.split("-")]
    if not 0 <= numbers[0] <= numbers[-1] <= LAST_PORT:
        raise ValueError(
            f"must be a port from 0 to {LAST_PORT}, or a range with the lower port first"
        )
    return text


#: Ports are 16 bits wide: RFC 9293, section 3.1.
LAST_PORT: Final = 65_535
NAME: Final = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
PROJECT: Final = r"projects/[a-z0-9-]+"
REGION: Final = r"[a-z]+-[a-z]+[0-9]+"
IN_REGION: Final = rf"{PROJECT}/regions/{REGION}"
Name = Annotated[str, form(NAME, "my-network: at most 63 lowercase letters, digits and '-'")]
Cidr = Annotated[str, pydantic.AfterValidator(_network), Field(examples=["10.20.0.0/24"])]
Address = Annotated[str, pydantic.AfterValidator(_address), Field(examples=["10.64.0.0"])]
NetworkPath = Annotated[
    str, form(rf"{PROJECT}/global/networks/{NAME}", "projects/PROJECT/global/networks/NAME")
]
SubnetPath = Annotated[
    str, form(rf"{IN_REGION}/subnetworks/{NAME}", "projects/P/regions/REGION/subnetworks/NAME")
]
AttachmentPath = Annotated[
    str,
    form(rf"{IN_REGION}/networkAttachments/{NAME}", "projects/P/regions/R/networkAttachments/NAME"),
]
Domain = Annotated[str, form(r"([a-z0-9_-]+\.)+", "corp.example.com. with a dot at the end")]
Ports = Annotated[
    str, form(r"[0-9]{1,5}(-[0-9]{1,5})?", '"2049" or "8000-8010"'), pydantic.AfterValidator(_ports)
]


class Subnet(Section):
    """Subnet of the network attachment, or of your own machines."""

    range: Cidr | None = None
    """Address block of the subnet. For an existing subnet, checks use this value."""
    existing: SubnetPath | None = None
    """Full name of an existing subnet; default: the stack creates a subnet."""
    private_ip_google_access: bool = True
    """Private Google Access: machines without external address can call Google's APIs."""


class IpRange(NamedSection):
    """Address range for the machines of jobs in a peered network."""

    prefix_length: int | None = Field(default=None, ge=8, le=29)
    """Prefix length of the range. A /16 has room for 63 parallel jobs of up to 8 nodes each."""
    address: Address | None = None
    """First address; default: Google chooses."""
    name: Name | None = None
    """Name in the cloud; default: ``training-KEY-STACK``."""
    existing: Name | None = None
    """Name of an existing range of the network's private services connection."""


class Attachment(Section):
    """Network attachment of jobs with Private Service Connect interfaces."""

    existing: AttachmentPath | None = None
    """Full name of an existing attachment; default: the stack creates an attachment."""
    connection_preference: Literal["ACCEPT_AUTOMATIC", "ACCEPT_MANUAL"] = "ACCEPT_AUTOMATIC"
    """Acceptance of connections: automatic or manual."""


class DnsPeering(Section):
    """DNS names that jobs resolve in private zones of a network."""

    domain: Domain
    """DNS domain that ends with a dot, like ``corp.example.com.``"""
    target_project: ProjectId | None = None
    """Project of the network with the private zones; default: that of the stack's network."""
    target_network: Name | None = None
    """Name of the network with the private zones; default: the stack's network."""


class Allow(NamedSection):
    """Firewall rule: allowed traffic from job machines to other hosts."""

    protocol: Literal["tcp", "udp", "icmp"] = "tcp"
    """Protocol of the traffic."""
    ports: list[Ports] = []
    """Ports or port ranges; default: all ports."""
    destination_ranges: list[Cidr] = Field(min_length=1)
    """Destination address blocks."""


class Network(Section):
    """Network of jobs.

    ``none``: jobs use no network of yours. ``peering``: Google's network, in which jobs run, is
    peered with your network. ``psc``: each job machine has an interface in your network, through a
    network attachment.
    """

    mode: Literal["none", "peering", "psc"] = "none"
    """Kind of connection: none, VPC peering, or Private Service Connect interfaces."""
    existing: NetworkPath | None = None
    """Full name of an existing network; default: the stack creates a network."""
    subnet: Subnet | None = None
    """Subnet of the network attachment, or of your own machines."""
    ranges: dict[Key, IpRange] = {}
    """Peering: address ranges for the machines of jobs, by name."""
    export_custom_routes: bool = False
    """Peering: export the network's custom routes, for example to on-premises, to jobs."""
    import_custom_routes: bool = False
    """Peering: import custom routes of Google's network."""
    attachment: Attachment = Attachment()
    """Private Service Connect: network attachment of jobs."""
    dns_peering: dict[Key, DnsPeering] = {}
    """Private Service Connect: DNS domains that jobs resolve, by a name of your choice."""
    nat: bool = False
    """Cloud NAT for machines in the subnet. Jobs do not use it: see docs/environments.md."""
    allow: dict[Key, Allow] = {}
    """Allowed traffic from job machines to hosts in the network, by name."""
    avoid: list[Cidr] = []
    """Address blocks in use elsewhere, like on-premises. No range of the stack may overlap them."""
    parallel_jobs: int | None = Field(default=None, ge=1)
    """Maximum number of the stack's jobs in the network at the same time; default: all jobs."""


class SharedVpc(Section):
    """Shared VPC: the project that owns the network, if jobs run in another project."""

    host_project: ProjectId
    """Host project, which owns the network."""
    host_project_number: ProjectNumber
    """Number of the host project."""
    manage_host: bool = True
    """Create required resources and grants in the host project. With false, previews list them."""
    enable_host: bool = False
    """Enable the project as a Shared VPC host; usually an administrator has done this."""


ZONE: Final = rf"{REGION}-[a-z]"
ReservationPath = Annotated[
    str,
    form(
        rf"{PROJECT}/zones/{ZONE}/reservations/{NAME}",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]
ReservationName = Annotated[str, form(NAME, "h100-pool: lowercase letters, digits and '-'")]
Zone = Annotated[str, form(ZONE, "us-central1-a")]
Seconds = Annotated[str, form(r"[1-9][0-9]{0,8}s", "604800s")]
#: 24 disks are the most that Compute Engine attaches:
#: https://docs.cloud.google.com/compute/docs/disks/local-ssd
MOST_SSDS: Final = 24


class LocalSsds(Section):
    """Local SSDs of each machine."""

    count: int = Field(ge=1, le=MOST_SSDS)
    """Number of disks."""
    interface: Literal["NVME", "SCSI"] = "NVME"
    """Interface of the disks."""
    disk_size_gb: Literal[375, 3000] = 375
    """Size of each disk, in GB."""


class Reservation(NamedSection):
    """Reserved machines for jobs. A reservation costs the same whether used or not."""

    zone: Zone
    """Zone of the machines, in the stack's region."""
    machine_type: str
    """Machine type, as job files name it."""
    count: int = Field(ge=1, le=100_000)
    """Number of machines."""
    accelerator_type: str | None = None
    """Accelerator type, only for N1 machines. Other machine types imply their GPUs."""
    accelerator_count: int | None = Field(default=None, ge=1)
    """Accelerators of each N1 machine; default: 1."""
    local_ssds: LocalSsds | None = None
    """Local SSDs of each machine; default: none."""
    specific_reservation_required: bool = True
    """Restrict the reservation to jobs that name it. With false, every matching job uses it."""
    share_with: list[ProjectId] = []
    """Other projects that may use the reservation."""
    project: ProjectId | None = None
    """Project that owns the reservation and pays for it; default: the stack's project."""
    delete_at_time: pydantic.AwareDatetime | None = None
    """Time at which Google deletes the reservation."""
    delete_after_duration: Seconds | None = None
    """Seconds from creation until Google deletes the reservation. Excludes ``deleteAtTime``."""
    name: ReservationName | None = None
    """Name in the cloud; default: ``KEY-STACK``."""
    existing: ReservationPath | None = None
    """Full name of an existing reservation, with ``serviceShareType: ALLOW_ALL``."""
    parallel_jobs: int | None = Field(default=None, ge=1)
    """Maximum number of the stack's jobs that use the reservation at once; default: all jobs."""
    protect: bool = False
    """Refuse to delete or replace the reservation, and to destroy the stack."""

    @pydantic.model_validator(mode="after")
    def _one_end(self) -> Reservation:
        if self.delete_at_time and self.delete_after_duration:
            raise ValueError("deleteAtTime excludes deleteAfterDuration: remove one")
        return self
