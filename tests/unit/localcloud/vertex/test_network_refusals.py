"""Why a job on a network, or with an interface, cannot start: whole texts, from a store alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import StartRefusedError
from localgcp.inventory.store import Binding, Store, project_number
from localgcp.inventory.vpc import ATTACHMENT as ATTACHMENT_TYPE
from localgcp.inventory.vpc import CONNECTION
from localgcp.vertex import agents, interface, job_networks, peering
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.estate import AGENT, HOST, HOST_NUMBER, VPC, Estate
from tests.unit.localcloud.vertex.estate import SUBNET as SUBNET_TYPE
from tests.unit.localcloud.vertex.rows import PROJECT, job_row

EMAIL = AGENT.removeprefix("serviceAccount:")
SHARED = f"projects/{HOST_NUMBER}/global/networks/vpc"
SUBNET = f"projects/{PROJECT}/regions/us-central1/subnetworks/psc"
VIEW = (agents.VIEWER,)
ANY = (agents.NETWORK_ADMIN, agents.NETWORK_USER, agents.VIEWER, agents.DNS_PEER)
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


def test_a_job_without_a_network_needs_none(network: Network) -> None:
    peering.admit(network.store, job())
    interface.admit(network.store, job())


def test_a_network_that_is_not_there_or_not_peered(network: Network) -> None:
    assert refusal(peering.admit, network, network=VPC) == (
        5, f"The network {VPC} does not exist.",
    )  # fmt: skip
    network.estate.network()
    assert refusal(peering.admit, network, network=VPC) == (
        9,
        f"NETWORK_NOT_PEERED: the network {VPC} is not peered with "
        "servicenetworking.googleapis.com. Set up private services access for it.",
    )


def test_ranges_that_the_connection_does_not_have(network: Network) -> None:
    network.estate.network()
    network.estate.peering()
    peering.admit(network.store, job(network=VPC, reservedIpRanges=["training"]))
    ranges = ["more", "training", "other"]
    assert refusal(peering.admit, network, network=VPC, reservedIpRanges=ranges) == (
        9,
        "The reserved IP ranges more, other are not allocated to the private connection of "
        f"{VPC}, which has: training.",
    )


def test_a_range_that_has_no_room(network: Network) -> None:
    network.estate.network()
    network.estate.peering(22, address="10.8.0.0")
    text = (
        "RANGES_EXHAUSTED: training (10.8.0.0/22) has no room for a job of {} nodes beside what "
        f"runs there. Add a range to the private connection of {VPC}, or wait until jobs end."
    )
    for nodes in (1, 9):
        assert refusal(peering.admit, network, network=VPC, nodes=nodes) == (8, text.format(nodes))


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["gone"], "no range"),
        (["gone", "training"], "training (10.8.0.0/22)"),
        (["training", "training"], "training (10.8.0.0/22)"),
    ],
)
def test_a_range_has_its_own_addresses_once(network: Network, names: list[str], told: str) -> None:
    """A connection keeps the names of ranges that were deleted since."""
    network.estate.network()
    network.estate.peering(22, address="10.8.0.0")
    path = f"projects/{PROJECT}/global/networks/vpc"
    outputs = {"network": path, "reservedPeeringRanges": ["gone", "training"]}
    [connection] = network.store.list(CONNECTION)
    network.store.put(CONNECTION, connection.id, PROJECT, {}, connection.outputs | outputs)
    assert refusal(peering.admit, network, network=VPC, reservedIpRanges=names) == (
        8,
        f"RANGES_EXHAUSTED: {told} has no room for a job of 1 nodes beside what runs there. Add a "
        f"range to the private connection of {VPC}, or wait until jobs end.",
    )


@pytest.mark.parametrize(("nodes", "well"), [(8, True), (9, False), (16, False)])
def test_each_doubling_of_nodes_takes_twice_the_addresses(
    network: Network, nodes: int, well: bool
) -> None:
    network.estate.network()
    network.estate.peering(21)
    if well:
        peering.admit(network.store, job(network=VPC, nodes=nodes))
    else:
        assert refusal(peering.admit, network, network=VPC, nodes=nodes)[0] == 8


@pytest.mark.parametrize(
    ("state", "time", "named", "counts"),
    [
        (JobState.RUNNING, "9", None, True),
        (JobState.CANCELLING, "9", None, True),
        (JobState.PENDING, "0", None, True),
        (JobState.PENDING, "9", None, False),
        (JobState.QUEUED, "0", None, False),
        (JobState.SUCCEEDED, "0", None, False),
        (JobState.RUNNING, "0", ["training"], True),
        (JobState.RUNNING, "0", ["other"], False),
    ],
)
def test_jobs_that_got_their_addresses_before_count(
    network: Network, state: JobState, time: str, named: list[str] | None, counts: bool
) -> None:
    network.estate.network()
    network.estate.peering(21)
    spec = {"network": VPC, **({"reservedIpRanges": named} if named else {})}
    other = job_row("2", {"workerPoolSpecs": [{}, {"replicaCount": "1"}], **spec}, state=state)
    object.__setattr__(other, "create_time", time)
    network.jobs.insert(other)
    own = job(network=VPC)
    object.__setattr__(own, "create_time", "5")
    if not counts:
        peering.admit(network.store, own)
        return
    with pytest.raises(StartRefusedError, match="RANGES_EXHAUSTED"):
        peering.admit(network.store, own)


def test_a_network_of_a_host_needs_the_project_attached_and_the_agent_granted(
    network: Network,
) -> None:
    network.estate.host()
    network.estate.peering(project=HOST)
    assert refusal(peering.admit, network, network=SHARED) == (
        9,
        f"Project {PROJECT} is not a service project of the Shared VPC host {HOST}, whose network "
        f"{SHARED} the job names.",
    )
    network.estate.attach()
    assert refusal(peering.admit, network, network=SHARED) == (
        7,
        f"{EMAIL} does not have compute.subnetworks.use in the host project {HOST}. Grant it "
        "roles/compute.networkUser there.",
    )
    network.grant(f"projects/{HOST}", "roles/compute.networkUser")
    peering.admit(network.store, job(network=SHARED))


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
        peering.admit(network.store, job(network=VPC))
        return
    code, text = refusal(peering.admit, network, network=VPC)
    assert code == 9
    assert text.startswith(f"{taken} (")
    assert text.endswith(") overlaps 172.16.0.0/16, which is reserved for Vertex AI Training.")


def attached(name: str = "psc", *peerings: dict[str, str]) -> dict[str, Any]:
    return {"pscInterfaceConfig": {"networkAttachment": name, "dnsPeeringConfigs": [*peerings]}}


def test_an_attachment_that_is_not_there(network: Network) -> None:
    network.estate.apis("compute")
    assert refusal(interface.admit, network, **attached()) == (
        5, f"The network attachment {ATTACHMENT} does not exist (or cannot be seen).",
    )  # fmt: skip


def test_the_agent_needs_its_right_on_the_attachment(network: Network) -> None:
    network.estate.network()
    network.estate.attachment()
    assert refusal(interface.admit, network, **attached()) == (
        7,
        f"{EMAIL} does not have compute.networkAttachments.get and .update on {ATTACHMENT}. Grant "
        f"it roles/compute.networkAdmin in project {PROJECT}.",
    )
    for role in ("roles/compute.networkAdmin", "roles/compute.admin", "roles/editor"):
        network.grant(f"projects/{PROJECT}", role)
        interface.admit(network.store, job(**attached()))
        interface.admit(network.store, job(**attached(ATTACHMENT)))


def test_the_agent_of_the_attachments_own_project_may_hold_the_right(network: Network) -> None:
    """Of a subnetwork in that project it needs no other, nor one that the store has."""
    place = "projects/local-net/regions/us-central1"
    path = f"{place}/networkAttachments/psc"
    outputs = {"region": "us-central1", "subnetworks": [f"{place}/subnetworks/gone"]}
    network.store.put(ATTACHMENT_TYPE, path, "local-net", {}, outputs)
    assert refusal(interface.admit, network, **attached(path)) == (
        7,
        f"{EMAIL} does not have compute.networkAttachments.get and .update on {path}. Grant it "
        "roles/compute.networkAdmin in project local-net.",
    )
    own = f"serviceAccount:{agents.service_agent('local-net')}"
    etag = network.store.policy("projects/local-net").etag
    bindings = (Binding("roles/compute.networkAdmin", (own,)),)
    network.store.set_policy("projects/local-net", bindings, expected_etag=etag)
    interface.admit(network.store, job(**attached(path)))


@pytest.mark.parametrize(
    ("cidr", "unusable"),
    [
        ("100.64.0.0/28", "100.64.0.0/10"),
        ("100.127.255.240/28", "100.64.0.0/10"),
        ("240.0.0.0/28", "240.0.0.0/4"),
        ("100.128.0.0/28", ""),
    ],
)
def test_some_addresses_cannot_be_an_interfaces(network: Network, cidr: str, unusable: str) -> None:
    network.estate.network()
    network.estate.attachment(cidr=cidr)
    network.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin")
    if not unusable:
        interface.admit(network.store, job(**attached()))
        return
    assert refusal(interface.admit, network, **attached()) == (
        9,
        f"The subnetwork {SUBNET} has {cidr}; {unusable} cannot be used by an interface.",
    )


def test_a_subnetwork_of_a_host_needs_its_user(network: Network) -> None:
    network.estate.network()
    network.estate.host()
    network.estate.attach()
    network.estate.attachment(HOST)
    network.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin")
    subnet = f"projects/{HOST}/regions/us-central1/subnetworks/psc"
    assert refusal(interface.admit, network, **attached()) == (
        7,
        f"{EMAIL} does not have compute.subnetworks.use on {subnet}. Grant it "
        f"roles/compute.networkUser in the Shared VPC host project {HOST}.",
    )
    network.grant(subnet, "roles/compute.networkUser")
    interface.admit(network.store, job(**attached()))


def test_dns_peering_needs_its_network_and_a_right_in_both_projects(network: Network) -> None:
    network.estate.network()
    network.estate.attachment()
    network.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin")
    peer = {"domain": "x.", "targetProject": HOST, "targetNetwork": "vpc"}
    target = f"projects/{HOST}/global/networks/vpc"
    assert refusal(interface.admit, network, **attached("psc", peer)) == (
        5, f"The network {target} of the DNS peering for x. does not exist.",
    )  # fmt: skip
    network.estate.network(project=HOST)
    right = (
        EMAIL + " does not have dns.networks.targetWithPeeringZone in project {}. Grant it "
        "roles/dns.peer there."
    )
    assert refusal(interface.admit, network, **attached("psc", peer)) == (7, right.format(PROJECT))
    network.grant(f"projects/{PROJECT}", "roles/compute.networkAdmin", "roles/dns.peer")
    assert refusal(interface.admit, network, **attached("psc", peer)) == (7, right.format(HOST))
    network.grant(f"projects/{HOST}", "roles/dns.admin")
    interface.admit(network.store, job(**attached("psc", peer)))


def test_jobs_that_hold_a_network_or_an_attachment(network: Network) -> None:
    network.estate.network()
    for number, state in enumerate(JobState):
        row = job_row(str(number), {"network": VPC, **attached()}, state=state)
        object.__setattr__(row, "create_time", str(9 - number))
        network.jobs.insert(row)
    holding = [JobState.CANCELLING, JobState.RUNNING, JobState.PENDING]
    path = f"projects/{PROJECT}/global/networks/vpc"
    found = job_networks.jobs_on_network(network.store, path)
    assert [each.state for each in found] == holding
    found = job_networks.jobs_on_attachment(network.store, ATTACHMENT)
    assert [each.state for each in found] == holding
    assert job_networks.jobs_on_network(network.store, f"{path}2") == []
    assert job_networks.network_of(network.store, job()) is None
    assert job_networks.network_of(network.store, job(network="vpc")) is None
    assert job_networks.attachment_of(network.store, job()) is None


def test_the_agent_of_a_project_holds_roles_by_itself_or_as_an_owner(network: Network) -> None:
    number = project_number(PROJECT)
    assert agents.service_agent(PROJECT) == (
        f"service-{number}@gcp-sa-aiplatform.iam.gserviceaccount.com"
    )
    place = f"projects/{PROJECT}"
    for role, held in (
        ("roles/compute.viewer", VIEW), ("roles/viewer", VIEW),
        ("roles/compute.admin", (agents.NETWORK_ADMIN, agents.NETWORK_USER, agents.VIEWER)),
        ("roles/compute.networkAdmin", (agents.NETWORK_ADMIN, agents.NETWORK_USER)),
        ("roles/compute.networkUser", (agents.NETWORK_USER,)),
        ("roles/dns.peer", (agents.DNS_PEER,)), ("roles/dns.admin", (agents.DNS_PEER,)),
        ("roles/owner", ANY), ("roles/editor", ANY), ("roles/dns.reader", ()),
    ):  # fmt: skip
        network.grant(place, role)
        for wanted in ANY:
            holds = agents.has_role(network.store, EMAIL, wanted, "projects/x", place)
            assert holds is (wanted in held), (role, wanted)
        assert not agents.has_role(network.store, EMAIL, agents.VIEWER, "projects/x")
        assert not agents.has_role(network.store, "other@x", agents.VIEWER, place)
