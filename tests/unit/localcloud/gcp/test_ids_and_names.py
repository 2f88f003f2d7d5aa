"""How each type of resource makes names that nobody gave, and ids of what was given as a link."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp.names import Naming, auto_name
from localgcp.inventory import vpc
from localgcp.inventory.store import ACCOUNT, BUCKET, ENDPOINT
from tests.unit.localcloud.gcp.estate import LINK, PROJECT, ROUTER, Estate, told

FIREWALL, NAT = "gcp:compute/firewall:Firewall", "gcp:compute/routerNat:RouterNat"
RESERVATION = "gcp:compute/reservation:Reservation"
INSTANCE = "gcp:compute/instance:Instance"
#: Types whose names are at most so long, and whether they keep upper case.
NAMED = [
    (63, False, (vpc.NETWORK, vpc.SUBNETWORK, FIREWALL, ROUTER, NAT, vpc.ADDRESS, vpc.ATTACHMENT,
                 RESERVATION, INSTANCE, "gcp:iam/denyPolicy:DenyPolicy")),
    (255, True, (BUCKET, "gcp:storage/bucketObject:BucketObject", "gcp:kms/keyRing:KeyRing",
                 "gcp:secretmanager/secret:Secret", "gcp:kms/cryptoKey:CryptoKey",
                 "gcp:logging/metric:Metric")),
    (30, False, (ACCOUNT,)),
    (10, False, (ENDPOINT,)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("longest", "keeps_case", "token"),
    [(longest, keeps, token) for longest, keeps, tokens in NAMED for token in tokens],
)
def test_a_name_that_nobody_gave_is_as_long_as_its_service_takes(
    estate: Estate, longest: int, keeps_case: bool, token: str
) -> None:
    type_ = estate.kind(token)[0].type
    name = "A" * (longest - 8)  # before a hyphen and seven random characters
    made = auto_name(type_, name, Naming(b"seed"))
    assert made is not None
    assert (made[:-8], len(made)) == (name if keeps_case else name.lower(), longest)
    refused = told(lambda: auto_name(type_, f"{name}A", Naming(b"seed")))
    assert str(refused).endswith(f"random chars is longer than maximum length {longest}")


@pytest.mark.parametrize(
    ("token", "inputs", "id_"),
    [
        (vpc.SUBNETWORK, {"name": "x", "region": f"{LINK}projects/p/regions/eu"},
         "regions/eu/subnetworks/x"),
        (RESERVATION, {"name": "x", "zone": f"{LINK}projects/p/zones/eu-a"},
         "zones/eu-a/reservations/x"),
        (INSTANCE, {"name": "x", "zone": f"{LINK}projects/p/zones/eu-a"}, "zones/eu-a/instances/x"),
        (FIREWALL, {"name": "a/x"}, "global/firewalls/a/x"),
    ],
)  # fmt: skip
def test_an_id_has_the_short_names_of_links(
    estate: Estate, token: str, inputs: Any, id_: str
) -> None:
    cloud, kind = estate.kind(token)
    assert kind.id(cloud, inputs) == f"projects/{PROJECT}/{id_}"


@pytest.mark.parametrize(
    ("router", "region"), [("r", "eu"), (f"projects/{PROJECT}/regions/eu/routers/r", f"{LINK}eu")]
)
def test_a_nat_is_called_by_its_router(estate: Estate, router: str, region: str) -> None:
    cloud, kind = estate.kind(NAT)
    given = {"name": "n", "router": router, "region": region}
    assert kind.id(cloud, given) == f"{PROJECT}/eu/r/n"


@pytest.mark.parametrize("network", ["vpc", f"{LINK}projects/{PROJECT}/global/networks/vpc"])
def test_routes_of_a_peering_are_called_by_their_network(estate: Estate, network: str) -> None:
    cloud, kind = estate.kind("gcp:compute/networkPeeringRoutesConfig:NetworkPeeringRoutesConfig")
    id_ = f"projects/{PROJECT}/global/networks/vpc/networkPeerings/p"
    assert kind.id(cloud, {"network": network, "peering": "p"}) == id_
