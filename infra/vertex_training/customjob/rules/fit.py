"""A job in the network and the reservations of its stack: its own, with room for all jobs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from vertex_training import catalog
from vertex_training.customjob.rules.context import (
    JobFacts,
    NetworkFacts,
    ReservationFacts,
    ReservationRequest,
)
from vertex_training.customjob.rules.job import SPEC, Job, Pool, job_facts_of
from vertex_training.customjob.rules.network import INTERFACE, NETWORK, PEERING, PSC
from vertex_training.customjob.rules.registry import GUIDES, Finding, rule
from vertex_training.errors import Path

NAME: Final[Path] = (*SPEC, "network")
ATTACHMENT: Final[Path] = (*INTERFACE, "networkAttachment")
#: Addresses of a subnet that Google keeps: https://docs.cloud.google.com/vpc/docs/subnets
KEPT: Final = 4


def _network(job: Job) -> NetworkFacts | None:
    return job.context.stack.network if job.context.stack else None


@rule("network-foreign", "docs/environments.md#networks", "warning")
def network_foreign(job: Job) -> Iterator[Finding]:
    """The job uses the stack's network or attachment; of others nothing can be checked."""
    network = _network(job)
    if network is None:
        return
    name, attachment = job.network, job.attachment
    if name and name != network.name and not _wrong_owner(job):
        hint = "network: ${network.name}" if network.mode == "peering" else "remove it"
        yield Finding(NAME, "not the network of this stack", name, hint)
    if attachment and attachment not in (network.attachment, network.attachment.split("/")[-1]):
        hint = "${network.attachment}" if network.mode == "psc" else "remove pscInterfaceConfig"
        yield Finding(ATTACHMENT, "not the attachment of this stack", attachment, hint)


@rule("network-owner", PEERING)
def network_owner(job: Job) -> Iterator[Finding]:
    """A network of a Shared VPC is named with the host project's number."""
    network = _network(job)
    if network and _wrong_owner(job):
        what = "is in another project than this: name it with its owner's number"
        yield Finding(NAME, what, job.network, network.name)


@rule("network-one-a-region", PEERING)
def network_one_a_region(job: Job) -> Iterator[Finding]:
    """All peered jobs of a region use one network."""
    mine = job.network
    for name, other in sorted(job.context.others.items()):
        if mine and other.network and other.network != mine:
            what = f"job '{name}' uses {other.network}; a region has one peered network at a time"
            yield Finding(NAME, what, mine, "use the same network, or a PSC interface")
            return


@rule("range-foreign", "docs/environments.md#networks", "warning")
def range_foreign(job: Job) -> Iterator[Finding]:
    """Reserved ranges are those of the stack's network; of others nothing can be checked."""
    network = _network(job)
    if network is None or job.spec.get("network") != network.name:
        return
    for index, name in enumerate(job.spec.get("reservedIpRanges", [])):
        if name not in network.ranges:
            hint = f"known: {', '.join(sorted(network.ranges))}"
            path = (*SPEC, "reservedIpRanges", index)
            yield Finding(path, "not a range of this stack's network", name, hint)


@rule("peering-room", GUIDES + "training/using-private-ip")
def peering_room(job: Job) -> Iterator[Finding]:
    """The peering range has room for all jobs of the stack that are peered at once."""
    network = _network(job)
    if network is None or not network.ranges or job.network != network.name:
        return
    peered = [o for o in _others(job) if o.network == network.name]
    users = [job.nodes, *(o.nodes for o in peered)]
    at_once = sorted([job.parallel, *(o.parallel for o in peered)], reverse=True)
    jobs = sum(at_once[: network.parallel_jobs])
    room = _room(network.ranges.values(), max(users))
    if room is not None and jobs > room:
        prefixes = ", ".join(f"/{prefix}" for prefix in network.ranges.values())
        what = (
            f"{jobs} jobs of up to {max(users)} nodes at once, and {prefixes} has room for {room}"
        )
        hint = "add a range to network.ranges, or say in network.parallelJobs how many run at once"
        yield Finding(NAME, what, "", hint)


