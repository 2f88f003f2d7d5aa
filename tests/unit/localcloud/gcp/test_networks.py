"""Networks in a local project: references, addresses, and what is in use stay what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory.store import project_number
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.gcp.harness import Plugin, refused
from tests.unit.localcloud.vertex.rows import job_row

NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
CONNECTION = "gcp:servicenetworking/connection:Connection"
ROUTES = "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig"
ATTACHMENT = "gcp:compute/networkAttachment:NetworkAttachment"
FIREWALL = "gcp:compute/firewall:Firewall"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"
SUBNET_GRANT = "gcp:compute/subnetworkIAMMember:SubnetworkIAMMember"

VPC = "projects/local-p1/global/networks/vpc"
WORKERS = "projects/local-p1/regions/us-central1/subnetworks/workers"


@pytest.fixture
def vpc(local: Plugin) -> Plugin:
    """A local project with a network and one subnetwork."""
    local.enable("compute", "servicenetworking", "dns")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    local.create(SUBNET, _subnet("workers", "10.0.0.0/24"))
    return local


@pytest.fixture
def peered(vpc: Plugin) -> Plugin:
    """With a range and the connection to Google's services."""
    vpc.create(ADDRESS, _range("training", prefixLength=16))
    vpc.create(CONNECTION, _connection("training"))
    return vpc


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (SUBNET, {"name": "s", "ipCidrRange": "10.9.0.0/24", "network": "none"}),
        (FIREWALL, {"network": "none", "allows": [{"protocol": "tcp"}], "sourceTags": ["a"]}),
        (ROUTER, {"network": "none"}),
        (ADDRESS, {"network": "none", "purpose": "VPC_PEERING", "addressType": "INTERNAL",
                   "prefixLength": 16}),
        (ATTACHMENT, {"subnetworks": ["none"], "connectionPreference": "ACCEPT_AUTOMATIC"}),
        (CONNECTION, {"network": "none", "service": "servicenetworking.googleapis.com",
                      "reservedPeeringRanges": ["training"]}),
        (NAT, {"router": "none", "natIpAllocateOption": "AUTO_ONLY",
               "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}),
        (ROUTES, {"network": "vpc", "peering": "servicenetworking-googleapis-com",
                  "exportCustomRoutes": True, "importCustomRoutes": False}),
        (SUBNET_GRANT, {"subnetwork": "none", "role": "roles/compute.networkUser",
                        "member": "group:ml@example.com"}),
    ],
)  # fmt: skip
def test_what_a_resource_refers_to_must_be_there(
    vpc: Plugin, token: str, inputs: dict[str, Any]
) -> None:
    text = refused(lambda: vpc.create(token, inputs))

    assert "not found" in text or "cannot be found" in text or "There is no peering" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("cidr", "message"),
    [
        ("10.0.0.128/25", "10.0.0.128/25 conflicts with existing subnetwork 'workers' in region"),
        ("10.0.0.0/16", "conflicts with existing subnetwork 'workers'"),
        ("10.1.2.3/24", "such as 10.1.2.0/24"),
        ("10.1.0.0/30", "must be between /4 and /29"),
    ],
)
def test_subnetworks_do_not_overlap_and_are_aligned(vpc: Plugin, cidr: str, message: str) -> None:
    assert message in refused(lambda: vpc.create(SUBNET, _subnet("second", cidr)))


def test_a_subnetwork_grows_but_not_into_another(vpc: Plugin) -> None:
    _, olds = vpc.create(SUBNET, _subnet("second", "10.0.1.0/24"))
    second = "projects/local-p1/regions/us-central1/subnetworks/second"

    text = refused(lambda: vpc.update(SUBNET, second, _subnet("second", "10.0.0.0/23"), olds))
    assert "conflicts with existing subnetwork 'workers'" in text
    grown = vpc.update(SUBNET, WORKERS, _subnet("workers", "10.0.0.0/24"), olds)

    assert grown["gatewayAddress"] == "10.0.0.1"


def test_a_network_has_one_connection_which_can_be_updated(peered: Plugin) -> None:
    peered.create(ADDRESS, _range("more", prefixLength=16))

    text = refused(lambda: peered.create(CONNECTION, _connection("more")))
    assert "Cannot modify allocated ranges in CreateConnection. Please use UpdateCon" in text
    peered.create(CONNECTION, {**_connection("training", "more"), "updateOnCreationFail": True})


