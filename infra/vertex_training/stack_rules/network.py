"""Rules about sections ``network``, ``sharedVpc`` and ``reservations``."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from typing import Final

from pydantic.alias_generators import to_camel

from vertex_training import catalog, naming
from vertex_training.catalog import machines
from vertex_training.errors import Path, Problem, did_you_mean, dotted
from vertex_training.plan.network import ReservationPlan, network_owner, plan_reservations
from vertex_training.settings.model import Settings
from vertex_training.settings.network import IpRange, Network
from vertex_training.stack_rules import StackFile, file_rule, rule
from vertex_training.stack_rules.names import OF_OWNER

#: Key of ``network`` -> the only mode in which the key has an effect.
ONLY_IN: Final = {
    "ranges": "peering",
    "export_custom_routes": "peering",
    "import_custom_routes": "peering",
    "attachment": "psc",
    "dns_peering": "psc",
}
#: Fields that only reservations of the stack itself can have.
OF_NEW: Final = (
    *("name", "project", "delete_at_time", "delete_after_duration", "share_with", "protect"),
)
NETWORK_HINT: Final = "set network.existing: projects/P/global/networks/NAME"
#: "A /28 subnet is recommended"; no subnet in Google's guide is smaller: general/vpc-psc-i-setup.
SMALLEST_SUBNET: Final = 28
#: Smallest range according to the page on private services access. Other pages require larger
#: ranges: general/vpc-peering.
SMALLEST_RANGE: Final = 19
#: The shortest prefix in Google's table of jobs by range: training/using-private-ip.
SMALLEST_IN_TABLE: Final = 18


@rule()
def network_mode(settings: Settings) -> Iterator[Problem]:
    """Check that the keys of the network suit its mode."""
    network = settings.network
    for name in sorted(network.model_fields_set - {"mode"}):
        key = to_camel(name)
        required = ONLY_IN.get(name, network.mode)
        if network.mode == "none":
            hint = "set mode: peering or mode: psc (compared in docs/environments.md)"
            yield Problem("this key has no effect with mode: none", "", hint, ("network", key))
        elif required != network.mode:
            what, got = f"this key requires mode: {required}", f"mode: {network.mode}"
            yield Problem(what, got, "remove the key", ("network", key))


@rule()
def host_project(settings: Settings) -> Iterator[Problem]:
    """Check that a Shared VPC's host is another project, and that the stack may change it."""
    host, network = settings.shared_vpc, settings.network
    if host is None:
        return
    if network.mode == "none":
        what, hint = "sharedVpc has no effect without network", "set network: {mode: psc, …}"
        yield Problem(what, "", hint, ("sharedVpc",))
    if host.host_project == settings.project:
        what = "hostProject must differ from gcp:project, where jobs run"
        hint = "name the project of the network, or remove sharedVpc"
        yield Problem(what, host.host_project, hint, ("sharedVpc", "hostProject"))
    if host.host_project_number == settings.project_number:
        hint = f"gcloud projects describe {host.host_project} --format='value(projectNumber)'"
        what = "hostProjectNumber is the number of gcp:project, where jobs run"
        yield Problem(what, host.host_project_number, hint, ("sharedVpc", "hostProjectNumber"))
    creates = {
        ("existing",): network.existing is None and network.mode != "none",
        ("subnet", "range"): network.subnet is not None and not network.subnet.existing,
        ("nat",): network.nat,
        ("allow",): bool(network.allow),
        **{("ranges", key): not r.existing for key, r in network.ranges.items()},
    }
    for path in () if host.manage_host else (path for path, is_made in creates.items() if is_made):
        what = "manageHost: false forbids creating resources in the host project"
        hint = "name an existing resource by `existing`, or ask the owner to create the resource"
        yield Problem(what, "", hint, ("network", *path))


