"""What cannot be in the sections ``network`` and ``sharedVpc``: rules across their keys. Pure.

Each function yields rows: path below our namespace, what is wrong, the value, a hint.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from pydantic.alias_generators import to_camel

from infra import catalog, naming
from infra.errors import Row
from infra.plan import network as network_plan
from infra.settings.model import Settings
from infra.settings.network import IpRange, Network

#: Keys that say nothing outside of one mode.
ONLY_IN = {
    "ranges": "peering",
    "export_custom_routes": "peering",
    "import_custom_routes": "peering",
    "attachment": "psc",
    "dns_peering": "psc",
}
#: "A /28 subnet is recommended"; Google's guide makes none smaller: general/vpc-psc-i-setup.
SMALLEST_SUBNET = 28
#: What the page on private services access asks for; others ask for more: general/vpc-peering.
SMALLEST_RANGE = 19


def problems(settings: Settings) -> list[Row]:
    """Everything that does not hold."""
    network = settings.network
    rows = [*_mode(network), *_host(settings)]
    if network.mode == "none":
        return rows
    rows += [*_parts(settings), *_names(settings)]
    if network.mode == "peering":
        rows += _peering(settings)
    return rows + list(_overlaps(settings))


def _mode(network: Network) -> Iterator[Row]:
    """Keys that belong to another mode."""
    for name in sorted(network.model_fields_set - {"mode"}):
        key = to_camel(name)
        wanted = ONLY_IN.get(name, network.mode)
        if network.mode == "none":
            hint = "mode: peering or mode: psc; docs/networks.md compares them"
            yield f"network.{key}", "says nothing in mode none", "", hint
        elif wanted != network.mode:
            yield f"network.{key}", f"is for mode {wanted}", f"mode: {network.mode}", "remove it"


def _host(settings: Settings) -> Iterator[Row]:
    """The host project of a Shared VPC."""
    host, network = settings.shared_vpc, settings.network
    if host is None:
        return
    if network.mode == "none":
        yield "sharedVpc", "says nothing without a network", "", "network: {mode: psc, …}"
    if host.host_project == settings.project:
        what = "must be another project than where jobs run"
        yield "sharedVpc.hostProject", what, host.host_project, "or remove sharedVpc"
    if host.host_project_number == settings.project_number:
        hint = f"gcloud projects describe {host.host_project} --format='value(projectNumber)'"
        what = "is the number of the project where jobs run"
        yield "sharedVpc.hostProjectNumber", what, host.host_project_number, hint
    if not host.manage_host:
        yield from _host_of_others(settings)
    for index, member in enumerate(host.deployers):
        if not member.startswith(naming.MEMBER_KINDS):
            path = f"sharedVpc.deployers[{index}]"
            yield path, "not an IAM member", member, f"write {', '.join(naming.MEMBER_KINDS[:3])}"


def _host_of_others(settings: Settings) -> Iterator[Row]:
    """Nothing can be made in a host project that is not the stack's to manage."""
    network = settings.network
    made = {
        "existing": network.existing is None and network.mode != "none",
        "subnet.range": network.subnet is not None and not network.subnet.existing,
        "nat": network.nat,
        "allow": bool(network.allow),
        **{f"ranges.{key}": not r.existing for key, r in network.ranges.items()},
    }
    for key, is_made in made.items():
        if is_made:
            what = "would make something in a host project that manageHost: false leaves alone"
            yield f"network.{key}", what, "", "name what is there by existing, or ask its owner"


def _parts(settings: Settings) -> Iterator[Row]:
    """A network, subnet, range or attachment that is neither made nor named, or wrongly."""
    network = settings.network
    project, _ = network_plan.owner(settings)
    host = settings.shared_vpc
    allowed = {settings.project, *([host.host_project] if host else [])}
    if network.existing and project not in allowed:
        hint = f"sharedVpc: {{hostProject: {project}, hostProjectNumber: …}}"
        what = "a network of another project can be used by a Shared VPC only"
        if network.mode == "peering" or not network.attachment.existing:
            yield "network.existing", what, network.existing, hint
    subnet = network.subnet
    if network.mode == "psc" and not network.attachment.existing and subnet is None:
        yield "network", "needs a subnet for its attachment", "", "subnet: {range: 10.20.0.0/26}"
    if subnet and not subnet.existing and not subnet.range:
        hint = "range: 10.20.0.0/26, or existing: projects/P/regions/R/subnetworks/NAME"
        yield "network.subnet", "has neither range nor existing", "", hint
    if subnet and subnet.existing and not network.existing:
        what = "is in a network that exists; name that too"
        yield "network.subnet.existing", what, "", "existing: projects/P/global/networks/NAME"
    if subnet and subnet.range and _prefix(subnet.range) > SMALLEST_SUBNET:
        yield "network.subnet.range", "is smaller than a /28", subnet.range, "take a /28 or larger"
    if network.nat and subnet is None:
        yield "network.nat", "is for a subnet's machines", "", "subnet: {range: 10.20.0.0/26}"
    if network.allow and not _workers_known(network):
        what = "the addresses of the machines of jobs are not known here"
        yield "network.allow", what, "", "give address and prefixLength of the range, or the subnet"
    yield from _regions(settings)


