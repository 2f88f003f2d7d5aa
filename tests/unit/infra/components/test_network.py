"""What is registered for a stack's network in each mode, and what is not."""

import pytest

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, PEERING, PSC

HOST_OF_OTHERS = HOST | {"manageHost": False}
KINDS = ("compute/", "servicenetworking/", "vertextraining:network")


def network_of(**changes):
    """Resources of the network by name: type and inputs."""
    found = registered("dev", **changes)
    return {name: row for name, row in found.items() if any(kind in row[0] for kind in KINDS)}


def names(**changes):
    return {n for n, (type_, _) in network_of(**changes).items() if type_.startswith("gcp:")}


def test_a_stack_without_a_network_registers_none():
    assert network_of() == {}
    assert "apis-servicenetworking" not in registered("dev")


def test_peering_reserves_a_range_and_connects_it():
    found = network_of(network=PEERING)
    assert names(network=PEERING) == {
        "network-vpc",
        "network-peering-workers",
        "network-peering-connection",
    }
    _, address = found["network-peering-workers"]
    assert (address["purpose"], address["addressType"]) == ("VPC_PEERING", "INTERNAL")
    assert (address["prefixLength"], address["network"]) == (16, "network-vpc-id")
    _, connection = found["network-peering-connection"]
    assert connection["deletionPolicy"] == "REMOVE_PEERING"
    assert connection["reservedPeeringRanges"] == ["training-workers-dev"]
    assert connection["network"] == "network-vpc-id"
    assert "apis-servicenetworking" in registered("dev", network=PEERING)


def test_routes_are_exported_where_it_is_asked_for():
    _, routes = network_of(network=PEERING | {"exportCustomRoutes": True})["network-peering-routes"]
    assert routes["exportCustomRoutes"] is True
    assert routes["importCustomRoutes"] is False
    assert routes["network"] == "training-dev"


def test_more_ranges_are_added_to_the_same_connection():
    ranges = {"workers": {"prefixLength": 18}, "more": {"prefixLength": 17}}
    found = network_of(network={"mode": "peering", "ranges": ranges})
    _, connection = found["network-peering-connection"]
    assert connection["reservedPeeringRanges"] == ["training-workers-dev", "training-more-dev"]


def test_of_a_peering_that_exists_nothing_is_made():
    existing = {
        "mode": "peering",
        "existing": "projects/acme-ml-dev/global/networks/x",
        "ranges": {"workers": {"existing": "vertex-range"}},
    }
    assert names(network=existing) == set()


def test_an_interface_has_a_subnet_an_attachment_and_a_rule_among_machines():
    found = network_of(network=PSC)
    assert names(network=PSC) == {
        "network-vpc",
        "network-subnet",
        "network-psc-attachment",
        "network-allow-workers",
    }
    _, subnet = found["network-subnet"]
    assert (subnet["ipCidrRange"], subnet["privateIpGoogleAccess"]) == ("10.20.0.0/26", True)
    _, attachment = found["network-psc-attachment"]
    assert attachment["connectionPreference"] == "ACCEPT_AUTOMATIC"
    assert attachment["subnetworks"] == ["network-subnet-id"]
    _, rule = found["network-allow-workers"]
    assert rule["direction"] == "INGRESS"
    assert rule["sourceRanges"] == rule["destinationRanges"] == ["10.20.0.0/26"]


def test_an_attachment_that_exists_is_only_used():
    existing = "projects/acme-net/regions/us-central1/networkAttachments/a"
    found = names(network={"mode": "psc", "attachment": {"existing": existing}})
    assert "network-psc-attachment" not in found


def test_what_jobs_may_reach_is_opened_for_their_addresses_alone():
    allow = {"nfs": {"ports": ["2049"], "destinationRanges": ["10.9.0.0/24"]}}
    _, rule = network_of(network=PSC | {"allow": allow})["network-allow-nfs"]
    assert rule["sourceRanges"] == ["10.20.0.0/26"]
    assert rule["destinationRanges"] == ["10.9.0.0/24"]
    assert rule["allows"] == [{"protocol": "tcp", "ports": ["2049"]}]
    fixed = {"ranges": {"workers": {"prefixLength": 16, "address": "10.64.0.0"}}}
    _, peered = network_of(network=PEERING | fixed | {"allow": allow})["network-allow-nfs"]
    assert peered["sourceRanges"] == ["10.64.0.0/16"]
    _, chosen = network_of(network=PEERING | {"allow": allow})["network-allow-nfs"]
    assert chosen["sourceRanges"] == ["10.128.0.0/16"]  # where Google put it