@rule()
def network_parts(settings: Settings) -> Iterator[Problem]:
    """Check that network, subnet and attachment are complete and can be used."""
    network = settings.network
    if network.mode == "none":
        return
    project, _ = network_owner(settings)
    host = settings.shared_vpc
    allowed = {settings.project, *([host.host_project] if host else [])}
    if network.existing and project not in allowed:
        hint = f"sharedVpc: {{hostProject: {project}, hostProjectNumber: …}}"
        what = "using a network of another project requires sharedVpc"
        if network.mode == "peering" or not network.attachment.existing:
            yield Problem(what, network.existing, hint, ("network", "existing"))
    yield from _subnet(network)
    is_known = bool(network.subnet and network.subnet.range)
    if network.mode == "peering":
        ranges = network.ranges.values()
        is_known = any(not r.existing or (r.address and r.prefix_length) for r in ranges)
    if network.allow and not is_known:
        what = "allow requires the addresses of the jobs' machines, which this file does not set"
        hint = "set address and prefixLength of the range, or range of the subnet"
        yield Problem(what, "", hint, ("network", "allow"))
    existing = {
        ("network", "subnet", "existing"): network.subnet.existing if network.subnet else None,
        ("network", "attachment", "existing"): network.attachment.existing,
    }
    for path, name in existing.items():
        if name and name.split("/")[3] != settings.region:
            what = f"this resource is outside of the stack's region {settings.region}"
            yield Problem(what, name, f"name a resource in {settings.region}", path)


def _subnet(network: Network) -> Iterator[Problem]:
    subnet, path, example = network.subnet, ("network", "subnet"), "range: 10.20.0.0/26"
    if network.mode == "psc" and not network.attachment.existing and subnet is None:
        what = "mode: psc requires a subnet for the network attachment"
        yield Problem(what, "", f"set subnet: {{{example}}}", ("network",))
    if subnet and not subnet.existing and not subnet.range:
        hint = f"set {example}, or existing: projects/P/regions/R/subnetworks/NAME"
        yield Problem("subnet has neither range nor existing", "", hint, path)
    if subnet and subnet.existing and not network.existing:
        what = "an existing subnet requires network.existing"
        yield Problem(what, "", NETWORK_HINT, (*path, "existing"))
    block = ipaddress.IPv4Network(subnet.range) if subnet and subnet.range else None
    if block and block.prefixlen > SMALLEST_SUBNET:
        what, hint = "the subnet is smaller than /28", "use a block of /28 or larger"
        yield Problem(what, str(block), hint, (*path, "range"))
    if network.nat and subnet is None:
        hint = f"set subnet: {{{example}}}"
        yield Problem("nat requires a subnet", "", hint, ("network", "nat"))


@rule()
def names_in_network(settings: Settings) -> Iterator[Problem]:
    """Check that Compute Engine accepts the names that are built from keys."""
    names = settings.names
    network = settings.network
    if network.mode == "none":
        return
    derived: dict[Path, str] = {("network",): names.network()}
    for key, range_ in network.ranges.items():
        derived[("network", "ranges", key)] = range_.name or names.ip_range(key)
    for key in network.allow:
        derived[("network", "allow", key)] = names.firewall(key)
    for path, name in derived.items():
        if not naming.COMPUTE.match(name):
            yield Problem("Compute Engine refuses this name", name, naming.COMPUTE_RULE, path)
    if "workers" in settings.network.allow:
        what, path = "the stack reserves this key for its own firewall rule", ("network", "allow")
        yield Problem(what, "workers", "choose another key", (*path, "workers"))


@rule()
def peered_network(settings: Settings) -> Iterator[Problem]:
    """Check that a peered network has address ranges that are large enough."""
    network = settings.network
    if network.mode != "peering":
        return
    if not network.ranges:
        hint = "set ranges: {workers: {prefixLength: 16}}, or {workers: {existing: NAME}}"
        what = "mode: peering requires an address range for the machines of jobs"
        yield Problem(what, "", hint, ("network",))
    if network.existing and not network_owner(settings)[1]:
        hint = "set sharedVpc.hostProjectNumber"
        what = "the project number of this network is missing: jobs name networks by number"
        yield Problem(what, network.existing, hint, ("network", "existing"))
    for key, range_ in network.ranges.items():
        path = ("network", "ranges", key)
        if not range_.existing and range_.prefix_length is None:
            what = "this range has neither prefixLength nor existing"
            yield Problem(what, "", "set prefixLength: 16", path)
        if range_.prefix_length and range_.prefix_length > SMALLEST_RANGE:
            what, got = "this range is too small for training", f"/{range_.prefix_length}"
            yield Problem(what, got, "write prefixLength: 16", (*path, "prefixLength"))
        if range_.existing and not network.existing:
            what = "an existing range requires network.existing"
            yield Problem(what, range_.existing, NETWORK_HINT, (*path, "existing"))
        if range_.address and range_.prefix_length and _block(range_) is None:
            what = f"this address is not the first of a /{range_.prefix_length} block"
            hint = "write an address that is a multiple of the block's size"
            yield Problem(what, range_.address, hint, (*path, "address"))
    routes = network.export_custom_routes or network.import_custom_routes
    if routes and all(range_.existing for range_ in network.ranges.values()):
        key = "exportCustomRoutes" if network.export_custom_routes else "importCustomRoutes"
        what = "the stack does not manage the peering connection of existing ranges"
        yield Problem(what, "", f"ask the owner of the connection to set {key}", ("network", key))


