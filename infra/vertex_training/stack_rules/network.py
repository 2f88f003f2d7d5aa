"""Rules across the keys of the sections ``network`` and ``sharedVpc``. Pure.

Paths of problems begin below the namespace.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from pydantic.alias_generators import to_camel

from vertex_training import catalog, naming
from vertex_training.errors import Path, Problem, dotted
from vertex_training.plan import network as network_plan
from vertex_training.settings.model import Settings
from vertex_training.settings.network import IpRange, Network
from vertex_training.stack_rules.registry import rule

#: Keys that have a meaning in one mode only.
ONLY_IN: Final = {
    "ranges": "peering",
    "export_custom_routes": "peering",
    "import_custom_routes": "peering",
    "attachment": "psc",
    "dns_peering": "psc",
}
#: "A /28 subnet is recommended"; Google's guide makes none smaller: general/vpc-psc-i-setup.
SMALLEST_SUBNET: Final = 28
#: What the page on private services access asks for; others ask for more: general/vpc-peering.
SMALLEST_RANGE: Final = 19
#: The shortest prefix in Google's table of jobs by range: training/using-private-ip.
SMALLEST_IN_TABLE: Final = 18


@rule()
def network_mode(settings: Settings) -> Iterator[Problem]:
    """Keys belong to the mode of the network."""
    network = settings.network
    for name in sorted(network.model_fields_set - {"mode"}):
        key = to_camel(name)
        wanted = ONLY_IN.get(name, network.mode)
        if network.mode == "none":
            hint = "mode: peering or mode: psc; docs/networks.md compares them"
            yield Problem("says nothing in mode none", "", hint, ("network", key))
        elif wanted != network.mode:
            yield Problem(
                f"is for mode {wanted}", f"mode: {network.mode}", "remove it", ("network", key)
            )


@rule()
def host_project(settings: Settings) -> Iterator[Problem]:
    """The host project of a Shared VPC is another one, and nothing is made in it without right."""
    host, network = settings.shared_vpc, settings.network
    if host is None:
        return
    if network.mode == "none":
        yield Problem(
            "says nothing without a network", "", "network: {mode: psc, …}", ("sharedVpc",)
        )
    if host.host_project == settings.project:
        what = "must be another project than where jobs run"
        yield Problem(what, host.host_project, "or remove sharedVpc", ("sharedVpc", "hostProject"))
    if host.host_project_number == settings.project_number:
        hint = f"gcloud projects describe {host.host_project} --format='value(projectNumber)'"
        what = "is the number of the project where jobs run"
        yield Problem(what, host.host_project_number, hint, ("sharedVpc", "hostProjectNumber"))
    if not host.manage_host:
        yield from _host_of_others(settings)


def _host_of_others(settings: Settings) -> Iterator[Problem]:
    """Nothing can be made in a host project that is not the stack's to manage."""
    network = settings.network
    made = {
        ("existing",): network.existing is None and network.mode != "none",
        ("subnet", "range"): network.subnet is not None and not network.subnet.existing,
        ("nat",): network.nat,
        ("allow",): bool(network.allow),
        **{("ranges", key): not r.existing for key, r in network.ranges.items()},
    }
    for path, is_made in made.items():
        if is_made:
            what = "would make something in a host project that manageHost: false leaves alone"
            hint = "name what is there by existing, or ask its owner"
            yield Problem(what, "", hint, ("network", *path))


@rule()
def network_parts(settings: Settings) -> Iterator[Problem]:
    """A network, subnet, range and attachment are made or named, and rightly."""
    network = settings.network
    if network.mode == "none":
        return
    project, _ = network_plan.owner(settings)
    host = settings.shared_vpc
    allowed = {settings.project, *([host.host_project] if host else [])}
    if network.existing and project not in allowed:
        hint = f"sharedVpc: {{hostProject: {project}, hostProjectNumber: …}}"
        what = "a network of another project can be used by a Shared VPC only"
        if network.mode == "peering" or not network.attachment.existing:
            yield Problem(what, network.existing, hint, ("network", "existing"))
    yield from _subnet(network)
    if network.allow and not _workers_known(network):
        what = "the addresses of the machines of jobs are not known here"
        hint = "give address and prefixLength of the range, or the subnet"
        yield Problem(what, "", hint, ("network", "allow"))
    yield from _regions(settings)