def test_no_rule_of_a_stack_lets_in_the_world():
    for stack in ("dev", "prod"):
        for type_, inputs in registered(stack).values():
            if type_ == "gcp:compute/firewall:Firewall":
                assert "0.0.0.0/0" not in inputs["sourceRanges"]


def test_nat_serves_the_subnet_only():
    found = network_of(network=PSC | {"nat": True})
    _, nat = found["network-nat"]
    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    assert nat["subnetworks"] == [
        {"name": "network-subnet-id", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}
    ]
    assert nat["router"] == "training-dev"


def test_in_a_shared_vpc_the_subnet_is_the_hosts_and_the_attachment_the_projects():
    found = network_of(network=PSC | {"existing": HOST_NETWORK}, sharedVpc=HOST)
    assert "network-vpc" not in found
    assert found["network-subnet"][1]["project"] == "acme-net-prod"
    assert found["network-subnet"][1]["network"] == HOST_NETWORK
    assert found["network-psc-attachment"][1]["project"] == "acme-ml-dev"
    assert found["host-attached"][1] == {
        "hostProject": "acme-net-prod",
        "serviceProject": "acme-ml-dev",
    }
    assert "host-host" not in found
    user = found["network-uses-agent"][1]
    assert user["project"] == "acme-net-prod"
    assert user["subnetwork"] == "training-dev"


def test_a_host_is_turned_on_only_where_it_is_asked_for():
    network = PSC | {"existing": HOST_NETWORK}
    found = network_of(network=network, sharedVpc=HOST | {"enableHost": True})
    assert found["host-host"][1] == {"project": "acme-net-prod"}