@rule()
def overlapping_ranges(settings: Settings) -> Iterator[Problem]:
    """Check that address blocks do not overlap: own blocks, ``avoid``, and reserved blocks."""
    network = settings.network
    if network.mode == "none":
        return
    blocks: list[tuple[Path, ipaddress.IPv4Network]] = []
    if network.subnet and network.subnet.range:
        path = ("network", "subnet", "range")
        blocks.append((path, ipaddress.IPv4Network(network.subnet.range)))
    for key, range_ in network.ranges.items():
        if block := _block(range_):
            blocks.append((("network", "ranges", key, "address"), block))
    taken = [(ipaddress.IPv4Network(text), "listed in avoid") for text in network.avoid]
    taken += [
        (ipaddress.IPv4Network(row["block"]), f"reserved: {row['why']}, {row['source']}")
        for row in catalog.load("address_blocks.yaml")
        if row["for"] in (network.mode, "any")
    ]
    for index, (path, block) in enumerate(blocks):
        earlier = [(other, f"from {dotted(place)}") for place, other in blocks[:index]]
        for other, why in (*taken, *earlier):
            if block.overlaps(other):
                what = f"this block overlaps {other} ({why})"
                yield Problem(what, str(block), "choose another block", path)


def _block(range_: IpRange) -> ipaddress.IPv4Network | None:
    """Return a range as a block; None if the range is incomplete or invalid."""
    if not range_.address or not range_.prefix_length:
        return None
    try:
        return ipaddress.IPv4Network(f"{range_.address}/{range_.prefix_length}")
    except ValueError:
        return None


def _public(path: Path, block: str) -> Iterator[Problem]:
    # https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges
    if ipaddress.IPv4Network(block, strict=False).is_global:
        what = "this block has public addresses, whose hosts on the internet become unreachable"
        yield Problem(what, block, "use private addresses, such as 10.20.0.0/26", path)


@rule("warning")
def surprising_network(settings: Settings) -> Iterator[Problem]:
    """Warn about public addresses, small ranges, and a NAT that does not serve jobs."""
    network = settings.network
    if (subnet := network.subnet) and subnet.range and not subnet.existing:
        yield from _public(("network", "subnet", "range"), subnet.range)
    for key, range_ in network.ranges.items():
        if range_.address and range_.prefix_length and not range_.existing:
            block = f"{range_.address}/{range_.prefix_length}"
            yield from _public(("network", "ranges", key, "address"), block)
    if network.nat:
        # training/psc-i-egress; peered jobs run in Google's network, which this NAT does not serve
        what = "this NAT does not serve jobs, which reach the internet by Google's gateways"
        hint = (
            "keep nat for your own machines, or for jobs with mode: psc in a VPC Service Controls "
            "perimeter; otherwise remove nat"
        )
        yield Problem(what, "", hint, ("network", "nat"))
    for key, range_ in network.ranges.items():
        if range_.prefix_length and range_.prefix_length > SMALLEST_IN_TABLE:
            what = "this range is smaller than all ranges in Google's table of parallel jobs"
            path, got = ("network", "ranges", key, "prefixLength"), str(range_.prefix_length)
            yield Problem(what, got, "write a prefix length from 16 to 18", path)


