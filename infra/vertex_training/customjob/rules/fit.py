"""Rules that compare a job with its stack's network and reservations: owner and capacity."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from vertex_training import catalog
from vertex_training.customjob.rules.context import (
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
)
from vertex_training.customjob.rules.job import (
    SPEC,
    Job,
    Pool,
    job_facts_of,
    reservation_request_of,
)
from vertex_training.customjob.rules.network import INTERFACE, NETWORK, PEERING, PSC
from vertex_training.customjob.rules.registry import GUIDES, Finding, Findings, rule
from vertex_training.errors import Path

NAME: Final[Path] = (*SPEC, "network")
ATTACHMENT: Final[Path] = (*INTERFACE, "networkAttachment")
#: Addresses of a subnet that Google reserves: https://docs.cloud.google.com/vpc/docs/subnets
RESERVED_ADDRESSES: Final = 4


def _network(job: Job) -> NetworkFacts | None:
    return job.context.stack.network if job.context.stack else None


@rule("network-foreign", "docs/environments.md#networks", "warning")
def network_foreign(job: Job) -> Findings:
    """Check that a job uses the stack's network or attachment: other networks cannot be checked."""
    network = _network(job)
    if network is None:
        return
    name, attachment = job.network, job.attachment
    if name and name != network.name and not _wrong_owner(job):
        hint = "write network: ${network.name}" if network.mode == "peering" else "remove network"
        yield Finding(NAME, "this is not the stack's network", name, hint)
    if attachment and attachment not in (network.attachment, network.attachment.split("/")[-1]):
        is_psc = network.mode == "psc"
        hint = "write ${network.attachment}" if is_psc else "remove pscInterfaceConfig"
        yield Finding(ATTACHMENT, "this is not the stack's network attachment", attachment, hint)


@rule("network-owner", PEERING)
def network_owner(job: Job) -> Findings:
    """Check that the name of a Shared VPC network has the host project's number."""
    if (network := _network(job)) and _wrong_owner(job):
        what = "the network is in the host project of a Shared VPC, not in the stack's project"
        yield Finding(NAME, what, job.network, f"write {network.name}")


@rule("network-one-a-region", PEERING)
def network_one_a_region(job: Job) -> Findings:
    """Check that all peered jobs in a region use the same network."""
    mine = job.network
    for name, other in sorted(job.context.others.items()):
        if mine and other.network and other.network != mine:
            what = f"job '{name}' uses {other.network}, and a region supports one peered network"
            yield Finding(NAME, what, mine, f"use {other.network}, or a PSC interface")
            return


@rule("range-foreign", "docs/environments.md#networks", "warning")
def range_foreign(job: Job) -> Findings:
    """Check that reserved ranges belong to the stack's network: other ranges cannot be checked."""
    network = _network(job)
    if network is None or job.spec.get("network") != network.name:
        return
    for index, name in enumerate(job.spec.get("reservedIpRanges", [])):
        if name not in network.ranges:
            hint = f"write one of {', '.join(sorted(network.ranges))}"
            path = (*SPEC, "reservedIpRanges", index)
            yield Finding(path, "the stack's network has no range of this name", name, hint)


@rule("peering-room", GUIDES + "training/using-private-ip")
def peering_room(job: Job) -> Findings:
    """Check that the peering ranges have enough addresses for all concurrent jobs of the stack."""
    network = _network(job)
    if network is None or not network.ranges or job.network != network.name:
        return
    peered = [other for other in job.context.others.values() if other.network == network.name]
    users = [job.nodes, *(other.nodes for other in peered)]
    at_once = sorted([job.parallel, *(other.parallel for other in peered)], reverse=True)
    jobs = sum(at_once[: network.parallel_jobs])
    room = _room(network.ranges.values(), max(users))
    if room is not None and jobs > room:
        prefixes = ", ".join(f"/{prefix}" for prefix in network.ranges.values())
        what = (
            f"peering ranges ({prefixes}) have addresses for {room} concurrent jobs of up to "
            f"{max(users)} nodes, but the stack can run {jobs} jobs at once"
        )
        hint = "add a range to network.ranges, or limit network.parallelJobs"
        yield Finding(NAME, what, "", hint)