def _regions(settings: Settings) -> Iterator[Row]:
    """Subnet and attachment are regional, and jobs stay in their region."""
    network = settings.network
    given = {
        "network.subnet.existing": network.subnet.existing if network.subnet else None,
        "network.attachment.existing": network.attachment.existing,
    }
    for path, name in given.items():
        if name and name.split("/")[3] != settings.region:
            what = f"is not in the stack's region {settings.region}"
            yield path, what, name, "name one of that region"


def _peering(settings: Settings) -> Iterator[Row]:
    network = settings.network
    if not network.ranges:
        hint = "ranges: {workers: {prefixLength: 16}}, or {workers: {existing: NAME}}"
        yield "network", "peering needs a range of addresses for the machines of jobs", "", hint
    if network.existing and not network_plan.owner(settings)[1]:
        hint = "sharedVpc.hostProjectNumber says it"
        what = "the number of its project is not known, and jobs name a network by it"
        yield "network.existing", what, network.existing, hint
    for key, wanted in network.ranges.items():
        path = f"network.ranges.{key}"
        if not wanted.existing and wanted.prefix_length is None:
            yield path, "has neither prefixLength nor existing", "", "prefixLength: 16"
        if wanted.prefix_length and wanted.prefix_length > SMALLEST_RANGE:
            got = f"/{wanted.prefix_length}"
            yield f"{path}.prefixLength", "is too small for training", got, "16 is recommended"
        if wanted.existing and not network.existing:
            what = "a range that exists is in a network that exists"
            yield f"{path}.existing", what, wanted.existing, "name the network by network.existing"
        if wanted.address and wanted.prefix_length and _block(wanted) is None:
            what = f"is not where a /{wanted.prefix_length} begins"
            yield f"{path}.address", what, wanted.address, "begin at a multiple of its size"
    routes = network.export_custom_routes or network.import_custom_routes
    if routes and all(wanted.existing for wanted in network.ranges.values()):
        key = "exportCustomRoutes" if network.export_custom_routes else "importCustomRoutes"
        what = "the connection of existing ranges is somebody else's"
        yield f"network.{key}", what, "", "its owner sets this"


def _names(settings: Settings) -> Iterator[Row]:
    """Names that follow from the keys and are too long for Compute Engine."""
    names = settings.names
    made = {"network": names.network()}
    made |= {f"network.ranges.{key}": names.ip_range(key) for key in settings.network.ranges}
    made |= {f"network.allow.{key}": names.firewall(key) for key in settings.network.allow}
    for path, name in made.items():
        if not naming.COMPUTE.match(name):
            yield path, "makes a name that Compute Engine refuses", name, naming.COMPUTE_RULE
    if "workers" in settings.network.allow:
        yield "network.allow.workers", "the stack makes this rule itself", "workers", "rename it"


def _overlaps(settings: Settings) -> Iterator[Row]:
    """Blocks that overlap each other, those in use elsewhere, or those that are reserved."""
    network = settings.network
    blocks: list[tuple[str, ipaddress.IPv4Network]] = []
    if network.subnet and network.subnet.range:
        blocks.append(("network.subnet.range", ipaddress.IPv4Network(network.subnet.range)))
    for key, wanted in network.ranges.items():
        if block := _block(wanted):
            blocks.append((f"network.ranges.{key}.address", block))
    taken = [(ipaddress.IPv4Network(text), "in avoid") for text in network.avoid]
    taken += [
        (ipaddress.IPv4Network(row["block"]), f"reserved: {row['why']}, {row['source']}")
        for row in catalog.load("address_blocks.yaml")
        if row["for"] == network.mode
    ]
    for index, (path, block) in enumerate(blocks):
        taken_here = [*taken, *((other, f"of {place}") for place, other in blocks[:index])]
        for other, why in taken_here:
            if block.overlaps(other):
                yield path, f"overlaps {other} ({why})", str(block), "choose other addresses"


def _block(wanted: IpRange) -> ipaddress.IPv4Network | None:
    """A range as a block, if the stack file says all of it and it is one."""
    if not wanted.address or not wanted.prefix_length:
        return None
    try:
        return ipaddress.IPv4Network(f"{wanted.address}/{wanted.prefix_length}")
    except ValueError:
        return None


def _prefix(block: str) -> int:
    return ipaddress.IPv4Network(block).prefixlen


def _workers_known(network: Network) -> bool:
    if network.mode == "psc":
        return bool(network.subnet and network.subnet.range)
    return any(not r.existing or (r.address and r.prefix_length) for r in network.ranges.values())
