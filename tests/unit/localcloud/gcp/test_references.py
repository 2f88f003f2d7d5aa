"""What one resource may name of another: its project, its place."""

from __future__ import annotations

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

NETWORK = "gcp:compute/network:Network"
ROUTER = "gcp:compute/router:Router"
NAT = "gcp:compute/routerNat:RouterNat"


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
