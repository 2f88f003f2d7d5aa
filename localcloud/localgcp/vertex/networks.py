"""Checks a job's peered network or Private Service Connect interface.

Sources: doc:general/vpc-peering, doc:training/using-private-ip, doc:general/vpc-psc-i-setup. Only
the names ``RANGES_EXHAUSTED`` and ``NETWORK_NOT_PEERED`` are the service's. No source documents
whether the service refuses such jobs; here they are FAILED.
"""

from __future__ import annotations

from typing import Final

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory import resource_paths
from localgcp.inventory.store import (
    DNS_PEER,
    NETWORK_ADMIN,
    NETWORK_USER,
    Store,
    StoredResource,
    has_role,
    service_agent,
)
from localgcp.inventory.vpc import (
    ATTACHMENT,
    CONNECTION,
    NETWORK,
    SUBNETWORK,
    Block,
    allocated_ranges,
    attached,
    find_peering_range,
    in_network,
    peering_block,
    subnetworks_of,
)
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: States in which a job may have machines; a QUEUED job has none.
HOLDING_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.CANCELLING)
#: Addresses that Vertex AI Training itself uses (doc:general/vpc-peering).
RESERVED: Final = Block("172.16.0.0/16")
#: Addresses that an interface cannot use (doc:general/psc-interfaces). The setup page prints the
#: first range as /20.
_UNUSABLE: Final = (Block("100.64.0.0/10"), Block("240.0.0.0/4"))
# doc:training/using-private-ip: a /16 has room for 63 jobs of up to 8 nodes, 31 jobs of up to 16
# nodes, or 15 jobs of up to 32 nodes. A /17 has room for half of these jobs. So a job of up to 8
# nodes uses a /22, twice the nodes use twice the addresses, and one block of the job's size stays
# free.
_UNIT_PREFIX: Final = 22
_NODES_OF_A_UNIT: Final = 8


def network_of(store: Store, job: JobRecord) -> str | None:
    """Return the path of the job's peered network (``projects/ID/…``), or None."""
    network = job.spec.get("network")
    return resource_paths.canonical(store, network) if network and "projects/" in network else None


def attachment_of(store: Store, job: JobRecord) -> str | None:
    """Return the path of the job's network attachment, or None."""
    network_attachment = job.spec.get("pscInterfaceConfig", {}).get("networkAttachment")
    if not network_attachment:
        return None
    home = {"project": job.project, "region": job.region}
    return resource_paths.resolve(store, network_attachment, "networkAttachments", **home)


def jobs_on_network(store: Store, path: str) -> list[JobRecord]:
    """Return the jobs with machines in the network, oldest first."""
    return [job for job in _holding(store) if network_of(store, job) == path]


def jobs_on_attachment(store: Store, path: str) -> list[JobRecord]:
    """Return the jobs with an interface of the attachment, oldest first."""
    return [job for job in _holding(store) if attachment_of(store, job) == path]


def _holding(store: Store) -> list[JobRecord]:
    jobs = JobTable(store.path).list()
    return [job for job in reversed(jobs) if job.state in HOLDING_STATES]


