"""Why a job on a network, or with an interface, cannot start: whole texts, from a store alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import StartRefusedError
from localgcp.inventory.store import Binding, Store
from localgcp.vertex import networks
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
from tests.unit.localcloud.vertex.estate import AGENT, HOST, HOST_NUMBER, VPC, Estate
from tests.unit.localcloud.vertex.estate import SUBNET as SUBNET_TYPE
from tests.unit.localcloud.vertex.rows import job_row

EMAIL = AGENT.removeprefix("serviceAccount:")
SHARED = f"projects/{HOST_NUMBER}/global/networks/vpc"
SUBNET = f"projects/{PROJECT}/regions/us-central1/subnetworks/psc"
ATTACHMENT = f"projects/{PROJECT}/regions/us-central1/networkAttachments/psc"


class Network:
    """A project's resources, and jobs that would start in it."""

    def __init__(self, root: Path) -> None:
        self.estate = Estate(root)
        self.store, self.jobs = Store(root / "cloud.sqlite"), JobTable(root / "cloud.sqlite")

    def grant(self, place: str, *roles: str) -> None:
        """The roles of Vertex AI's agent there, and no other."""
        bindings = tuple(Binding(role, (AGENT,)) for role in roles)
        etag = self.store.policy(place).etag
        self.store.set_policy(place, bindings, expected_etag=etag)


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return Network(tmp_path)


def job(job_id: str = "1", *, nodes: int = 1, **spec: Any) -> JobRecord:
    pools = [{"replicaCount": str(nodes)}]
    return job_row(job_id, {"workerPoolSpecs": pools, **spec}, state=JobState.PENDING)


def refusal(admit: Any, world: Network, **spec: Any) -> tuple[int, str]:
    with pytest.raises(StartRefusedError) as refused:
        admit(world.store, job(**spec))
    return refused.value.code, refused.value.message


def test_ranges_that_the_connection_does_not_have(network: Network) -> None:
    network.estate.network()
    network.estate.peering()
    networks.admit(network.store, job(network=VPC, reservedIpRanges=["training"]))
    ranges = ["more", "training", "other"]
    assert refusal(networks.admit, network, network=VPC, reservedIpRanges=ranges) == (
        9,
        "The reserved IP ranges more, other are not allocated to the private connection of "
        f"{VPC}, which has: training.",
    )


def test_a_range_that_has_no_room(network: Network) -> None:
    network.estate.network()
    network.estate.peering(22, address="10.8.0.0")
    text = (
        "RANGES_EXHAUSTED: training (10.8.0.0/22) has no free block for a job of {} nodes. "
        f"Add a range to the private connection of {VPC}, or wait until jobs end."
    )
    for nodes in (1, 9):
        assert refusal(networks.admit, network, network=VPC, nodes=nodes) == (8, text.format(nodes))


def test_a_network_of_a_host_needs_the_project_attached_and_the_agent_granted(
    network: Network,
) -> None:
    network.estate.host()
    network.estate.peering(project=HOST)
    assert refusal(networks.admit, network, network=SHARED) == (
        9,
        f"Project {PROJECT} is not a service project of the Shared VPC host {HOST}, whose network "
        f"{SHARED} the job names.",
    )
    network.estate.attach()
    assert refusal(networks.admit, network, network=SHARED) == (
        7,
        f"{EMAIL} does not have compute.subnetworks.use in the host project {HOST}. Grant "
        f"roles/compute.networkUser to this service agent in {HOST}.",
    )
    network.grant(f"projects/{HOST}", "roles/compute.networkUser")
    networks.admit(network.store, job(network=SHARED))


@pytest.mark.parametrize(
    ("prefix", "address", "subnet", "taken"),
    [
        (20, "172.16.16.0", "", "172.16.16.0/20"),
        (20, "172.16.240.0", "", "172.16.240.0/20"),
        (20, "172.17.0.0", "", ""),
        (16, "10.8.0.0", "172.16.0.0/24", "172.16.0.0/24"),
        (16, "10.8.0.0", "172.17.0.0/24", ""),
    ],
)
def test_addresses_of_training_itself(
    network: Network, prefix: int, address: str, subnet: str, taken: str
) -> None:
    network.estate.network()
    network.estate.peering(prefix, address=address)
    if subnet:
        network.estate.make(SUBNET_TYPE, name="s", network="vpc", ipCidrRange=subnet)
    if not taken:
        networks.admit(network.store, job(network=VPC))
        return
    code, text = refusal(networks.admit, network, network=VPC)
    assert code == 9
    assert text.startswith(f"{taken} (")
    assert text.endswith(") overlaps 172.16.0.0/16, which is reserved for Vertex AI Training.")


def attached(name: str = "psc", *peerings: dict[str, str]) -> dict[str, Any]:
    return {"pscInterfaceConfig": {"networkAttachment": name, "dnsPeeringConfigs": [*peerings]}}


def test_an_attachment_that_is_not_there(network: Network) -> None:
    network.estate.apis("compute")
    assert refusal(networks.admit, network, **attached()) == (
        5, f"The network attachment {ATTACHMENT} does not exist or is not visible.",
    )  # fmt: skip