@rule("interface-room", PSC, "warning")
def interface_room(job: Job) -> Findings:
    """Check that the subnet of the network attachment has an address for each concurrent node."""
    network = _network(job)
    if network is None or network.subnet_prefix is None or job.attachment != network.attachment:
        return
    others = [o for o in job.context.others.values() if o.attachment == network.attachment]
    largest = sorted((user.nodes * user.parallel for user in (job, *others)), reverse=True)
    nodes = sum(largest[: network.parallel_jobs])
    free = 2 ** (32 - network.subnet_prefix) - RESERVED_ADDRESSES
    if nodes > free:
        what = f"the subnet has {free} addresses, but the stack can run {nodes} nodes at once"
        prefix = 32 - math.ceil(math.log2(nodes + RESERVED_ADDRESSES))
        hint = f"use a /{prefix} in network.subnet.range, or limit network.parallelJobs"
        yield Finding(ATTACHMENT, what, f"/{network.subnet_prefix}", hint)


def _wrong_owner(job: Job) -> bool:
    """Return whether the network's name has the stack's project instead of the host project."""
    network, stack = _network(job), job.context.stack
    written = NETWORK.match(job.network)
    own = NETWORK.match(network.name) if network else None
    return bool(
        written
        and own
        and stack
        and written[2] == own[2]
        and written[1] != own[1]
        and written[1] in (stack.project, stack.project_number)
    )


def _room(prefixes: Collection[int | None], nodes: int) -> int | None:
    """Return how many jobs of ``nodes`` nodes fit into the ranges; None outside Google's table."""
    rows = [row for row in catalog.load("peering_ranges.yaml") if row["nodes"] >= nodes]
    if not rows or any(prefix is None or prefix < 16 for prefix in prefixes):
        return None
    table = min(rows, key=lambda row: row["nodes"])["jobs"]
    return sum(table.get(prefix, 0) for prefix in prefixes)


RESERVATIONS: Final = GUIDES + "training/use-reservations"
OURS: Final = "docs/environments.md#reservations"


def _known(job: Job) -> Mapping[str, ReservationFacts]:
    return job.context.stack.reservations if job.context.stack else {}


def _with_request(job: Job) -> Iterator[tuple[Pool, Path]]:
    for pool in job.pools:
        if pool.reserved:
            yield pool, (*pool.machine_path, "reservationAffinity")


def _requested(job: Job) -> Iterator[tuple[Pool, Path, str, ReservationFacts | None]]:
    """Yield each reservation that a worker pool names: pool, path, name, properties if known."""
    known = _known(job)
    for pool, path in _with_request(job):
        for index, name in enumerate((pool.affinity or {}).get("values", [])):
            yield pool, (*path, "values", index), name, known.get(_own(job, name))


def _own(job: Job, name: str) -> str:
    stack = job.context.stack
    if stack is None:
        return name
    by_number, by_id = f"projects/{stack.project_number}/", f"projects/{stack.project}/"
    return by_id + name.removeprefix(by_number) if name.startswith(by_number) else name


@rule("reservation-foreign", OURS, "warning")
def reservation_foreign(job: Job) -> Findings:
    """Check that a job uses only its stack's reservations: other reservations cannot be checked."""
    keys = ", ".join(f"${{reservations.{r.key}}}" for r in _known(job).values())
    for _, path, name, facts in _requested(job):
        if keys and facts is None:
            what = "the stack has no reservation of this name"
            yield Finding(path, what, name, f"write one of {keys}")


