"""Rules across the keys of the sections ``network``, ``sharedVpc`` and ``reservations``.

Paths of problems begin below the namespace.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from typing import Final

from pydantic.alias_generators import to_camel

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.errors import Path, Problem, did_you_mean, dotted
from vertex_training.plan import network as network_plan
from vertex_training.plan.reservations import ReservationPlan, plan_reservations
from vertex_training.settings.model import Settings
from vertex_training.settings.network import IpRange, Network
from vertex_training.stack_rules.registry import StackFile, file_rule, rule

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


@rule()
def reservations(settings: Settings) -> Iterator[Problem]:
    """Reservations have machines that jobs request, in reach of the jobs, and not in the past."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, plan in plan_reservations(settings).items():
        path = ("reservations", key)
        yield from _machine(path, plan)
        yield from _place(path, plan, settings)
        yield from _sharing(path, plan, settings)
        yield from _end(path, plan, now)


def _machine(path: Path, plan: ReservationPlan) -> Iterator[Problem]:
    """A machine that jobs can ask for; GPUs as the catalogue has them."""
    given, machine = plan.settings, machines.machine_type(plan.machine_type)
    if machine is None:
        hint = machines.unavailable_reason(plan.machine_type) or did_you_mean(
            plan.machine_type, machines.machine_types()
        )
        what = "no machine type of training jobs"
        yield Problem(what, plan.machine_type, hint[:300], (*path, "machineType"))
        return
    allowed = machine.accelerators
    kind, count = given.accelerator_type, given.accelerator_count
    known = ", ".join(f"{name} x {'/'.join(map(str, n))}" for name, n in allowed.items())
    if kind and kind not in allowed:
        what = f"{plan.machine_type} does not carry it"
        yield Problem(what, kind, f"it carries: {known or 'none'}", (*path, "acceleratorType"))
    elif kind and (count or 1) not in allowed[kind]:
        what = f"{plan.machine_type} carries another number of {kind}"
        yield Problem(what, str(count or 1), f"it carries: {known}", (*path, "acceleratorCount"))
    if count and not kind:
        what = "says nothing without acceleratorType"
        yield Problem(what, str(count), "add it, or remove this", (*path, "acceleratorCount"))
    if machine.accelerator_required and not plan.accelerator_type:
        what = f"{plan.machine_type} comes with one of several sets of GPUs"
        yield Problem(what, "", f"say which by acceleratorType and acceleratorCount: {known}", path)


def _place(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    """The zone is in the region of the jobs, the name is legal, an existing path matches."""
    given = plan.settings
    if given.zone.rsplit("-", 1)[0] != settings.region:
        what = f"is not in {settings.region}, where the stack's jobs run: none could use it"
        yield Problem(what, given.zone, f"a zone of {settings.region}", (*path, "zone"))
    elif given.zone not in (zones := _zones(settings.region)) and zones:
        what = f"is no zone of {settings.region}"
        yield Problem(what, given.zone, f"one of {', '.join(zones)}", (*path, "zone"))
    if not naming.COMPUTE.match(plan.name):
        yield Problem(
            "makes a name that Compute Engine refuses", plan.name, naming.COMPUTE_RULE, path
        )
    if not given.existing:
        return
    zone = given.existing.split("/")[3]
    if zone != given.zone:
        yield Problem(f"existing is in zone {zone}", given.zone, f"zone: {zone}", (*path, "zone"))
    made = ("name", "project", "delete_at_time", "delete_after_duration", "share_with", "protect")
    keys = {"delete_at_time": "deleteAtTime", "delete_after_duration": "deleteAfterDuration"}
    keys |= {"share_with": "shareWith"}
    for field in made:
        if field in given.model_fields_set:
            what = "is its owner's to say: this reservation exists"
            yield Problem(what, "", "remove it", (*path, keys.get(field, field)))


def _zones(region: str) -> list[str]:
    """Names of a region's zones; none where the catalogue does not have the region."""
    letters = catalog.load("zones.yaml")["letters"].get(region, "")
    return [f"{region}-{letter}" for letter in letters]


def _end(path: Path, plan: ReservationPlan, now: datetime.datetime) -> Iterator[Problem]:
    """Google refuses to make a reservation that is over: it must end in the future.

    https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations (deleteAtTime)
    """
    at = plan.settings.delete_at_time
    if at and at <= now and not plan.settings.existing:
        what = "has passed: Google has deleted the reservation, and refuses to make it anew"
        hint = "a later time, or remove the reservation"
        yield Problem(what, at.isoformat(), hint, (*path, "deleteAtTime"))


def _sharing(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    """A reservation of another project is shared with this one, and not with its owner."""
    given = plan.settings
    owner = given.project or settings.project
    if (
        owner != settings.project
        and not given.existing
        and settings.project not in given.share_with
    ):
        what = "the project where jobs run may not use it"
        yield Problem(what, "", f"add {settings.project}", (*path, "shareWith"))
    if owner in given.share_with:
        yield Problem("names the project that owns it", owner, "remove it", (*path, "shareWith"))


@file_rule("warning")
def unused_reservations(file: StackFile) -> Iterator[Problem]:
    """Each reservation that the stack makes is named by a job."""
    requests, plans = file.requests, file.reservations
    used = {name for request in requests.values() for name in request.used}
    bodies = [rung.body for request in requests.values() for rung in request.rungs]
    for key, plan in plans.items():
        path, given = ("reservations", key), plan.settings
        named = {f"reservations.{key}", f"reservations.{key}.name"} & used
        if not named and not any(plan.path in body for body in bodies) and not given.existing:
            what = "no job of this stack names it, and it is paid for all the same"
            yield Problem(
                what, "", f"reservationAffinity: ${{reservations.{key}}} in a job file", path
            )
