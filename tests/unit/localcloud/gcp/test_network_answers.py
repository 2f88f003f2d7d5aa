"""What connections, Shared VPC and networks in use answer, without a plugin."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from localgcp.errors import CloudError, PluginError
from localgcp.gcp.cloud import Cloud
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory import vpc
from localgcp.inventory.store import Binding
from tests.unit.localcloud.conftest import wait_until
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
    write_policy,
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


def test_a_second_connection_is_refused_with_the_ranges_of_the_first(peered: Estate) -> None:
    cloud, kind = peered.kind(vpc.CONNECTION)
    with pytest.raises(PluginError) as refused:
        kind.verify(cloud, PROJECT, CONNECTION, "")
    assert str(refused.value) == (
        "Error waiting to create Service Networking Connection: Error code 9, message: Cannot "
        "modify allocated ranges in CreateConnection. Please use UpdateConnection. Existing "
        "allocated IP ranges: [range]."
    )
    peered.enable("servicenetworking")
    assert kind.create(cloud, {**CONNECTION, "updateOnCreationFail": True}).id == CONNECTION_ID
    assert kind.remake(cloud, PROJECT, CONNECTION_ID, CONNECTION, {}) == {}


def test_the_range_of_a_connection_stays_unless_the_connection_is_abandoned(
    peered: Estate,
) -> None:
    assert refusal(peered, vpc.ADDRESS, RANGE, {}) == (
        f"Error deleting GlobalAddress: googleapi: Error 400: The address resource '{RANGE}' is "
        f"already being used by '{VPC}:{GOOGLE}', resourceInUseByAnotherResource"
    )
    kept = {**CONNECTION, "deletionPolicy": "ABANDON"}
    peered.store.put(vpc.CONNECTION, CONNECTION_ID, PROJECT, kept, kept)
    cloud, kind = peered.kind(vpc.ADDRESS)
    kind.delete(cloud, RANGE, {"project": PROJECT})
    assert peered.store.get(vpc.ADDRESS, RANGE) is None


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


@pytest.mark.parametrize(
    ("token", "path", "outputs", "used"),
    [
        (FIREWALL, f"projects/{PROJECT}/global/firewalls/f", {"network": LINK + VPC}, VPC),
        (vpc.ADDRESS, RANGE, {"network": "vpc"}, VPC),
        ("gcp:compute/instance:Instance", f"projects/{PROJECT}/zones/a/instances/i",
         {"networkInterfaces": [{"subnetwork": SUBNET}, {"network": VPC}]}, VPC),
        ("gcp:compute/instance:Instance", f"projects/{PROJECT}/zones/a/instances/i",
         {"networkInterfaces": [{"network": VPC}, {"subnetwork": LINK + SUBNET}]}, SUBNET),
        (vpc.ATTACHMENT, f"{REGION}/networkAttachments/a",
         {"subnetworks": [SUBNET], "network": VPC}, SUBNET),
        (NAT, f"{PROJECT}/us-west1/r/n", {"region": "us-west1", "subnetworks": [{"name": "s"}]},
         SUBNET),
        (vpc.SUBNETWORK, f"{REGION}/subnetworks/t", {"network": VPC}, VPC),
    ],
)  # fmt: skip
def test_what_uses_a_network_keeps_it(
    estate: Estate, token: str, path: str, outputs: dict[str, Any], used: str
) -> None:
    estate.store.delete(ROUTER, f"{REGION}/routers/r")
    if token != vpc.ATTACHMENT and used == VPC:
        estate.store.delete(vpc.SUBNETWORK, SUBNET)
    estate.store.put(token, path, PROJECT, {}, outputs)
    kind, title, noun = (vpc.NETWORK, "Network", "network") if used == VPC else (
        vpc.SUBNETWORK, "Subnetwork", "subnetwork")  # fmt: skip
    user = f"{REGION}/routers/r" if token == NAT else path
    assert refusal(estate, kind, used, {}) == (
        f"Error deleting {title}: googleapi: Error 400: The {noun} resource '{used}' is already "
        f"being used by '{user}', resourceInUseByAnotherResource"
    )
    estate.store.delete(token, path)
    cloud, type_ = estate.kind(kind)
    type_.delete(cloud, used, {"project": PROJECT})
    assert estate.store.get(kind, used) is None


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
        (vpc.SERVICE_PROJECT, HOST, {"serviceProject": "local-t"}, None),
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


def test_settings_of_a_peering_may_be_declared_where_they_are_declared_already(
    peered: Estate,
) -> None:
    peered.enable("compute")
    cloud, kind = peered.kind(ROUTES)
    inputs = {"network": "vpc", "peering": "servicenetworking-googleapis-com"}
    flags = {"exportCustomRoutes": True, "importCustomRoutes": False}
    first = kind.create(cloud, inputs | flags)
    again = kind.create(cloud, inputs | flags | {"exportCustomRoutes": False})
    assert again.id == first.id
    stored = peered.store.get(ROUTES, first.id)
    assert stored is not None
    assert stored.inputs["exportCustomRoutes"] is False


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


RESERVED = f"projects/{PROJECT}/zones/us-west1-a/reservations/x"


@pytest.mark.parametrize(
    ("token", "id_", "olds"),
    [
        (vpc.SUBNETWORK, SUBNET, {}),
        (vpc.ADDRESS, RANGE, {}),
        (vpc.CONNECTION, CONNECTION_ID, CONNECTION),
        ("gcp:compute/reservation:Reservation", RESERVED, {}),
    ],
)
def test_the_policy_of_a_resource_goes_with_it(
    estate: Estate, token: str, id_: str, olds: dict[str, Any]
) -> None:
    outputs = {"project": PROJECT, **olds}
    estate.store.put(token, id_, PROJECT, olds, outputs)
    for path in (id_, f"{id_}2"):
        write_policy(estate, path, Binding("roles/viewer", ("group:g@example.com",)))
    cloud, kind = estate.kind(token)
    kind.delete(cloud, id_, outputs)
    assert (estate.store.get(token, id_), [*estate.store.policies()]) == (None, [f"{id_}2"])


SECOND = "projects/local-p1/regions/us-west1/subnetworks/t"
ONE = "All subnetworks must belong to one network."


@pytest.mark.parametrize(
    ("subnetworks", "field", "value", "reason"),
    [
        ({"subnetworks": ["s", SECOND]}, "subnetworks", f"s, {SECOND}", ONE),
        ({"subnetworks": []}, "subnetworks", "", ONE),
        ({}, "subnetworks", "", ONE),
        ({"subnetworks": ["s", "no"]}, "subnetworks[1]", "no",
         "The referenced subnetwork resource cannot be found."),
        ({"subnetworks": [f"projects/{HOST}/regions/us-west1/subnetworks/s"]}, "subnetworks[0]",
         f"projects/{HOST}/regions/us-west1/subnetworks/s",
         "Cross project referencing is not allowed for this resource."),
        ({"subnetworks": ["s"], "region": "us-east1"}, "subnetworks[0]", "s",
         "The referenced subnetwork resource cannot be found."),
        ({"subnetworks": [SUBNET], "region": "us-east1"}, "subnetworks[0]", SUBNET,
         "The subnetwork must be in region us-east1."),
    ],
)  # fmt: skip
def test_an_attachment_is_on_subnetworks_of_one_network_and_its_region(
    estate: Estate, subnetworks: dict[str, Any], field: str, value: str, reason: str
) -> None:
    other = {"name": "t", "network": f"projects/{PROJECT}/global/networks/w", "region": "us-west1"}
    estate.store.put(vpc.SUBNETWORK, SECOND, PROJECT, other, other)
    said = f"Invalid value for field 'resource.{field}': '{value}'. {reason}, invalid"
    assert estate.refusal(vpc.ATTACHMENT, name="a", **subnetworks) == (
        f"Making: googleapi: Error 400: {said}"
    )
    cloud, kind = estate.kind(vpc.ATTACHMENT)
    id_ = f"{REGION}/networkAttachments/a"
    olds = {"region": "us-west1"}
    assert kind.remake(cloud, PROJECT, id_, {"subnetworks": ["s"]}, olds) == olds
    assert told(lambda: kind.remake(cloud, PROJECT, id_, subnetworks, olds)) == (
        f"Error updating NetworkAttachment '{id_}': googleapi: Error 400: {said}"
    )


def test_one_resource_of_compute_engine_is_made_at_a_time(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go = list[str](), threading.Event()

    def create(_kind: ResourceType, _cloud: Cloud, inputs: dict[str, Any]) -> None:
        entered.append(inputs["name"])
        go.wait(5)
        entered.append(inputs["name"])

    monkeypatch.setattr(ResourceType, "create", create)
    cloud, kind = estate.kind(vpc.ADDRESS)
    makers = [
        threading.Thread(target=kind.create, args=(cloud, {"name": name}), daemon=True)
        for name in "ab"
    ]
    makers[0].start()
    wait_until(lambda: entered)
    makers[1].start()
    makers[1].join(0.05)
    assert entered == ["a"]
    go.set()
    for each in makers:
        each.join(5)
    assert entered == ["a", "a", "b", "b"]