@rule("interface-room", PSC, "warning")
def interface_room(job: Job) -> Iterator[Finding]:
    """The subnet of the attachment has an address for each node that uses it at once."""
    network = _network(job)
    if network is None or network.subnet_prefix is None or job.attachment != network.attachment:
        return
    others = [o.nodes * o.parallel for o in _others(job) if o.attachment == network.attachment]
    largest = sorted([job.nodes * job.parallel, *others], reverse=True)
    nodes = sum(largest[: network.parallel_jobs])
    free = 2 ** (32 - network.subnet_prefix) - KEPT
    if nodes > free:
        what = f"{nodes} nodes at once, and the subnet has {free} addresses for them"
        prefix = 32 - math.ceil(math.log2(nodes + KEPT))
        hint = f"network.subnet.range: a /{prefix}, or say in network.parallelJobs how many jobs"
        yield Finding(ATTACHMENT, what, f"/{network.subnet_prefix}", hint)


def _others(job: Job) -> Iterable[JobFacts]:
    return job.context.others.values()


def _wrong_owner(job: Job) -> bool:
    """Whether the stack's network is meant, under the number of the project where jobs run."""
    network, stack = _network(job), job.context.stack
    given = NETWORK.match(job.network)
    right = NETWORK.match(network.name) if network else None
    return bool(
        given
        and right
        and stack
        and given[2] == right[2]
        and given[1] != right[1]
        and given[1] in (stack.project, stack.project_number)
    )


def _room(prefixes: Iterable[int | None], nodes: int) -> int | None:
    """Jobs of up to ``nodes`` nodes that ranges of these sizes hold; None if no table has them.

    Google's table goes from /16 to /18 and to 32 nodes. A smaller range adds nothing that a page
    would promise; of a larger or an unknown one nothing is concluded.
    """
    rows = [row for row in catalog.load("peering_ranges.yaml") if row["nodes"] >= nodes]
    sizes = list(prefixes)
    if not rows or any(size is None or size < 16 for size in sizes):
        return None
    table = min(rows, key=lambda row: row["nodes"])["jobs"]
    return sum(table.get(size, 0) for size in sizes)


RESERVATIONS: Final = GUIDES + "training/use-reservations"
OURS: Final = "docs/environments.md#reservations"


def _known(job: Job) -> Mapping[str, ReservationFacts]:
    return job.context.stack.reservations if job.context.stack else {}


def _with_request(job: Job) -> Iterator[tuple[Pool, Path]]:
    """Pools that ask for reservations, with the place of their affinity."""
    for pool in job.pools:
        if pool.reserved:
            yield pool, (*pool.machine_path, "reservationAffinity")


def _named(pool: Pool) -> list[str]:
    return (pool.affinity or {}).get("values", [])


def _own(job: Job, name: str) -> str:
    """A reservation's name with the project's id, also if it was written with its number."""
    stack = job.context.stack
    if stack is None:
        return name
    by_number, by_id = f"projects/{stack.project_number}/", f"projects/{stack.project}/"
    return by_id + name.removeprefix(by_number) if name.startswith(by_number) else name


@rule("reservation-foreign", OURS, "warning")
def reservation_foreign(job: Job) -> Iterator[Finding]:
    """The job names a reservation of the stack; of others nothing can be checked."""
    known = _known(job)
    for pool, path in _with_request(job):
        for index, name in enumerate(_named(pool)):
            if known and _own(job, name) not in known:
                keys = ", ".join(f"${{reservations.{r.key}}}" for r in known.values())
                what = "not a reservation of this stack"
                yield Finding((*path, "values", index), what, name, f"known: {keys}")


@rule("reservation-machine", RESERVATIONS)
def reservation_machine(job: Job) -> Iterator[Finding]:
    """Machine type, GPUs and their number are the reservation's."""
    known = _known(job)
    for pool, _ in _with_request(job):
        for name in _named(pool):
            found = known.get(_own(job, name))
            if found and not _fits(_request_of(pool), found):
                got = _shown(pool.machine_type, pool.accelerator, pool.count)
                wanted = _shown(found.machine_type, found.accelerator_type, found.accelerator_count)
                what = f"reservation '{found.key}' has other machines"
                hint = f"it has {wanted}, and both must be the same"
                yield Finding((*pool.machine_path, "machineType"), what, got, hint)


@rule("reservation-any", RESERVATIONS, "warning")
def reservation_any(job: Job) -> Iterator[Finding]:
    """ANY_RESERVATION meets an open reservation of the stack that has the job's machines."""
    known = _known(job).values()
    for pool, path in _with_request(job):
        kind = (pool.affinity or {}).get("reservationAffinityType")
        if kind != "ANY_RESERVATION" or not known:
            continue
        if not any(_fits(_request_of(pool), found) for found in known if not found.specific):
            what = "no open reservation of this stack has such machines"
            hint = "name one, or set its specificReservationRequired: false"
            yield Finding(
                (*path, "reservationAffinityType"),
                what,
                _shown(pool.machine_type, pool.accelerator, pool.count),
                hint,
            )