def _subnet(network: Network) -> Iterator[Problem]:
    """A subnet that is missing, or neither made nor named."""
    subnet = network.subnet
    if network.mode == "psc" and not network.attachment.existing and subnet is None:
        yield Problem(
            "needs a subnet for its attachment", "", "subnet: {range: 10.20.0.0/26}", ("network",)
        )
    if subnet and not subnet.existing and not subnet.range:
        hint = "range: 10.20.0.0/26, or existing: projects/P/regions/R/subnetworks/NAME"
        yield Problem("has neither range nor existing", "", hint, ("network", "subnet"))
    if subnet and subnet.existing and not network.existing:
        what = "is in a network that exists; name that too"
        yield Problem(
            what, "", "existing: projects/P/global/networks/NAME", ("network", "subnet", "existing")
        )
    if subnet and subnet.range and _prefix(subnet.range) > SMALLEST_SUBNET:
        yield Problem(
            "is smaller than a /28",
            subnet.range,
            "take a /28 or larger",
            ("network", "subnet", "range"),
        )
    if network.nat and subnet is None:
        yield Problem(
            "is for a subnet's machines", "", "subnet: {range: 10.20.0.0/26}", ("network", "nat")
        )


def _regions(settings: Settings) -> Iterator[Problem]:
    """Subnet and attachment are regional, and jobs stay in their region."""
    network = settings.network
    given = {
        ("network", "subnet", "existing"): network.subnet.existing if network.subnet else None,
        ("network", "attachment", "existing"): network.attachment.existing,
    }
    for path, name in given.items():
        if name and name.split("/")[3] != settings.region:
            what = f"is not in the stack's region {settings.region}"
            yield Problem(what, name, "name one of that region", path)


@rule()
def names_in_network(settings: Settings) -> Iterator[Problem]:
    """Names that follow from the keys are short enough for Compute Engine."""
    names = settings.names
    network = settings.network
    if network.mode == "none":
        return
    made: dict[Path, str] = {("network",): names.network()}
    for key, wanted in network.ranges.items():
        made[("network", "ranges", key)] = wanted.name or names.ip_range(key)
    for key in network.allow:
        made[("network", "allow", key)] = names.firewall(key)
    for path, name in made.items():
        if not naming.COMPUTE.match(name):
            yield Problem(
                "makes a name that Compute Engine refuses", name, naming.COMPUTE_RULE, path
            )
    if "workers" in settings.network.allow:
        yield Problem(
            "the stack makes this rule itself",
            "workers",
            "rename it",
            ("network", "allow", "workers"),
        )


@rule()
def peered_network(settings: Settings) -> Iterator[Problem]:
    """A peered network has ranges, each large enough, of its own or of its owner's connection."""
    network = settings.network
    if network.mode != "peering":
        return
    if not network.ranges:
        hint = "ranges: {workers: {prefixLength: 16}}, or {workers: {existing: NAME}}"
        yield Problem(
            "peering needs a range of addresses for the machines of jobs", "", hint, ("network",)
        )
    if network.existing and not network_plan.owner(settings)[1]:
        hint = "sharedVpc.hostProjectNumber says it"
        what = "the number of its project is not known, and jobs name a network by it"
        yield Problem(what, network.existing, hint, ("network", "existing"))
    for key, wanted in network.ranges.items():
        path = ("network", "ranges", key)
        if not wanted.existing and wanted.prefix_length is None:
            yield Problem("has neither prefixLength nor existing", "", "prefixLength: 16", path)
        if wanted.prefix_length and wanted.prefix_length > SMALLEST_RANGE:
            got = f"/{wanted.prefix_length}"
            yield Problem(
                "is too small for training", got, "16 is recommended", (*path, "prefixLength")
            )
        if wanted.existing and not network.existing:
            what = "a range that exists is in a network that exists"
            yield Problem(
                what, wanted.existing, "name the network by network.existing", (*path, "existing")
            )
        if wanted.address and wanted.prefix_length and _block(wanted) is None:
            what = f"is not where a /{wanted.prefix_length} begins"
            yield Problem(
                what, wanted.address, "begin at a multiple of its size", (*path, "address")
            )
    routes = network.export_custom_routes or network.import_custom_routes
    if routes and all(wanted.existing for wanted in network.ranges.values()):
        key = "exportCustomRoutes" if network.export_custom_routes else "importCustomRoutes"
        what = "the connection of existing ranges is somebody else's"
        yield Problem(what, "", "its owner sets this", ("network", key))