@pytest.mark.parametrize("token", [SUBNET, FIREWALL, ROUTER, ADDRESS])
def test_a_network_in_use_is_not_deleted(vpc: Plugin, token: str) -> None:
    inputs, user = {
        SUBNET: ({}, WORKERS),
        FIREWALL: (
            {"name": "f", "network": VPC, "allows": [{"protocol": "tcp"}], "sourceTags": ["a"]},
            "projects/local-p1/global/firewalls/f",
        ),
        ROUTER: (
            {"name": "r", "network": f"https://www.googleapis.com/compute/v1/{VPC}"},
            "projects/local-p1/regions/us-central1/routers/r",
        ),
        ADDRESS: (_range("r", prefixLength=20), "projects/local-p1/global/addresses/r"),
    }[token]
    if inputs:
        vpc.create(token, inputs)
        vpc.delete(SUBNET, WORKERS, {})

    text = refused(lambda: vpc.delete(NETWORK, VPC, {}))

    assert f"The network resource '{VPC}' is already being used by '{user}'" in text
    assert text.endswith("resourceInUseByAnotherResource")


def test_what_uses_a_subnetwork_keeps_it(vpc: Plugin) -> None:
    vpc.create(ATTACHMENT, _attachment())
    vpc.create(ROUTER, {"name": "r", "network": "vpc"})
    _, nat = vpc.create(NAT, _nat())
    attachment = "projects/local-p1/regions/us-central1/networkAttachments/a"

    assert attachment in refused(lambda: vpc.delete(SUBNET, WORKERS, {}))
    vpc.delete(ATTACHMENT, attachment, {})
    assert "/routers/r'" in refused(lambda: vpc.delete(SUBNET, WORKERS, {}))
    vpc.delete(NAT, "local-p1/us-central1/r/nat", nat)
    vpc.delete(SUBNET, WORKERS, {})


def test_a_range_in_a_connection_is_not_deleted(peered: Plugin) -> None:
    path = "projects/local-p1/global/addresses/training"

    text = refused(lambda: peered.delete(ADDRESS, path, {}))

    assert f"already being used by '{VPC}:servicenetworking.googleapis.com'" in text


@pytest.mark.parametrize("policy", [{}, {"deletionPolicy": "REMOVE_PEERING"}])
def test_a_connection_that_a_job_runs_on_is_not_deleted(
    peered: Plugin, tmp_path: Path, policy: dict[str, str]
) -> None:
    network = VPC.replace("local-p1", project_number("local-p1"))
    jobs = JobTable(tmp_path / "cloud.sqlite")
    jobs.insert(job_row("1", {"network": network}, state=JobState.RUNNING, project="local-p1"))
    id_ = "projects%2Flocal-p1%2Fglobal%2Fnetworks%2Fvpc:servicenetworking.googleapis.com"
    olds = {"network": VPC, **policy}

    text = refused(lambda: peered.delete(CONNECTION, id_, olds))
    assert text.startswith("Unable to remove Service Networking Connection, err: ")
    assert "Producer services (e.g. CloudSQL, Cloud Memstore, etc.) are still using this" in text
    jobs.move("1", JobState.CANCELLED)
    peered.delete(CONNECTION, id_, olds)

    assert peered.read(CONNECTION, id_).id == ""


def _subnet(name: str, cidr: str) -> dict[str, Any]:
    return {"name": name, "ipCidrRange": cidr, "network": VPC}


def _range(name: str, **changes: Any) -> dict[str, Any]:
    made = {"name": name, "network": VPC, "purpose": "VPC_PEERING", "addressType": "INTERNAL"}
    return {**made, **changes}


def _connection(*ranges: str) -> dict[str, Any]:
    service = "servicenetworking.googleapis.com"
    return {"network": VPC, "service": service, "reservedPeeringRanges": list(ranges)}


def _attachment() -> dict[str, Any]:
    made = {"name": "a", "connectionPreference": "ACCEPT_AUTOMATIC"}
    return {**made, "region": "us-central1", "subnetworks": [WORKERS]}


def _nat() -> dict[str, Any]:
    subnet = {"name": WORKERS, "sourceIpRangesToNats": ["ALL_IP_RANGES"]}
    made = {"name": "nat", "router": "r", "natIpAllocateOption": "AUTO_ONLY"}
    source = {"sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS"}
    return {**made, **source, "subnetworks": [subnet]}
