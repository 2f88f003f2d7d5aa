"""A job and the network of its stack: the same network, room for all jobs that use it at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from vertex_training import catalog
from vertex_training.customjob.rules.context import JobFacts, NetworkFacts
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.network import INTERFACE, NETWORK, PEERING, PSC
from vertex_training.customjob.rules.registry import GUIDES, Finding, rule
from vertex_training.errors import Path

NAME: Final[Path] = (*SPEC, "network")
ATTACHMENT: Final[Path] = (*INTERFACE, "networkAttachment")
#: Addresses of a subnet that Google keeps: https://docs.cloud.google.com/vpc/docs/subnets
KEPT: Final = 4


def _network(job: Job) -> NetworkFacts | None:
    return job.context.stack.network if job.context.stack else None


@rule("network-foreign", "docs/networks.md", "warning")
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


@rule("range-foreign", "docs/networks.md", "warning")
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
