"""What one resource may name of another: its project, its place."""

from __future__ import annotations

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

SERVICE = "gcp:projects/service:Service"
NETWORK = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
REPOSITORY = "gcp:artifactregistry/repository:Repository"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
NAT = "gcp:compute/routerNat:RouterNat"


def test_a_router_is_in_a_network_of_its_own_project(local: Plugin) -> None:
    local.enable("compute")
    local.create(SERVICE, {"service": "compute.googleapis.com", "project": "local-host"})
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False, "project": "local-host"})
    network = "projects/local-host/global/networks/vpc"

    text = refused(lambda: local.create(ROUTER, {"name": "r", "network": network}))

    assert "Cross project referencing is not allowed for this resource." in text
    assert f"'resource.network': '{network}'" in text


def test_a_repository_is_where_it_says_and_else_in_the_region_of_the_provider(
    local: Plugin,
) -> None:
    local.enable("artifactregistry")
    inputs = {"repositoryId": "docker", "format": "DOCKER"}
    here, _ = local.create(REPOSITORY, inputs)
    there, made = local.create(REPOSITORY, {**inputs, "location": "europe-west4"})
    assert here == "projects/local-p1/locations/us-central1/repositories/docker"
    assert there == "projects/local-p1/locations/europe-west4/repositories/docker"
    assert made["registryUri"] == "europe-west4-docker.pkg.dev/local-p1/docker"


def test_a_subnetwork_that_grows_stays_in_its_network_under_the_full_link(local: Plugin) -> None:
    local.enable("compute")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    inputs = {"name": "s", "network": "vpc", "ipCidrRange": "10.0.0.0/24"}
    id_, made = local.create(SUBNET, inputs)

    grown = local.update(SUBNET, id_, {**inputs, "ipCidrRange": "10.0.0.0/23"}, made)

    link = "https://www.googleapis.com/compute/v1/projects/local-p1/global/networks/vpc"
    assert grown["network"] == made["network"] == link
    assert grown["ipCidrRange"] == "10.0.0.0/23"


def test_a_nat_is_of_the_project_that_its_id_begins_with(local: Plugin) -> None:
    text = refused(lambda: local.read(NAT, "acme-ml-dev/us-central1/r/nat"))

    assert text.startswith("project 'acme-ml-dev' is not a local project")


@pytest.mark.parametrize(
    ("network", "replaced"),
    [
        ("vpc", False),
        ("projects/local-p1/global/networks/vpc", False),
        ("https://www.googleapis.com/compute/v1/projects/local-p1/global/networks/vpc", False),
        ("projects/local-host/global/networks/vpc", True),
        ("projects/local-p1/global/networks/other", True),
    ],
)
def test_a_network_of_the_same_name_in_another_project_is_another_network(
    local: Plugin, network: str, replaced: bool
) -> None:
    local.enable("compute")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    id_, made = local.create(ROUTER, {"name": "r", "network": "vpc"})

    answer = local.diff(ROUTER, id_, {"name": "r", "network": network}, made)

    assert list(answer.replaces) == (["network"] if replaced else [])
