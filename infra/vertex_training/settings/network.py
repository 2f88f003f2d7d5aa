"""The models of the sections ``network``, ``sharedVpc`` and ``reservations`` of a stack file.

A resource given by ``existing`` is used, never made. ``vertex_training.stack_rules.network``
has the rules across keys, ``vertex_training.plan.network`` the names and grants derived from
them.
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
    """``text`` if it is a block of IPv4 addresses without host bits, like 10.0.0.0/24."""
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as wrong:
        raise ValueError(f"must be a block of IPv4 addresses like 10.20.0.0/24: {wrong}") from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("must be an IPv4 address like 10.64.0.0") from None


def _ports(text: str) -> str:
    """``text`` if its ports exist, and the first of a range is not above its last."""
    numbers = [int(number) for number in text.split("-")]
    if not 0 <= numbers[0] <= numbers[-1] <= LAST_PORT:
        raise ValueError(f"must be ports from 0 to {LAST_PORT}, the lower one first")
    return text


#: Ports are 16 bits wide: RFC 9293, section 3.1.
LAST_PORT: Final = 65_535
NAME: Final = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
PROJECT: Final = r"projects/[a-z0-9-]+"
REGION: Final = r"regions/[a-z]+-[a-z]+[0-9]+"
Name = Annotated[str, form(NAME, "my-network: at most 63 lowercase letters, digits and '-'")]
Cidr = Annotated[str, pydantic.AfterValidator(_network), Field(examples=["10.20.0.0/24"])]
Address = Annotated[str, pydantic.AfterValidator(_address), Field(examples=["10.64.0.0"])]
NetworkPath = Annotated[
    str, form(rf"{PROJECT}/global/networks/{NAME}", "projects/PROJECT/global/networks/NAME")
]
SubnetPath = Annotated[
    str,
    form(
        rf"{PROJECT}/{REGION}/subnetworks/{NAME}",
        "projects/PROJECT/regions/REGION/subnetworks/NAME",
    ),
]
AttachmentPath = Annotated[
    str,
    form(
        rf"{PROJECT}/{REGION}/networkAttachments/{NAME}",
        "projects/PROJECT/regions/REGION/networkAttachments/NAME",
    ),
]
Domain = Annotated[str, form(r"([a-z0-9_-]+\.)+", "corp.example.com. with a dot at its end")]
Ports = Annotated[
    str,
    form(r"[0-9]{1,5}(-[0-9]{1,5})?", '"2049" or "8000-8010"'),
    pydantic.AfterValidator(_ports),
]


class Subnet(Section):
    """A subnet: the one a network attachment takes addresses from, or for machines of one's own."""

    range: Cidr | None = None
    """Its addresses. Of an existing subnet: what it has, for the checks."""
    existing: SubnetPath | None = None
    """A subnet that is there; without it the stack makes one."""
    private_ip_google_access: bool = True
    """Machines without an external address reach Google's APIs."""


class IpRange(NamedSection):
    """Addresses that peering sets aside for the machines of jobs: a global address."""

    prefix_length: int | None = Field(default=None, ge=8, le=29)
    """16 has room for 63 parallel jobs with up to 8 nodes each."""
    address: Address | None = None
    """First address; without it, Google chooses."""
    name: Name | None = None
    """Its name in the cloud; ``training-KEY-STACK`` without it."""
    existing: Name | None = None
    """Name of a range that the network's service connection has already."""


class Attachment(Section):
    """The network attachment that jobs of a Private Service Connect interface use."""

    existing: AttachmentPath | None = None
    """An attachment that is there; without it the stack makes one."""
    connection_preference: Literal["ACCEPT_AUTOMATIC", "ACCEPT_MANUAL"] = "ACCEPT_AUTOMATIC"
    """Automatic or manual acceptance of connections."""


class DnsPeering(Section):
    """Private names that jobs look up in a network's private zones."""

    domain: Domain
    """Ends with a dot: ``corp.example.com.``"""
    target_project: ProjectId | None = None
    """Project of the network with the zones; the stack's network without it."""
    target_network: Name | None = None
    """Network with the zones; the stack's without it."""


class Allow(NamedSection):
    """Traffic of job machines that the network allows, beside that among themselves."""

    protocol: Literal["tcp", "udp", "icmp"] = "tcp"
    """The protocol."""
    ports: list[Ports] = []
    """All of them if none is given."""
    destination_ranges: list[Cidr] = Field(min_length=1)
    """Destinations, as blocks of addresses."""


