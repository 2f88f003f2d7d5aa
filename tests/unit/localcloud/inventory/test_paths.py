"""References to resources in each of their forms, and who may use a shared network."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.inventory import resource_paths, vpc
from localgcp.inventory.store import Store
from localgcp.projects import local_project_number

PROJECT = "local-p1"
NUMBER = local_project_number(PROJECT)
LINK = "https://www.googleapis.com/compute/v1/"
SUBNET = f"projects/{PROJECT}/regions/us-west1/subnetworks/s"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "cloud.sqlite")
    made.put(vpc.NETWORK, f"projects/{PROJECT}/global/networks/n", PROJECT, {}, {})
    return made


@pytest.mark.parametrize(
    ("given", "found"),
    [(PROJECT, PROJECT), ("local-unknown", "local-unknown"), (NUMBER, PROJECT), ("1", None)],
)
def test_a_project_is_known_by_its_id_and_its_number(
    store: Store, given: str, found: str | None
) -> None:
    assert resource_paths.project_id(store, given) == found


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("projects/p/global/networks/n", "projects/p/global/networks/n"),
        (f"{LINK}projects/p/global/networks/n", "projects/p/global/networks/n"),
        (f"{LINK}projects/{NUMBER}/zones/z/x", f"projects/{PROJECT}/zones/z/x"),
        ("projects/1/zones/z/x", "projects/1/zones/z/x"),
    ],
)
def test_a_link_has_one_form_to_compare(store: Store, given: str, path: str) -> None:
    assert resource_paths.canonical(store, given) == path


@pytest.mark.parametrize(
    ("given", "collection", "region", "path"),
    [
        ("n", "networks", "", f"projects/{PROJECT}/global/networks/n"),
        ("n", "networks", "us-west1", f"projects/{PROJECT}/global/networks/n"),
        ("s", "subnetworks", "us-west1", SUBNET),
        ("s", "subnetworks", f"{LINK}projects/q/regions/us-west1", SUBNET),
        ("global/networks/n", "networks", "", f"projects/{PROJECT}/global/networks/n"),
        (f"{LINK}{SUBNET.replace(PROJECT, NUMBER)}", "subnetworks", "eu", SUBNET),
    ],
)
def test_a_reference_is_resolved_where_it_stands(
    store: Store, given: str, collection: str, region: str, path: str
) -> None:
    found = resource_paths.resolve(store, given, collection, project=PROJECT, region=region)
    assert found == path


def test_an_attachment_has_subnetworks_of_its_region_or_of_a_host(store: Store) -> None:
    host = "projects/local-host/regions/us-west1/subnetworks/t"
    path = f"projects/{PROJECT}/regions/us-west1/networkAttachments/a"
    outputs = {"region": f"{LINK}projects/{PROJECT}/regions/us-west1", "subnetworks": ["s", host]}
    store.put(vpc.ATTACHMENT, path, PROJECT, {}, outputs)
    store.put(vpc.ATTACHMENT, f"{path}2", PROJECT, {}, {"region": "us-west1"})
    first, second = store.list(vpc.ATTACHMENT)
    assert (vpc.subnetworks_of(store, first), vpc.subnetworks_of(store, second)) == (
        [SUBNET, host], [],
    )  # fmt: skip


def test_a_project_uses_networks_of_the_host_that_it_is_attached_to(store: Store) -> None:
    store.put(vpc.SERVICE_PROJECT, f"local-host/{PROJECT}", "local-host", {}, {})
    assert vpc.attached(store, "local-host", PROJECT)
    assert not vpc.attached(store, PROJECT, "local-host")