def test_the_agent_needs_its_right_on_the_attachment(network: Network) -> None:
    network.estate.network()
    network.estate.attachment()
    assert refusal(networks.admit, network, **attached()) == (
        7,
        f"{EMAIL} does not have compute.networkAttachments.get and .update on {ATTACHMENT}. Grant "
        f"roles/compute.networkAdmin to this service agent in project {PROJECT}.",
    )
    for role in ("roles/compute.networkAdmin", "roles/compute.admin", "roles/editor"):
        network.grant(f"projects/{PROJECT}", role)
        networks.admit(network.store, job(**attached()))
        networks.admit(network.store, job(**attached(ATTACHMENT)))


def test_a_subnetwork_of_a_host_needs_its_user(network: Network) -> None:
    network.estate.network()
    network.estate.host()
    network.estate.attach()
    network.estate.attachment(HOST)
    network.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin")
    subnet = f"projects/{HOST}/regions/us-central1/subnetworks/psc"
    assert refusal(networks.admit, network, **attached()) == (
        7,
        f"{EMAIL} does not have compute.subnetworks.use on {subnet}. Grant "
        f"roles/compute.networkUser to this service agent in the Shared VPC host project {HOST}.",
    )
    network.grant(subnet, "roles/compute.networkUser")
    networks.admit(network.store, job(**attached()))


def test_jobs_that_hold_a_network_or_an_attachment(network: Network) -> None:
    network.estate.network()
    for number, state in enumerate(JobState):
        row = job_row(str(number), {"network": VPC, **attached()}, state=state)
        object.__setattr__(row, "create_time", str(9 - number))
        network.jobs.insert(row)
    holding = [JobState.CANCELLING, JobState.RUNNING, JobState.PENDING]
    path = f"projects/{PROJECT}/global/networks/vpc"
    found = networks.jobs_on_network(network.store, path)
    assert [each.state for each in found] == holding
    found = networks.jobs_on_attachment(network.store, ATTACHMENT)
    assert [each.state for each in found] == holding
    assert networks.jobs_on_network(network.store, f"{path}2") == []
    assert networks.network_of(network.store, job()) is None
    assert networks.network_of(network.store, job(network="vpc")) is None
    assert networks.attachment_of(network.store, job()) is None


SUCCEEDED = vertex.JobState.JOB_STATE_SUCCEEDED
CORP = {"domain": "corp.example.com.", "target_project": PROJECT, "target_network": "vpc"}


def with_interface(attachment: str = "psc", **config: Any) -> dict[str, Any]:
    return command_job("true", psc_interface_config={"network_attachment": attachment, **config})


def failure(cloud: Cloud, job: dict[str, Any]) -> tuple[int, str]:
    ended = cloud.run(job)
    assert ended.state == vertex.JobState.JOB_STATE_FAILED
    return ended.error.code, ended.error.message


def test_an_interface_cannot_use_every_address(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.attachment(cidr="100.64.9.0/28")
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    code, message = failure(cloud, with_interface())

    assert (code, "100.64.0.0/10 cannot be used by an interface" in message) == (9, True)


def test_dns_peering_needs_its_network_and_the_agents_right(cloud: Cloud, estate: Estate) -> None:
    estate.network()
    estate.attachment()
    cloud.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", AGENT)

    other = {**CORP, "target_network": "other"}
    code, message = failure(cloud, with_interface(dns_peering_configs=[other]))
    assert (code, "global/networks/other of the DNS peering" in message) == (5, True)
    code, message = failure(cloud, with_interface(dns_peering_configs=[CORP]))
    assert (code, "Grant roles/dns.peer to this service agent" in message) == (7, True)
    cloud.grant(f"projects/{PROJECT}", "roles/dns.peer", AGENT)

    assert cloud.run(with_interface(dns_peering_configs=[CORP])).state == SUCCEEDED


def test_a_network_that_is_not_there_or_not_peered_fails_the_job(
    cloud: Cloud, estate: Estate
) -> None:
    job = command_job("true", network=VPC)

    assert failure(cloud, job) == (5, f"The network {VPC} does not exist.")
    estate.network()
    code, message = failure(cloud, job)

    assert code == 9
    assert message.startswith("NETWORK_NOT_PEERED: ")


def test_of_two_jobs_that_start_at_once_the_earlier_gets_the_addresses(
    cloud: Cloud, estate: Estate
) -> None:
    estate.network()
    estate.peering(prefix=21)
    first, second = (
        job_row(each, {"network": VPC, "workerPoolSpecs": [{}]}, state=JobState.PENDING)
        for each in ("1", "2")
    )
    cloud.jobs.insert(first)
    cloud.jobs.insert(second)

    networks.admit(cloud.store, first)
    with pytest.raises(StartRefusedError, match="RANGES_EXHAUSTED"):
        networks.admit(cloud.store, second)
    cloud.jobs.move("1", JobState.RUNNING)
    networks.admit(cloud.store, first)  # its own addresses are not counted against it
