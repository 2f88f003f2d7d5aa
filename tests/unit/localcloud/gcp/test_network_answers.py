"""What connections, Shared VPC and networks in use answer, without a plugin."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.errors import CloudError, PluginError
from localgcp.inventory import vpc
from tests.unit.localcloud.gcp.estate import (
    HOST,
    LINK,
    PROJECT,
    REGION,
    ROUTER,
    SUBNET,
    VPC,
    Estate,
    told,
)

GOOGLE = "servicenetworking.googleapis.com"
CONNECTION_ID = f"projects%2F{PROJECT}%2Fglobal%2Fnetworks%2Fvpc:{GOOGLE}"
RANGE = f"projects/{PROJECT}/global/addresses/range"
FIREWALL, NAT = "gcp:compute/firewall:Firewall", "gcp:compute/routerNat:RouterNat"
ROUTES = "gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig"
CONNECTION = {"network": "vpc", "service": GOOGLE, "reservedPeeringRanges": ["range"]}


@pytest.fixture
def ranged(estate: Estate) -> Estate:
    """With a range for Google's services in the network."""
    values = {"name": "range", "network": VPC, "purpose": "VPC_PEERING", "address": "10.9.0.0",
              "prefixLength": 24, "addressType": "INTERNAL"}  # fmt: skip
    estate.store.put(vpc.ADDRESS, RANGE, PROJECT, values, values)
    return estate


@pytest.fixture
def peered(ranged: Estate) -> Estate:
    """With a connection that uses the range."""
    outputs = {**CONNECTION, "peering": "servicenetworking-googleapis-com"}
    ranged.store.put(vpc.CONNECTION, CONNECTION_ID, PROJECT, CONNECTION, outputs)
    return ranged


def refusal(estate: Estate, token: str, id_: str, olds: dict[str, Any]) -> str:
    cloud, kind = estate.kind(token)
    with pytest.raises(PluginError) as refused:
        kind.unmake(cloud, id_, olds)
    return str(refused.value)


def test_a_connection_is_one_for_a_network_and_a_service(ranged: Estate) -> None:
    cloud, kind = ranged.kind(vpc.CONNECTION)
    assert ranged.made(vpc.CONNECTION, **CONNECTION) == {
        "peering": "servicenetworking-googleapis-com"
    }
    assert kind.id(cloud, CONNECTION) == CONNECTION_ID
    for written in (f"{LINK}{VPC}:{GOOGLE}", f"{VPC}:{GOOGLE}", CONNECTION_ID, f"vpc:{GOOGLE}"):
        assert kind.import_id(cloud, written) == CONNECTION_ID
    assert kind.owner(cloud, CONNECTION_ID) == PROJECT
    assert kind.owner(cloud, f"projects%2Flocal-a%2Fglobal%2Fnetworks%2Fv:{GOOGLE}") == "local-a"
    assert kind.owner(cloud, f"vpc:{GOOGLE}") == PROJECT
    abroad, _ = ranged.kind(vpc.CONNECTION, "acme")
    assert kind.id(abroad, {"network": "v", "service": "s"}) == "projects%2Facme%2Fv:s"
    given = "projects/b/global/networks/v"
    assert kind.project(abroad, {"network": given}) == "b"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"network": "no"}, "googleapi: Error 404: The resource "
         f"'projects/{PROJECT}/global/networks/no' was not found, notFound"),
        ({"reservedPeeringRanges": ["range", "a", "b"]}, "Error code 5, message: Allocated IP "
         f"range not found in network '{VPC}': a, b."),
        ({"reservedPeeringRanges": []},
         "Error code 9, message: At least one allocated IP range is needed."),
    ],
)  # fmt: skip
def test_a_connection_that_cannot_be_is_refused(
    ranged: Estate, inputs: dict[str, Any], said: str
) -> None:
    cloud, kind = ranged.kind(vpc.CONNECTION)
    title = "Service Networking Connection"
    with pytest.raises(PluginError) as refused:
        kind.verify(cloud, PROJECT, CONNECTION | inputs, "Making")
    assert str(refused.value) == f"Error waiting to create {title}: {said}"
    if "network" not in inputs:
        with pytest.raises(PluginError) as refused:
            kind.remake(cloud, PROJECT, "x", CONNECTION | inputs, {})
        assert str(refused.value) == f"Error waiting to update {title}: {said}"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"exportSubnetRoutesWithPublicIp": True, "importSubnetRoutesWithPublicIp": False}),
        ({"exportSubnetRoutesWithPublicIp": False, "importSubnetRoutesWithPublicIp": True},
         {"exportSubnetRoutesWithPublicIp": False, "importSubnetRoutesWithPublicIp": True}),
    ],
)  # fmt: skip
def test_routes_are_those_of_a_peering_that_exists(peered: Estate, given: Any, made: Any) -> None:
    named = {"network": "vpc", "peering": "servicenetworking-googleapis-com", **given}
    peered.store.put(vpc.CONNECTION, "other", PROJECT, {}, {"network": VPC, "peering": "other"})
    assert peered.made(ROUTES, **named) == {"project": PROJECT, **made}
    assert peered.refusal(ROUTES, network="vpc", peering="no") == (
        "Making: googleapi: Error 400: Invalid value for field 'resource.networkPeering.name': "
        f"'no'. There is no peering 'no' in network '{VPC}'., invalid"
    )


