"""What a job with a Private Service Connect interface needs when it starts.

Source: doc:general/vpc-psc-i-setup. It grants compute.networkUser and dns.peer on the projects; a
grant on the attachment's subnetwork, which is narrower, is taken as well.
"""

from __future__ import annotations

from typing import Final

from localgcp.errors import RpcCode, StartRefusedError
from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, StoredResource
from localgcp.inventory.vpc import ATTACHMENT, NETWORK, SUBNETWORK, Block, subnetworks_of
from localgcp.vertex import agents, job_networks
from localgcp.vertex.records import JobRecord

# doc:general/psc-interfaces; the setup page prints the first as /20.
_UNUSABLE: Final = (Block("100.64.0.0/10"), Block("240.0.0.0/4"))


def admit(store: Store, job: JobRecord) -> None:
    """Raise StartRefusedError if the job cannot have its interface."""
    path = job_networks.attachment_of(store, job)
    if path is None:
        return
    attachment = store.get(ATTACHMENT, path)
    if attachment is None:
        text = f"The network attachment {path} does not exist (or cannot be seen)."
        raise StartRefusedError(RpcCode.NOT_FOUND, text)
    _may_use(store, job, attachment)
    for subnet in subnetworks_of(store, attachment):
        _usable(store, subnet)
        _may_use_host(store, job, attachment, subnet)
    for peering in job.spec["pscInterfaceConfig"].get("dnsPeeringConfigs", []):
        _may_peer(store, job, peering)


def _may_use(store: Store, job: JobRecord, attachment: StoredResource) -> None:
    # The page names the agent of the attachment's own project; the job's is taken too.
    candidates = {agents.service_agent(each) for each in (attachment.project, job.project)}
    place = f"projects/{attachment.project}"
    if not any(agents.has_role(store, each, agents.NETWORK_ADMIN, place) for each in candidates):
        text = (
            f"{agents.service_agent(job.project)} does not have compute.networkAttachments.get and "
            f".update on {attachment.id}. Grant it roles/compute.networkAdmin in project "
            f"{attachment.project}."
        )
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)


def _may_use_host(store: Store, job: JobRecord, attachment: StoredResource, subnet: str) -> None:
    host, agent = resource_paths.project_of(subnet), agents.service_agent(job.project)
    if host == attachment.project:
        return
    if not agents.has_role(store, agent, agents.NETWORK_USER, f"projects/{host}", subnet):
        text = (
            f"{agent} does not have compute.subnetworks.use on {subnet}. Grant it "
            f"roles/compute.networkUser in the Shared VPC host project {host}."
        )
        raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)


def _usable(store: Store, subnet: str) -> None:
    found = store.get(SUBNETWORK, subnet)
    cidr = found.outputs.get("ipCidrRange") if found else None
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
                "Grant it roles/dns.peer there."
            )
            raise StartRefusedError(RpcCode.PERMISSION_DENIED, text)
