"""Updates and defaults that the cloud itself decides."""

from __future__ import annotations

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused, row_named

BUDGET = "gcp:billing/budget:Budget"
NETWORK = "gcp:compute/network:Network"
ADDRESS = "gcp:compute/globalAddress:GlobalAddress"
CONNECTION = "gcp:servicenetworking/connection:Connection"
ROUTES = "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig"


@pytest.mark.parametrize("given", [{}, {"exportSubnetRoutesWithPublicIp": False}])
def test_a_peering_exports_routes_with_public_addresses_and_imports_none_unless_asked(
    local: Plugin, given: dict[str, bool]
) -> None:
    local.enable("compute", "servicenetworking")
    local.create(NETWORK, {"name": "vpc", "autoCreateSubnetworks": False})
    range_ = {"name": "training", "purpose": "VPC_PEERING", "addressType": "INTERNAL"}
    local.create(ADDRESS, {**range_, "network": "vpc", "prefixLength": 16})
    service = {"network": "vpc", "service": "servicenetworking.googleapis.com"}
    local.create(CONNECTION, {**service, "reservedPeeringRanges": ["training"]})

    peering = {"network": "vpc", "peering": "servicenetworking-googleapis-com"}
    custom = {"exportCustomRoutes": True, "importCustomRoutes": False}
    _, made = local.create(ROUTES, {**peering, **custom, **given})

    expected = {"exportSubnetRoutesWithPublicIp": True, "importSubnetRoutesWithPublicIp": False}
    assert {key: made[key] for key in expected} == expected | given


def test_an_api_that_is_off_is_named_as_the_console_names_it(local: Plugin) -> None:
    text = refused(lambda: local.create(BUDGET, row_named("cap")["inputs"]))
    assert "Cloud Billing Budget API has not been used in project" in text
