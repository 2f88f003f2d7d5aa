"""What is registered for a stack's network in each mode, and what is not."""

from tests.unit.infra.recorder import registered
from tests.unit.infra.stacks import PSC

KINDS = ("compute/", "servicenetworking/", "vertextraining:network")


def network_of(**changes):
    """Resources of the network by name: type and inputs."""
    found = registered("dev", **changes)
    return {name: row for name, row in found.items() if any(kind in row[0] for kind in KINDS)}


def names(**changes):
    return {n for n, (type_, _) in network_of(**changes).items() if type_.startswith("gcp:")}


def test_of_a_peering_that_exists_nothing_is_made():
    existing = {
        "mode": "peering",
        "existing": "projects/acme-ml-dev/global/networks/x",
        "ranges": {"workers": {"existing": "vertex-range"}},
    }
    assert names(network=existing) == set()


def test_an_attachment_that_exists_is_only_used():
    existing = "projects/acme-net/regions/us-central1/networkAttachments/a"
    found = names(network={"mode": "psc", "attachment": {"existing": existing}})
    assert "network-psc-attachment" not in found


def test_nat_serves_the_subnet_only():
    found = network_of(network=PSC | {"nat": True})
    _, nat = found["network-nat"]
    assert nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS"
    assert nat["subnetworks"] == [
        {"name": "network-subnet-id", "sourceIpRangesToNats": ["ALL_IP_RANGES"]}
    ]
    assert nat["router"] == "training-dev"