@rule()
def overlapping_ranges(settings: Settings) -> Iterator[Problem]:
    """Blocks overlap neither each other, nor those in use elsewhere, nor reserved ones."""
    network = settings.network
    if network.mode == "none":
        return
    blocks: list[tuple[Path, ipaddress.IPv4Network]] = []
    if network.subnet and network.subnet.range:
        path = ("network", "subnet", "range")
        blocks.append((path, ipaddress.IPv4Network(network.subnet.range)))
    for key, wanted in network.ranges.items():
        if block := _block(wanted):
            blocks.append((("network", "ranges", key, "address"), block))
    taken = [(ipaddress.IPv4Network(text), "in avoid") for text in network.avoid]
    taken += [
        (ipaddress.IPv4Network(row["block"]), f"reserved: {row['why']}, {row['source']}")
        for row in catalog.load("address_blocks.yaml")
        if row["for"] in (network.mode, "any")
    ]
    for index, (path, block) in enumerate(blocks):
        taken_here = [*taken, *((other, f"of {dotted(place)}") for place, other in blocks[:index])]
        for other, why in taken_here:
            if block.overlaps(other):
                yield Problem(
                    f"overlaps {other} ({why})", str(block), "choose other addresses", path
                )


def _block(wanted: IpRange) -> ipaddress.IPv4Network | None:
    """A range as a block, if the stack file has all of it and it is one."""
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


def _public(path: Path, block: str) -> Iterator[Problem]:
    """Addresses that belong to somebody on the internet: https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges"""
    if ipaddress.IPv4Network(block, strict=False).is_global:
        what = "are public addresses: machines here no longer reach their owner on the internet"
        yield Problem(what, block, "private ones, such as 10.20.0.0/26", path)


@rule("warning")
def surprising_network(settings: Settings) -> Iterator[Problem]:
    """Addresses are private, a range has room for jobs, and no NAT is meant for jobs."""
    network = settings.network
    if (subnet := network.subnet) and subnet.range and not subnet.existing:
        yield from _public(("network", "subnet", "range"), subnet.range)
    for key, wanted in network.ranges.items():
        if wanted.address and wanted.prefix_length and not wanted.existing:
            block = f"{wanted.address}/{wanted.prefix_length}"
            yield from _public(("network", "ranges", key, "address"), block)
    if network.nat:
        # training/psc-i-egress; peered jobs run in Google's network, which this NAT does not serve
        what = "does not serve jobs: they reach the internet by Google's own gateways"
        hint = "with psc and a VPC Service Controls perimeter it does; else it is for your machines"
        yield Problem(what, "", hint, ("network", "nat"))
    for key, wanted in network.ranges.items():
        if wanted.prefix_length and wanted.prefix_length > SMALLEST_IN_TABLE:
            what = "is smaller than any range in Google's table of parallel jobs"
            yield Problem(
                what,
                str(wanted.prefix_length),
                "16 to 18",
                ("network", "ranges", key, "prefixLength"),
            )
