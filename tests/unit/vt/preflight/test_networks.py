"""The network of a stack: what has addresses in it, and each answer word for word."""

from __future__ import annotations

from typing import Any

from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, planned
from tests.unit.vt.preflight.documents import PROJECT
from vertex_training_cli.preflight.networks import (
    AddressBlock,
    Block,
    held_blocks,
    in_the_way,
    wanted_blocks,
)

ID = f"projects/{PROJECT}/global/networks/training-prod"
LINK = f"https://www.googleapis.com/compute/v1/{ID}"


def held(*lists: list[dict[str, Any]]) -> list[AddressBlock]:
    return list(held_blocks(ID, *lists))


def test_what_has_addresses_is_told_by_kind_and_place() -> None:
    region = "https://www.googleapis.com/compute/v1/projects/p/regions/us-east4"
    subnets = [
        {"network": LINK, "name": "a", "region": region, "ipCidrRange": "10.0.0.0/24",
         "secondaryIpRanges": [{"ipCidrRange": "10.1.0.0/16"}, {"ipCidrRange": "fd20::/64"}, {}]},
        {"network": f"{LINK}-2", "name": "b", "region": region, "ipCidrRange": "10.2.0.0/24"},
        {"name": "c", "region": region, "ipCidrRange": "10.2.0.0/24"},
    ]  # fmt: skip
    addresses = [
        {"network": LINK, "name": "r", "purpose": "VPC_PEERING", "address": "10.3.0.0",
         "prefixLength": 16},
        {"network": LINK, "name": "s", "purpose": "PRIVATE_SERVICE_CONNECT", "address": "10.4.0.0",
         "prefixLength": 16},
    ]  # fmt: skip
    routes = [
        {"network": LINK, "name": "p", "destRange": "10.5.0.0/16", "nextHopPeering": "google"},
        {"network": LINK, "name": "n", "destRange": "10.0.0.0/24", "nextHopNetwork": LINK},
        {"network": LINK, "name": "v", "destRange": "10.6.0.9/16", "nextHopIp": "10.0.0.2"},
    ]
    assert held(subnets, addresses, routes) == [
        AddressBlock(Block("10.0.0.0/24"), "subnet a in us-east4 (10.0.0.0/24)", "us-east4/a"),
        AddressBlock(Block("10.1.0.0/16"), "subnet a in us-east4 (10.1.0.0/16)", "us-east4/a"),
        AddressBlock(Block("10.3.0.0/16"), "range r (10.3.0.0/16)", "global/r"),
        AddressBlock(Block("10.5.0.0/16"), "peering google (10.5.0.0/16)", "p"),
        AddressBlock(Block("10.6.0.0/16"), "route v (10.6.0.0/16)", "v", only_within=True),
    ]


def test_what_a_stack_wants_is_what_it_makes_at_addresses_of_its_choice() -> None:
    ranges = {
        "workers": {"address": "10.30.0.0", "prefixLength": 16},
        "anywhere": {"prefixLength": 16},
    }
    peering = {"mode": "peering", "subnet": {"range": "10.20.0.0/26"}, "ranges": ranges}
    assert list(wanted_blocks(planned(network=peering))) == [
        AddressBlock(Block("10.20.0.0/26"), "subnet training-prod", "us-central1/training-prod"),
        AddressBlock(Block("10.30.0.0/16"), "range training-workers-prod",
                    "global/training-workers-prod"),
    ]  # fmt: skip
    assert list(wanted_blocks(planned())) == []
    existing = {"mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}
    assert list(wanted_blocks(planned(network=existing, sharedVpc=HOST))) == []


WANTED = AddressBlock(Block("10.20.0.0/24"), "subnet a", "us-central1/a")


def test_nothing_is_in_the_way_of_what_is_there_already() -> None:
    there = AddressBlock(WANTED.block, "subnet a", WANTED.name)
    other = AddressBlock(Block("10.0.0.0/8"), "w", "us-central1/b")
    assert in_the_way(WANTED, [other, there]) == []