@rule()
def reservations(settings: Settings) -> Iterator[Problem]:
    """Check the machine, zone, sharing and end of each reservation."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, plan in plan_reservations(settings).items():
        path = ("reservations", key)
        yield from _machine(path, plan)
        yield from _place(path, plan, settings)
        yield from _sharing(path, plan, settings)
        yield from _end(path, plan, now)


def _machine(path: Path, plan: ReservationPlan) -> Iterator[Problem]:
    reservation, machine = plan.settings, machines.machine_type(plan.machine_type)
    if machine is None:
        hint = did_you_mean(plan.machine_type, machines.machine_types())
        hint = machines.unavailable_reason(plan.machine_type) or hint
        what = "training jobs cannot use this machine type"
        yield Problem(what, plan.machine_type, hint[:300], (*path, "machineType"))
        return
    allowed = machine.accelerators
    kind, count = reservation.accelerator_type, reservation.accelerator_count
    known = ", ".join(f"{name} x {'/'.join(map(str, n))}" for name, n in allowed.items())
    if kind and kind not in allowed:
        what = f"{plan.machine_type} does not support this GPU"
        hint = f"use one of: {known}" if known else "remove acceleratorType"
        yield Problem(what, kind, hint, (*path, "acceleratorType"))
    elif kind and (count or 1) not in allowed[kind]:
        what = f"{plan.machine_type} does not support this number of {kind}"
        yield Problem(what, str(count or 1), f"use one of: {known}", (*path, "acceleratorCount"))
    if count and not kind:
        what = "acceleratorCount requires acceleratorType"
        hint = "add acceleratorType, or remove acceleratorCount"
        yield Problem(what, str(count), hint, (*path, "acceleratorCount"))
    if machine.accelerator_required and not plan.accelerator_type:
        what = f"{plan.machine_type} requires acceleratorType and acceleratorCount"
        yield Problem(what, "", f"use one of: {known}", path)


def _place(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    reservation = plan.settings
    letters = catalog.load("zones.yaml")["letters"].get(settings.region, "")
    zones = [f"{settings.region}-{letter}" for letter in letters]
    if reservation.zone.rsplit("-", 1)[0] != settings.region:
        what = f"this zone is outside of {settings.region}, where the stack's jobs run"
        yield Problem(what, reservation.zone, f"use a zone of {settings.region}", (*path, "zone"))
    elif zones and reservation.zone not in zones:
        what = f"region {settings.region} has no such zone"
        yield Problem(what, reservation.zone, f"use one of {', '.join(zones)}", (*path, "zone"))
    if not naming.COMPUTE.match(plan.name):
        yield Problem("Compute Engine refuses this name", plan.name, naming.COMPUTE_RULE, path)
    if not reservation.existing:
        return
    zone = reservation.existing.split("/")[3]
    if zone != reservation.zone:
        what = f"the existing reservation is in zone {zone}"
        yield Problem(what, reservation.zone, f"write zone: {zone}", (*path, "zone"))
    for field in OF_NEW:
        if field in reservation.model_fields_set:
            yield Problem(OF_OWNER, "", "remove this key", (*path, to_camel(field)))


def _end(path: Path, plan: ReservationPlan, now: datetime.datetime) -> Iterator[Problem]:
    """Yield a problem if a reservation ends in the past: Google refuses such a reservation."""
    # https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations (deleteAtTime)
    at = plan.settings.delete_at_time
    if at and at <= now and not plan.settings.existing:
        what = "this time has passed: Google deletes the reservation and refuses to create it again"
        hint = "write a later time, or remove the reservation"
        yield Problem(what, at.isoformat(), hint, (*path, "deleteAtTime"))


def _sharing(path: Path, plan: ReservationPlan, settings: Settings) -> Iterator[Problem]:
    """Yield problems if ``shareWith`` lacks the jobs' project or has the owner's project."""
    reservation = plan.settings
    owner = reservation.project or settings.project
    is_missing = settings.project not in (owner, *reservation.share_with)
    if is_missing and not reservation.existing:
        what = f"shareWith must list {settings.project}, where jobs run"
        yield Problem(what, "", f"add {settings.project} to shareWith", (*path, "shareWith"))
    if owner in reservation.share_with:
        what = "shareWith lists the project that owns the reservation"
        yield Problem(what, owner, f"remove {owner} from shareWith", (*path, "shareWith"))


@file_rule("warning")
def unused_reservations(file: StackFile) -> Iterator[Problem]:
    """Warn about reservations that the stack creates but no job uses."""
    requests, plans = file.requests, file.reservations
    used = {name for request in requests.values() for name in request.used}
    bodies = [rung.body for request in requests.values() for rung in request.rungs]
    for key, plan in plans.items():
        path, reservation = ("reservations", key), plan.settings
        named = {f"reservations.{key}", f"reservations.{key}.name"} & used
        if not named and not any(plan.path in body for body in bodies) and not reservation.existing:
            what = "no job of this stack uses this reservation, which costs the same unused"
            hint = f"set reservationAffinity: ${{reservations.{key}}} in a job file"
            yield Problem(what, "", hint, path)