def test_a_network_takes_its_connections_with_it_and_a_router_its_nats(peered: Estate) -> None:
    for each in ("r/n", "r/m", "rr/n"):
        peered.store.put(NAT, f"{PROJECT}/us-west1/{each}", PROJECT, {}, {})
    cloud, router = peered.kind(ROUTER)
    router.delete(cloud, f"{REGION}/routers/r", {"project": PROJECT})
    assert [each.id for each in peered.store.list(NAT)] == [f"{PROJECT}/us-west1/rr/n"]
    for token, path in ((vpc.SUBNETWORK, SUBNET), (vpc.ADDRESS, RANGE)):
        peered.store.delete(token, path)
    cloud, network = peered.kind(vpc.NETWORK)
    network.delete(cloud, VPC, {"project": PROJECT})
    assert peered.store.list(vpc.CONNECTION) == []


def attach(estate: Estate, host: str, service: str) -> None:
    values = {"hostProject": host, "serviceProject": service}
    estate.store.put(vpc.HOST_PROJECT, host, host, {"project": host}, {"project": host})
    estate.store.put(vpc.SERVICE_PROJECT, f"{host}/{service}", host, values, values)


@pytest.mark.parametrize(
    ("token", "project", "inputs", "said"),
    [
        (vpc.HOST_PROJECT, "local-s", {}, f"400: The project 'local-s' is a service project of the "
         f"host '{HOST}'., invalidResourceUsage"),
        (vpc.SERVICE_PROJECT, PROJECT, {"serviceProject": "local-t"}, "400: The project "
         f"'{PROJECT}' is not a Shared VPC host project., invalid"),
        (vpc.SERVICE_PROJECT, HOST, {"serviceProject": "local-other"}, "400: The project "
         "'local-other' is a Shared VPC host itself., invalidResourceUsage"),
        (vpc.SERVICE_PROJECT, "local-other", {"serviceProject": "local-s"}, "400: The project "
         f"'local-s' is attached to the host '{HOST}' already., invalidResourceUsage"),
        (vpc.SERVICE_PROJECT, HOST, {"serviceProject": "local-s"}, None),
        (vpc.HOST_PROJECT, "local-t", {}, None),
    ],
)  # fmt: skip
def test_a_project_is_a_host_or_attached_to_one(
    estate: Estate, token: str, project: str, inputs: dict[str, Any], said: str | None
) -> None:
    attach(estate, HOST, "local-s")
    estate.store.put(vpc.HOST_PROJECT, "local-other", "local-other", {}, {})
    cloud, kind = estate.kind(token)
    found = None
    try:
        kind.verify(cloud, project, inputs, "Making")
    except CloudError as error:
        found = str(error)
    assert found == (said and f"Making: googleapi: Error {said}")


def test_a_host_keeps_what_is_attached_to_it(estate: Estate) -> None:
    attach(estate, "local-a", "local-b")
    attach(estate, HOST, PROJECT)
    assert refusal(estate, vpc.HOST_PROJECT, HOST, {}) == (
        f"Error disabling Shared VPC Host '{HOST}': googleapi: Error 400: The host project "
        f"'{HOST}' still has the service project '{PROJECT}'., resourceInUseByAnotherResource"
    )
    shared = f"projects/{HOST}/regions/us-west1/subnetworks/s"
    attachment = f"{REGION}/networkAttachments/a"
    values = {"subnetworks": [SUBNET, shared], "region": "us-west1"}
    estate.store.put(vpc.ATTACHMENT, attachment, PROJECT, values, values)
    service = f"{HOST}/{PROJECT}"
    assert refusal(estate, vpc.SERVICE_PROJECT, service, {}) == (
        f"Error detaching Shared VPC Service Project '{service}': googleapi: Error 400: The "
        f"resource '{attachment}' still uses the shared '{shared}'., "
        "resourceInUseByAnotherResource"
    )
    estate.store.delete(vpc.ATTACHMENT, attachment)
    cloud, kind = estate.kind(vpc.SERVICE_PROJECT)
    kind.delete(cloud, service, {"hostProject": HOST, "serviceProject": PROJECT})
    assert estate.store.get(vpc.SERVICE_PROJECT, service) is None
    cloud, kind = estate.kind(vpc.HOST_PROJECT)
    kind.delete(cloud, HOST, {"project": HOST})
    assert estate.store.get(vpc.HOST_PROJECT, HOST) is None


@pytest.mark.parametrize(
    ("token", "right", "wrong", "said"),
    [
        (FIREWALL, {"network": "vpc", "priority": 65_535}, {"priority": 65_536},
         "Error updating Firewall 'x': googleapi: Error 400: Invalid value for field "
         "'resource.priority': '65536'. Must be between 0 and 65535., invalid"),
        (NAT, {"router": "r", "natIpAllocateOption": "AUTO_ONLY"},
         {"natIpAllocateOption": "MANUAL_ONLY"},
         "Error updating RouterNat 'x': googleapi: Error 400: Invalid value for field "
         "'resource.nats[0].natIps': ''. Manual allocation needs natIps., invalid"),
    ],
)  # fmt: skip
def test_what_a_service_would_not_make_is_not_changed_to_it(
    estate: Estate, token: str, right: Any, wrong: Any, said: str
) -> None:
    cloud, kind = estate.kind(token)
    assert kind.remake(cloud, PROJECT, "x", right, {}) == {}
    assert told(lambda: kind.remake(cloud, PROJECT, "x", right | wrong, {})) == said
