"""Ranges of addresses that a network's resources hold, their owners, and blocks that are free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.inventory import vpc
from localgcp.inventory.store import Store
from localgcp.inventory.vpc import ADDRESS, NETWORK, SUBNETWORK, AllocatedRange, Block

PROJECT = "local-p1"
VPC = f"projects/{PROJECT}/global/networks/vpc"
OTHER = f"projects/{PROJECT}/global/networks/other"
REGION = f"projects/{PROJECT}/regions/us-west1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    for path in (VPC, OTHER):
        made.put(NETWORK, path, PROJECT, {}, {"autoCreateSubnetworks": False})
    return made


def add_subnet(store: Store, name: str, cidr: str | None, **outputs: Any) -> str:
    path = f"{REGION}/subnetworks/{name}"
    values = {"name": name, "region": "us-west1", "network": "vpc", "ipCidrRange": cidr, **outputs}
    store.put(SUBNETWORK, path, PROJECT, {}, values)
    return path


def add_range(store: Store, name: str, address: str, prefix: int = 16, **outputs: Any) -> str:
    path = f"projects/{PROJECT}/global/addresses/{name}"
    values = {"name": name, "network": VPC, "purpose": "VPC_PEERING", "address": address,
              "prefixLength": prefix, **outputs}  # fmt: skip
    store.put(ADDRESS, path, PROJECT, {}, values)
    return path


def test_subnetworks_and_ranges_of_a_network_are_its_allocated_ranges(store: Store) -> None:
    link = f"https://www.googleapis.com/compute/v1/{REGION}"
    secondary = [{"ipCidrRange": "10.2.0.0/20"}, {"ipCidrRange": None}]
    first = add_subnet(store, "a", "10.1.0.0/24", region=link, secondaryIpRanges=secondary)
    second = add_subnet(store, "b", None)
    third = add_range(store, "r", "10.9.0.0")
    add_subnet(store, "foreign", "10.3.0.0/24", network=OTHER)
    add_range(store, "foreign-range", "10.8.0.0", network=OTHER)
    add_range(store, "nat", "10.7.0.0", purpose="")
    add_range(store, "open", "")
    owner = "existing subnetwork 'a' in region 'us-west1'"
    assert list(vpc.allocated_ranges(store, VPC)) == [
        AllocatedRange(Block("10.1.0.0/24"), owner, first),
        AllocatedRange(Block("10.2.0.0/20"), owner, first),
        AllocatedRange(Block("10.9.0.0/16"), "allocated range 'r'", third),
    ]
    assert second not in [each.path for each in vpc.allocated_ranges(store, VPC)]


def test_a_network_in_auto_mode_holds_the_upper_half_of_ten(store: Store) -> None:
    store.put(NETWORK, VPC, PROJECT, {}, {"autoCreateSubnetworks": True})
    text = "the subnetworks of an auto mode network"
    assert list(vpc.allocated_ranges(store, VPC)) == [
        AllocatedRange(Block("10.128.0.0/9"), text, VPC),
    ]  # fmt: skip
    assert list(vpc.allocated_ranges(store, f"{VPC}2")) == []


@pytest.mark.parametrize(
    ("held", "prefix", "free"),
    [
        ([], 16, "10.0.0.0/16"),
        (["10.0.0.0/16"], 16, "10.1.0.0/16"),
        (["10.1.0.0/24"], 16, "10.0.0.0/16"),
        (["10.0.0.0/24"], 24, "10.0.1.0/24"),
        (["10.0.0.0/8"], 16, "192.168.0.0/16"),
        (["10.255.0.0/16"], 8, None),
    ],
)
def test_a_free_block_is_the_first_one_of_the_private_ranges(
    store: Store, held: list[str], prefix: int, free: str | None
) -> None:
    for number, cidr in enumerate(held):
        add_subnet(store, f"s{number}", cidr)
    found = vpc.free_block(store, VPC, prefix)
    assert found == (free and Block(free))