class Network(Section):
    """Connection of jobs to a network, and the network itself unless it exists.

    ``none``: they do not. ``peering``: Google's network, where jobs run, is peered with it.
    ``psc``: each machine has an interface in it, by way of a network attachment.
    """

    mode: Literal["none", "peering", "psc"] = "none"
    """Kind of connection: none, peering, or Private Service Connect."""
    existing: NetworkPath | None = None
    """A network that is there; without it the stack makes one."""
    subnet: Subnet | None = None
    """The subnet that the attachment takes addresses from, or one for machines of one's own."""
    ranges: dict[Key, IpRange] = {}
    """Peering: addresses for the machines of jobs, by name."""
    export_custom_routes: bool = False
    """Peering: whether jobs see the network's own routes, for example to on-premises."""
    import_custom_routes: bool = False
    """Peering: whether the network sees the routes of Google's."""
    attachment: Attachment = Attachment()
    """Private Service Connect: the network attachment."""
    dns_peering: dict[Key, DnsPeering] = {}
    """Private Service Connect: private names that jobs look up, by a name of one's own."""
    nat: bool = False
    """Cloud NAT for the subnet's machines. Jobs do not use it: see docs/networks.md."""
    allow: dict[Key, Allow] = {}
    """Allowed traffic of the machines of jobs in the network, by name."""
    avoid: list[Cidr] = []
    """Addresses used elsewhere, like on-premises, that none of these may overlap."""
    parallel_jobs: int | None = Field(default=None, ge=1)
    """Number of the stack's jobs that use the network at once; all of them without it."""


class SharedVpc(Section):
    """The project that owns the network, if that is another one than where jobs run."""

    host_project: ProjectId
    """The project that owns the network."""
    host_project_number: ProjectNumber
    """Its number."""
    manage_host: bool = True
    """Create the requirements of the host project. If not, the preview lists them."""
    enable_host: bool = False
    """Also turn the project into a host; usually it is one already."""


ReservationPath = Annotated[
    str,
    form(
        r"projects/[a-z0-9-]+/zones/[a-z]+-[a-z]+[0-9]+-[a-z]/reservations/"
        r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?",
        "projects/PROJECT/zones/ZONE/reservations/NAME",
    ),
]
ReservationName = Annotated[
    str, form(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", "h100-pool: lowercase letters, digits and '-'")
]
Zone = Annotated[str, form(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "us-central1-a")]
Seconds = Annotated[str, form(r"[1-9][0-9]{0,8}s", "604800s")]
#: 24 disks are the most that Compute Engine attaches:
#: https://docs.cloud.google.com/compute/docs/disks/local-ssd
MOST_SSDS: Final = 24


class LocalSsds(Section):
    """Local SSDs that are attached to every machine."""

    count: int = Field(ge=1, le=MOST_SSDS)
    """Number of them."""
    interface: Literal["NVME", "SCSI"] = "NVME"
    """Interface of the disks."""
    disk_size_gb: Literal[375, 3000] = 375
    """Size of each, in GB."""


class Reservation(NamedSection):
    """Machines that are kept for jobs, and paid for from creation to deletion, used or not."""

    zone: Zone
    """Zone of the machines, in the stack's region."""
    machine_type: str
    """Machine type, as job files name it."""
    count: int = Field(ge=1, le=100_000)
    """Number of machines."""
    accelerator_type: str | None = None
    """For N1 machines. Other machine types have their GPUs in their name."""
    accelerator_count: int | None = Field(default=None, ge=1)
    """Accelerators of each N1 machine; 1 if absent."""
    local_ssds: LocalSsds | None = None
    """Local SSDs of each machine; none if absent."""
    specific_reservation_required: bool = True
    """Only jobs that name it use it; if not, any job that fits does."""
    share_with: list[ProjectId] = []
    """Other projects that may use it."""
    project: ProjectId | None = None
    """Project that owns and pays for it; the stack's own without it."""
    delete_at_time: pydantic.AwareDatetime | None = None
    """Time at which Google deletes it."""
    delete_after_duration: Seconds | None = None
    """Seconds after its creation when Google deletes it by itself; not with ``deleteAtTime``."""
    name: ReservationName | None = None
    """Its name in the cloud; ``KEY-STACK`` without it."""
    existing: ReservationPath | None = None
    """A reservation that is there. Its ``serviceShareType`` must be ``ALLOW_ALL``."""
    parallel_jobs: int | None = Field(default=None, ge=1)
    """Number of the stack's jobs that use it at once; all of them without it."""
    protect: bool = False
    """Refuse to delete or replace it, and to destroy the stack."""

    @pydantic.model_validator(mode="after")
    def _one_end(self) -> Reservation:
        if self.delete_at_time and self.delete_after_duration:
            raise ValueError("give either deleteAtTime or deleteAfterDuration")
        return self