@rule("reservation-machine", RESERVATIONS, of=_requested)
def reservation_machine(
    pool: Pool, _path: Path, _name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that a pool has the machine type, GPU type and GPU count of its reservation."""
    if facts and not _fits(reservation_request_of(pool), facts):
        got = _shown(pool.machine_type, pool.accelerator, pool.count)
        reserved = _shown(facts.machine_type, facts.accelerator_type, facts.accelerator_count)
        what = f"reservation '{facts.key}' has other machines than this pool"
        hint = f"use the reservation's machines: {reserved}"
        yield Finding((*pool.machine_path, "machineType"), what, got, hint)


@rule("reservation-any", RESERVATIONS, "warning")
def reservation_any(job: Job) -> Findings:
    """Check that a pool with ANY_RESERVATION matches an open reservation of the stack."""
    reservations = _known(job).values()
    candidates = [reservation for reservation in reservations if not reservation.specific]
    for pool, path in _with_request(job):
        kind = (pool.affinity or {}).get("reservationAffinityType")
        if kind != "ANY_RESERVATION" or not reservations:
            continue
        request = reservation_request_of(pool)
        if not any(_fits(request, reservation) for reservation in candidates):
            what = "no open reservation of this stack has these machines"
            hint = "name a reservation, or set its specificReservationRequired: false"
            got = _shown(pool.machine_type, pool.accelerator, pool.count)
            yield Finding((*path, "reservationAffinityType"), what, got, hint)


@rule("reservation-count", RESERVATIONS)
def reservation_count(job: Job) -> Findings:
    """Check that a reservation has enough machines for all concurrent jobs of the stack."""
    for path, reservation, users in _shared(job):
        needed = _at_once(users, reservation)
        if needed > reservation.count:
            counts = ", ".join(f"{name}: {count}" for name, count in users.items())
            what = f"reservation '{reservation.key}' has too few machines for its jobs ({counts})"
            hint = "raise the reservation's count, or limit its parallelJobs"
            yield Finding(path, what, f"count: {reservation.count}", hint)


@rule("reservation-spare", RESERVATIONS, "warning")
def reservation_spare(job: Job) -> Findings:
    """Check that a reservation has one spare machine, as Google advises."""
    for path, reservation, users in _shared(job):
        count = reservation.count
        if _at_once(users, reservation) == count:
            what = f"concurrent jobs use all machines of reservation '{reservation.key}'"
            hint = f"set count: {count + 1}; Google advises one spare machine"
            yield Finding(path, what, f"count: {count}", hint)


@rule("reservation-open", RESERVATIONS, "warning", of=_requested)
def reservation_open(
    _pool: Pool, path: Path, name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that every reservation that a job names is a specific reservation."""
    if facts and not facts.specific:
        what = f"reservation '{facts.key}' is an open reservation, which jobs cannot use by name"
        affinity = f"reservationAffinity: ${{reservations.{facts.key}}}"
        hint = f"write {affinity}, or set specificReservationRequired: true on the reservation"
        yield Finding(path[:-2], what, name, hint)


@rule("reservation-local-ssd", RESERVATIONS, "warning", of=_requested)
def reservation_local_ssd(
    _pool: Pool, path: Path, _name: str, facts: ReservationFacts | None
) -> Findings:
    """Check that a reservation for a job has no localSsds."""
    if facts and facts.local_ssds:
        what = f"reservation '{facts.key}' has localSsds, which Vertex AI does not support"
        hint = "remove localSsds, unless the machine type includes local SSDs"
        yield Finding(path[:-2], what, str(facts.local_ssds), hint)


def _fits(request: ReservationRequest, reservation: ReservationFacts) -> bool:
    return (request.machine_type, request.accelerator_type, request.accelerator_count) == (
        reservation.machine_type,
        reservation.accelerator_type,
        reservation.accelerator_count,
    )


def _shown(machine_type: str, accelerator: str, count: int) -> str:
    return f"{machine_type} with {count} x {accelerator}" if accelerator else machine_type


def _shared(job: Job) -> Iterator[tuple[Path, ReservationFacts, dict[str, int]]]:
    """Yield each reservation that the job uses: path, properties, and machines per job by name."""
    for name, reservation in _known(job).items():
        for pool, path in _with_request(job):
            if _uses(job, reservation_request_of(pool), name, reservation):
                mine = {"this job": _machines(job, job_facts_of(job), name, reservation)}
                others = {
                    f"'{other}'": _machines(job, facts, name, reservation)
                    for other, facts in sorted(job.context.others.items())
                }
                yield path, reservation, mine | {who: n for who, n in others.items() if n}
                break


def _machines(job: Job, facts: JobFacts, name: str, reservation: ReservationFacts) -> int:
    return sum(
        request.machines
        for request in facts.reservation_requests
        if _uses(job, request, name, reservation)
    )


def _uses(job: Job, request: ReservationRequest, name: str, reservation: ReservationFacts) -> bool:
    if request.reservations:
        # With several names, Vertex AI uses the first reservation with free machines.
        return len(request.reservations) == 1 and _own(job, request.reservations[0]) == name
    return not reservation.specific and _fits(request, reservation)


def _at_once(users: Mapping[str, int], reservation: ReservationFacts) -> int:
    return sum(sorted(users.values(), reverse=True)[: reservation.parallel_jobs])
