"""Checks a job's peered network or Private Service Connect interface.

Sources: doc:general/vpc-peering, doc:training/using-private-ip, doc:general/vpc-psc-i-setup. A
grant on the attachment's subnetwork is accepted, too. The names ``RANGES_EXHAUSTED`` and
``NETWORK_NOT_PEERED`` are the service's; the texts are ours. No source documents whether such a job
is FAILED, as here, or refused."""

from __future__ import annotations

from typing import Final

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, StoredResource
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
from localgcp.vertex import agents
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: States in which a job may have machines; a QUEUED job has none.
HOLDING_STATES: Final = (JobState.PENDING, JobState.RUNNING, JobState.CANCELLING)


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


#: Addresses that Vertex AI Training itself uses: doc:general/vpc-peering.
RESERVED: Final = Block("172.16.0.0/16")

# doc:training/using-private-ip: a /16 holds 63 jobs of up to 8 nodes, 31 of up to 16, 15 of up to
# 32; a /17 and a /18 half and a quarter of it. So a job of up to 8 nodes takes a /22, each doubling
# twice that, and one block of the job's size stays free.
_UNIT_PREFIX: Final = 22
_NODES_OF_A_UNIT: Final = 8


def admit(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job cannot use its network."""
    network = network_of(store, job)
    if network is None:
        return
    network_name = job.spec["network"]
    if store.get(NETWORK, network) is None:
        raise StartRefusedError(RpcCode.NOT_FOUND, f"The network {network_name} does not exist.")
    _shared(store, job, network)
    connections = in_network(store, CONNECTION, network)
    if not connections:
        text = (
            f"NETWORK_NOT_PEERED: the network {network_name} is not peered with "
            "servicenetworking.googleapis.com. Set up private services access for it."
        )
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    has = [
        name for connection in connections for name in connection.outputs["reservedPeeringRanges"]
    ]
    wanted = job.spec.get("reservedIpRanges") or has
    if missing := [name for name in wanted if name not in has]:
        text = (
            f"The reserved IP ranges {', '.join(missing)} are not allocated to the private "
            f"connection of {network_name}, which has: {', '.join(has)}."
        )
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    _apart_from_training(store, network)
    _room(store, job, network, wanted)


def _shared(store: Store, job: JobRecord, network: str) -> None:
    host = resource_paths.project_of(network)
    if host == job.project:
        return
    if not attached(store, host, job.project):
        text = (
            f"Project {job.project} is not a service project of the Shared VPC host {host}, whose "
            f"network {job.spec['network']} the job names."
        )
        raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)
    agent = agents.service_agent(job.project)
    places = [
        f"projects/{host}",
        *(subnetwork.id for subnetwork in in_network(store, SUBNETWORK, network)),
    ]
    if not agents.has_role(store, agent, agents.NETWORK_USER, *places):
        text = (
            f"{agent} does not have compute.subnetworks.use in the host project {host}. Grant "
            f"roles/compute.networkUser to this service agent in {host}."
        )
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)


def _apart_from_training(store: Store, network: str) -> None:
    for range_ in allocated_ranges(store, network):
        if range_.block.overlaps(RESERVED):
            text = (
                f"{range_.block} ({range_.owner}) overlaps {RESERVED}, which is reserved for "
                "Vertex AI Training."
            )
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)


def _room(store: Store, job: JobRecord, network: str, ranges: list[str]) -> None:
    ranges_by_name = {name: find_peering_range(store, network, name) for name in ranges}
    blocks = {
        n: block
        for n, range_ in ranges_by_name.items()
        if range_ and (block := peering_block(range_))
    }
    sizes = [_UNIT_PREFIX - block.prefixlen for block in blocks.values()]
    total = sum(1 << size for size in sizes if size >= 0)
    own = _units(job)
    used = sum(
        _units(other)
        for other in jobs_on_network(store, network)
        if _before(other, job) and _shares(other, ranges)
    )
    if used + own > total - own:
        named = ", ".join(f"{name} ({block})" for name, block in blocks.items())
        text = (
            f"RANGES_EXHAUSTED: {named or 'no range'} has no free block for a job of {_nodes(job)} "
            f"nodes. Add a range to the private connection of {job.spec['network']}, or wait until "
            "jobs end."
        )
        raise StartRefusedError(RpcCode.RESOURCE_EXHAUSTED, text)


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


def _shares(other: JobRecord, ranges: list[str]) -> bool:
    named = other.spec.get("reservedIpRanges")
    return not named or not set(named).isdisjoint(ranges)


# doc:general/psc-interfaces; the setup page prints the first as /20.
_UNUSABLE: Final = (Block("100.64.0.0/10"), Block("240.0.0.0/4"))


def admit_interface(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job cannot use its network attachment."""
    path = attachment_of(store, job)
    if path is None:
        return
    attachment = store.get(ATTACHMENT, path)
    if attachment is None:
        text = f"The network attachment {path} does not exist or is not visible."
        raise StartRefusedError(RpcCode.NOT_FOUND, text)
    _may_use(store, job, attachment)
    for subnet in subnetworks_of(store, attachment):
        _usable(store, subnet)
        _may_use_host(store, job, attachment, subnet)
    for peering in job.spec["pscInterfaceConfig"].get("dnsPeeringConfigs", []):
        _may_peer(store, job, peering)


def _may_use(store: Store, job: JobRecord, attachment: StoredResource) -> None:
    # The page names the agent of the attachment's own project; the job's is taken too.
    candidates = {agents.service_agent(project) for project in (attachment.project, job.project)}
    place = f"projects/{attachment.project}"
    if not any(
        agents.has_role(store, candidate, agents.NETWORK_ADMIN, place) for candidate in candidates
    ):
        text = (
            f"{agents.service_agent(job.project)} does not have compute.networkAttachments.get and "
            f".update on {attachment.id}. Grant roles/compute.networkAdmin to this service agent "
            f"in project {attachment.project}."
        )
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)


def _may_use_host(store: Store, job: JobRecord, attachment: StoredResource, subnet: str) -> None:
    host, agent = resource_paths.project_of(subnet), agents.service_agent(job.project)
    if host == attachment.project:
        return
    if not agents.has_role(store, agent, agents.NETWORK_USER, f"projects/{host}", subnet):
        text = (
            f"{agent} does not have compute.subnetworks.use on {subnet}. Grant "
            "roles/compute.networkUser to this service agent in the Shared VPC host project "
            f"{host}."
        )
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)


def _usable(store: Store, subnet: str) -> None:
    resource = store.get(SUBNETWORK, subnet)
    cidr = resource.outputs.get("ipCidrRange") if resource else None
    for range_ in _UNUSABLE if cidr else ():
        if Block(cidr).overlaps(range_):
            text = f"The subnetwork {subnet} has {cidr}; {range_} cannot be used by an interface."
            raise StartRefusedError(RpcCode.FAILED_PRECONDITION, text)


def _may_peer(store: Store, job: JobRecord, peering: dict[str, str]) -> None:
    target, agent = peering["targetProject"], agents.service_agent(job.project)
    network = f"projects/{target}/global/networks/{peering['targetNetwork']}"
    if store.get(NETWORK, network) is None:
        text = f"The network {network} of the DNS peering for {peering['domain']} does not exist."
        raise StartRefusedError(RpcCode.NOT_FOUND, text)
    for project in dict.fromkeys((job.project, target)):
        if not agents.has_role(store, agent, agents.DNS_PEER, f"projects/{project}"):
            text = (
                f"{agent} does not have dns.networks.targetWithPeeringZone in project {project}. "
                "Grant roles/dns.peer to this service agent in that project."
            )
            raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)