def test_nothing_is_made_in_a_host_of_others():
    network = {"mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}
    found = registered("dev", network=network, sharedVpc=HOST_OF_OTHERS)
    for name, (_, inputs) in found.items():
        assert inputs.get("project") != "acme-net-prod", name
    assert "host-attached" not in found
    assert found["network-psc-attachment"][1]["subnetworks"] == [HOST_SUBNET]


def test_in_a_shared_vpc_the_ranges_and_their_connection_are_the_hosts():
    found = network_of(network=PEERING | {"existing": HOST_NETWORK}, sharedVpc=HOST)
    _, address = found["network-peering-workers"]
    assert (address["project"], address["network"]) == ("acme-net-prod", HOST_NETWORK)
    assert found["network-peering-connection"][1]["network"] == HOST_NETWORK
    _, own = network_of(network=PEERING)["network-peering-workers"]
    assert own["project"] == "acme-ml-dev"


#: What every rule of the small network has.
RULE = {
    "project": "acme-ml-dev",
    "network": "network-vpc-id",
    "direction": "INGRESS",
    "sourceRanges": ["10.20.0.0/26"],
}
NAMED = {"project": "acme-ml-dev", "region": "us-central1", "name": "training-dev"}


def test_every_setting_of_a_network_with_an_interface():
    allow = {"nfs": {"ports": ["2049"], "destinationRanges": ["10.9.0.0/24"]}}
    found = network_of(network=PSC | {"nat": True, "allow": allow})
    assert {n: row for n, row in found.items() if row[0].startswith("gcp:")} == {
        "network-vpc": (
            "gcp:compute/network:Network",
            {
                "project": "acme-ml-dev",
                "name": "training-dev",
                "description": "Training jobs of stack dev",
                "autoCreateSubnetworks": False,
                "routingMode": "REGIONAL",
            },
        ),
        "network-subnet": (
            "gcp:compute/subnetwork:Subnetwork",
            NAMED
            | {
                "network": "network-vpc-id",
                "ipCidrRange": "10.20.0.0/26",
                "privateIpGoogleAccess": True,
                "logConfig": {
                    "aggregationInterval": "INTERVAL_10_MIN",
                    "flowSampling": 0.5,
                    "metadata": "INCLUDE_ALL_METADATA",
                },
            },
        ),
        "network-psc-attachment": (
            "gcp:compute/networkAttachment:NetworkAttachment",
            NAMED
            | {
                "description": "Training jobs of stack dev",
                "connectionPreference": "ACCEPT_AUTOMATIC",
                "subnetworks": ["network-subnet-id"],
            },
        ),
        "network-allow-workers": (
            "gcp:compute/firewall:Firewall",
            RULE
            | {
                "name": "training-dev-workers",
                "description": "Machines of training jobs among themselves",
                "allows": [{"protocol": "tcp"}, {"protocol": "udp"}, {"protocol": "icmp"}],
                "destinationRanges": ["10.20.0.0/26"],
            },
        ),
        "network-allow-nfs": (
            "gcp:compute/firewall:Firewall",
            RULE
            | {
                "name": "training-dev-nfs",
                "description": "Machines of training jobs to nfs",
                "allows": [{"protocol": "tcp", "ports": ["2049"]}],
                "destinationRanges": ["10.9.0.0/24"],
            },
        ),
        "network-router": ("gcp:compute/router:Router", NAMED | {"network": "network-vpc-id"}),
        "network-nat": (
            "gcp:compute/routerNat:RouterNat",
            NAMED
            | {
                "router": "training-dev",
                "natIpAllocateOption": "AUTO_ONLY",
                "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
                "subnetworks": [
                    {"name": "network-subnet-id", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}
                ],
                "logConfig": {"enable": True, "filter": "ERRORS_ONLY"},
            },
        ),
    }


def test_every_setting_of_a_network_in_peering():
    given = {"ranges": {"workers": {"prefixLength": 16, "address": "10.64.0.0"}}}
    found = network_of(network=PEERING | given | {"importCustomRoutes": True})
    made = {n: row[1] for n, row in found.items() if row[0].startswith("gcp:")}
    del made["network-vpc"]
    assert made == {
        "network-peering-workers": {
            "project": "acme-ml-dev",
            "name": "training-workers-dev",
            "addressType": "INTERNAL",
            "purpose": "VPC_PEERING",
            "address": "10.64.0.0",
            "prefixLength": 16,
            "network": "network-vpc-id",
        },
        "network-peering-connection": {
            "network": "network-vpc-id",
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": ["training-workers-dev"],
            "deletionPolicy": "REMOVE_PEERING",
        },
        "network-peering-routes": {
            "project": "acme-ml-dev",
            "network": "training-dev",
            "exportCustomRoutes": False,
            "importCustomRoutes": True,
        },
    }


def test_a_rule_of_a_range_that_exists_is_about_its_addresses_where_they_are_known():
    allow = {"nfs": {"ports": ["2049"], "destinationRanges": ["10.9.0.0/24"]}}
    known = {"existing": "vertex-range", "address": "10.70.0.0", "prefixLength": 16}
    ranges = {"more": {"prefixLength": 18, "address": "10.64.0.0"}, "theirs": known}
    network = {"mode": "peering", "ranges": ranges, "allow": allow, "existing": HOST_NETWORK}
    found = network_of(network=network, sharedVpc=HOST)
    assert found["network-allow-nfs"][1]["sourceRanges"] == ["10.64.0.0/18", "10.70.0.0/16"]
    reserved = found["network-peering-connection"][1]["reservedPeeringRanges"]
    assert reserved == ["training-more-dev", "vertex-range"]


@pytest.mark.parametrize(
    ("network", "apis"),
    [(PSC, {"compute"}), (PEERING, {"compute", "servicenetworking"})],
    ids=["psc", "peering"],
)
def test_apis_are_turned_on_in_a_managed_host(network, apis):
    found = registered("dev", jobs={}, network=network | {"existing": HOST_NETWORK}, sharedVpc=HOST)
    there = {
        name: inputs["service"]
        for name, (type_, inputs) in found.items()
        if type_ == "gcp:projects/service:Service" and inputs["project"] == "acme-net-prod"
    }
    assert there == {f"host-{api}": f"{api}.googleapis.com" for api in apis}