def admit(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job cannot use its network or its network attachment."""
    _check_network(store, job)
    _check_interface(store, job)


def _check_network(store: Store, job: JobRecord) -> None:
    network = network_of(store, job)
    if network is None:
        return
    name = job.spec["network"]
    if store.get(NETWORK, network) is None:
        raise StartRefusedError(RpcCode.NOT_FOUND, f"The network {name} does not exist.")
    _check_host(store, job, network)
    connections = in_network(store, CONNECTION, network)
    if not connections:
        problem = f"the network {name} is not peered with servicenetworking.googleapis.com"
        text = f"NETWORK_NOT_PEERED: {problem}. Set up private services access for the network."
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    has = [name for c in connections for name in c.outputs["reservedPeeringRanges"]]
    ranges = job.spec.get("reservedIpRanges") or has
    if missing := [range_ for range_ in ranges if range_ not in has]:
        raise StartRefusedError(
            RpcCode.FAILED_PRECONDITION,
            f"The reserved IP ranges {', '.join(missing)} are not allocated to the private "
            f"connection of {name}, which has: {', '.join(has)}.",
        )
    for range_ in allocated_ranges(store, network):
        if range_.block.overlaps(RESERVED):
            reserved = f"{RESERVED}, which is reserved for Vertex AI Training"
            text = f"{range_.block} ({range_.owner}) overlaps {reserved}."
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    _check_room(store, job, network, ranges)


def _check_host(store: Store, job: JobRecord, network: str) -> None:
    host = resource_paths.project_of(network)
    if host == job.project:
        return
    if not attached(store, host, job.project):
        raise StartRefusedError(
            RpcCode.FAILED_PRECONDITION,
            f"Project {job.project} is not a service project of the Shared VPC host {host}, whose "
            f"network {job.spec['network']} the job names.",
        )
    agent = service_agent(job.project)
    subnetworks = [subnetwork.id for subnetwork in in_network(store, SUBNETWORK, network)]
    if not has_role(store, agent, NETWORK_USER, f"projects/{host}", *subnetworks):
        raise StartRefusedError(
            RpcCode.PERMISSION_DENIED,
            f"{agent} does not have compute.subnetworks.use in the host project {host}. Grant "
            f"roles/compute.networkUser to this service agent in {host}.",
        )


def _check_room(store: Store, job: JobRecord, network: str, ranges: list[str]) -> None:
    allocated = [(name, find_peering_range(store, network, name)) for name in ranges]
    addresses = [(name, peering_block(address)) for name, address in allocated if address]
    blocks = {name: block for name, block in addresses if block}
    sizes = [_UNIT_PREFIX - block.prefixlen for block in blocks.values()]
    total = sum(1 << size for size in sizes if size >= 0)
    own = _units(job)
    used = sum(
        _units(other)
        for other in jobs_on_network(store, network)
        if _before(other, job)
        and set(ranges).intersection(other.spec.get("reservedIpRanges") or ranges)
    )
    if used + own > total - own:
        named = ", ".join(f"{name} ({block})" for name, block in blocks.items())
        raise StartRefusedError(
            RpcCode.RESOURCE_EXHAUSTED,
            f"RANGES_EXHAUSTED: {named or 'no range'} has no free block for a job of {_nodes(job)} "
            f"nodes. Add a range to the private connection of {job.spec['network']}, or wait until "
            "jobs end.",
        )


def _units(job: JobRecord) -> int:
    units, nodes = 1, _nodes(job)
    while units * _NODES_OF_A_UNIT < nodes:
        units *= 2
    return units


def _nodes(job: JobRecord) -> int:
    pools = job.spec.get("workerPoolSpecs", [])
    return sum(int(pool.get("replicaCount", 1)) for pool in pools if pool)


def _before(other: JobRecord, job: JobRecord) -> bool:
    """Return whether the other job gets addresses first, so that at most one of two is refused."""
    if other.job_id == job.job_id:
        return False
    age = (other.create_time, other.job_id) < (job.create_time, job.job_id)
    return age or other.state in (JobState.RUNNING, JobState.CANCELLING)


def _check_interface(store: Store, job: JobRecord) -> None:
    path, agent = attachment_of(store, job), service_agent(job.project)
    if path is None:
        return
    attachment = store.get(ATTACHMENT, path)
    if attachment is None:
        text = f"The network attachment {path} does not exist or is not visible."
        raise StartRefusedError(RpcCode.NOT_FOUND, text)
    # The documentation names the agent of the attachment's project; the job's agent suffices, too.
    place, own = f"projects/{attachment.project}", service_agent(attachment.project)
    if not any(has_role(store, e, NETWORK_ADMIN, place) for e in (own, agent)):
        raise StartRefusedError(
            RpcCode.PERMISSION_DENIED,
            f"{agent} does not have compute.networkAttachments.get and .update on "
            f"{attachment.id}. Grant roles/compute.networkAdmin to this service agent in project "
            f"{attachment.project}.",
        )
    for subnet in subnetworks_of(store, attachment):
        _check_subnetwork(store, agent, attachment, subnet)
    for peering in job.spec["pscInterfaceConfig"].get("dnsPeeringConfigs", []):
        _check_dns(store, job, peering)


def _check_subnetwork(store: Store, agent: str, attachment: StoredResource, subnet: str) -> None:
    resource = store.get(SUBNETWORK, subnet)
    cidr = resource.outputs.get("ipCidrRange") if resource else None
    for range_ in _UNUSABLE:
        if cidr and Block(cidr).overlaps(range_):
            text = f"The subnetwork {subnet} has {cidr}; {range_} cannot be used by an interface."
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    host = resource_paths.project_of(subnet)
    is_user = has_role(store, agent, NETWORK_USER, f"projects/{host}", subnet)
    if host != attachment.project and not is_user:
        raise StartRefusedError(
            RpcCode.PERMISSION_DENIED,
            f"{agent} does not have compute.subnetworks.use on {subnet}. Grant "
            f"roles/compute.networkUser to this service agent in the Shared VPC host project "
            f"{host}.",
        )


def _check_dns(store: Store, job: JobRecord, peering: dict[str, str]) -> None:
    target, agent = peering["targetProject"], service_agent(job.project)
    network = f"projects/{target}/global/networks/{peering['targetNetwork']}"
    if store.get(NETWORK, network) is None:
        use = f"of the DNS peering for {peering['domain']}"
        raise StartRefusedError(RpcCode.NOT_FOUND, f"The network {network} {use} does not exist.")
    for project in dict.fromkeys((job.project, target)):
        if not has_role(store, agent, DNS_PEER, f"projects/{project}"):
            raise StartRefusedError(
                RpcCode.PERMISSION_DENIED,
                f"{agent} does not have dns.networks.targetWithPeeringZone in project {project}. "
                "Grant roles/dns.peer to this service agent in that project.",
            )
