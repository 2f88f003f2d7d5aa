"""Shared VPC between local projects: who may attach to whom, and what attaching allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

SERVICE = "gcp:projects/service:Service"
HOST = "gcp:compute/sharedVPCHostProject:SharedVPCHostProject"
ATTACHED = "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject"
NETWORK = "gcp:compute/network:Network"
SUBNET = "gcp:compute/subnetwork:Subnetwork"
ATTACHMENT = "gcp:compute/networkAttachment:NetworkAttachment"

HERE = {"hostProject": "local-host", "serviceProject": "local-p1"}
SHARED = "projects/local-host/regions/us-central1/subnetworks/shared"


@pytest.fixture
def host(local: Plugin) -> Plugin:
    """A host project with a network, seen from the service project that is not attached yet."""
    local.enable("compute", "cloudresourcemanager")
    local.create(SERVICE, {"service": "compute.googleapis.com", "project": "local-host"})
    local.create(HOST, {"project": "local-host"})
    net = {"name": "vpc", "autoCreateSubnetworks": False, "project": "local-host"}
    local.create(NETWORK, net)
    subnet = {"name": "shared", "ipCidrRange": "10.0.0.0/24", "network": "vpc"}
    local.create(SUBNET, {**subnet, "project": "local-host"})
    return local


def test_a_project_has_one_host_and_is_none_itself(host: Plugin) -> None:
    host.create(ATTACHED, HERE)
    api = {"service": "compute.googleapis.com", "project": "local-other"}
    host.create(SERVICE, api)
    host.create(HOST, {"project": "local-other"})

    again = {**HERE, "hostProject": "local-other"}
    assert "attached to the host 'local-host' already" in refused(
        lambda: host.create(ATTACHED, again)
    )
    assert "is a service project of the host" in refused(
        lambda: host.create(HOST, {"project": "local-p1"})
    )
    assert "is a Shared VPC host itself" in refused(
        lambda: host.create(ATTACHED, {**HERE, "serviceProject": "local-other"})
    )


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (HOST, {"project": "acme-host"}),
        (ATTACHED, {**HERE, "hostProject": "acme-host"}),
        (ATTACHED, {**HERE, "serviceProject": "acme-ml"}),
        (NETWORK, {"project": "acme-host", "name": "vpc"}),
    ],
)
def test_no_project_that_is_not_local_takes_part(
    host: Plugin, token: str, inputs: dict[str, Any]
) -> None:
    assert "is not a local project" in refused(lambda: host.create(token, inputs))


def test_a_shared_subnetwork_may_be_attached_once_the_project_is(host: Plugin) -> None:
    attachment = {"subnetworks": [SHARED], "connectionPreference": "ACCEPT_AUTOMATIC", "name": "a"}
    text = refused(lambda: host.create(ATTACHMENT, attachment))
    assert "Cross project referencing is not allowed" in text

    host.create(ATTACHED, HERE)
    id_, _ = host.create(ATTACHMENT, attachment)

    assert id_ == "projects/local-p1/regions/us-central1/networkAttachments/a"
    assert f"'{id_}'" in refused(lambda: host.delete(SUBNET, SHARED, {"project": "local-host"}))
    still = refused(lambda: host.delete(ATTACHED, "local-host/local-p1", HERE))
    assert "still uses the shared" in still


def test_a_host_with_service_projects_stays_one(host: Plugin) -> None:
    host.create(ATTACHED, HERE)

    text = refused(lambda: host.delete(HOST, "local-host", {"project": "local-host"}))
    assert "still has the service project 'local-p1'" in text
    host.delete(ATTACHED, "local-host/local-p1", HERE)
    host.delete(HOST, "local-host", {"project": "local-host"})

    assert host.read(HOST, "local-host").id == ""