@rule("reservation-count", RESERVATIONS)
def reservation_count(job: Job) -> Iterator[Finding]:
    """A reservation has machines for all jobs of the stack that use it at once."""
    for path, found, users in _shared(job):
        needed = _at_once(users, found)
        if needed > found.count:
            asked = ", ".join(f"{name}: {count}" for name, count in users.items())
            what = f"'{found.key}' has fewer machines than jobs ask for at once ({asked})"
            hint = "raise its count, or say in its parallelJobs how many of the jobs run at once"
            yield Finding(path, what, f"count: {found.count}", hint)


@rule("reservation-spare", RESERVATIONS, "warning")
def reservation_spare(job: Job) -> Iterator[Finding]:
    """A reservation has one machine more than its jobs use."""
    for path, found, users in _shared(job):
        if _at_once(users, found) == found.count:
            what = (
                f"jobs use all machines of '{found.key}' at once; Google advises to keep one spare"
            )
            yield Finding(path, what, f"count: {found.count}", f"count: {found.count + 1}")


@rule("reservation-open", RESERVATIONS, "warning")
def reservation_open(job: Job) -> Iterator[Finding]:
    """A reservation that a job names is used by those that name it alone."""
    known = _known(job)
    for pool, path in _with_request(job):
        for name in _named(pool):
            found = known.get(_own(job, name))
            if found and not found.specific:
                what = f"'{found.key}' is open to every machine that fits: it is not taken by name"
                hint = f"${{reservations.{found.key}}}, or its specificReservationRequired: true"
                yield Finding(path, what, name, hint)


@rule("reservation-local-ssd", RESERVATIONS, "warning")
def reservation_local_ssd(job: Job) -> Iterator[Finding]:
    """The machines of a reservation have no local SSD that was attached by hand."""
    known = _known(job)
    for pool, path in _with_request(job):
        for name in _named(pool):
            found = known.get(_own(job, name))
            if found and found.local_ssds:
                what = f"Vertex AI uses no machines with attached local SSDs, and '{found.key}' has"
                hint = "remove localSsds, unless the machine type always has them"
                yield Finding(path, what, str(found.local_ssds), hint)


def _request_of(pool: Pool) -> ReservationRequest:
    return ReservationRequest(
        tuple(_named(pool)), pool.machine_type, pool.accelerator, pool.count, pool.replicas
    )


def _fits(request: ReservationRequest, found: ReservationFacts) -> bool:
    return (request.machine_type, request.accelerator_type, request.accelerator_count) == (
        found.machine_type,
        found.accelerator_type,
        found.accelerator_count,
    )


def _shown(machine_type: str, accelerator: str, count: int) -> str:
    return f"{machine_type} with {count} x {accelerator}" if accelerator else machine_type


def _shared(job: Job) -> Iterator[tuple[Path, ReservationFacts, dict[str, int]]]:
    """Reservations that this job uses: where it does, and the machines each job requests."""
    for name, found in _known(job).items():
        for pool, path in _with_request(job):
            if _uses(job, _request_of(pool), name, found):
                mine = {"this job": _machines(job, job_facts_of(job), name, found)}
                others = {
                    f"'{other}'": _machines(job, facts, name, found)
                    for other, facts in sorted(job.context.others.items())
                }
                yield path, found, mine | {who: n for who, n in others.items() if n}
                break


def _machines(job: Job, facts: JobFacts, name: str, found: ReservationFacts) -> int:
    return sum(
        request.machines
        for request in facts.reservation_requests
        if _uses(job, request, name, found)
    )


def _uses(job: Job, request: ReservationRequest, name: str, found: ReservationFacts) -> bool:
    """Whether these machines come from this reservation and from no other.

    Of several names the first that has machines is taken, which nothing here can know.
    """
    if request.reservations:
        return len(request.reservations) == 1 and _own(job, request.reservations[0]) == name
    return not found.specific and _fits(request, found)


def _at_once(users: Mapping[str, int], found: ReservationFacts) -> int:
    return sum(sorted(users.values(), reverse=True)[: found.parallel_jobs])
