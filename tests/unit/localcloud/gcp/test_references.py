"""What one resource may name of another: its project, its place."""

from __future__ import annotations

from tests.unit.localcloud.gcp.harness import Plugin, refused

SERVICE = "gcp:projects/service:Service"
NETWORK = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
REPOSITORY = "gcp:artifactregistry/repository:Repository"


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
