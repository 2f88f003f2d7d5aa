"""The network of a stack: what has addresses in it, and each answer word for word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.infra.stacks import HOST, HOST_NETWORK, HOST_SUBNET, PEERING, PSC, planned
from tests.unit.vt.preflight.documents import COMPUTE, FORBIDDEN, PROJECT, context
from vertex_training_cli.preflight import networks
from vertex_training_cli.preflight.address_ranges import (
    Block,
    HeldBlock,
    WantedBlock,
    held_blocks,
    in_the_way,
    wanted_blocks,
)
from vertex_training_cli.preflight.answers import Answer, question

ID = f"projects/{PROJECT}/global/networks/training-prod"
LINK = f"https://www.googleapis.com/compute/v1/{ID}"


def held(*lists: list[dict[str, Any]]) -> list[HeldBlock]:
    return list(held_blocks(ID, *lists))


def test_what_has_addresses_is_told_by_kind_and_place() -> None:
    region = "https://www.googleapis.com/compute/v1/projects/p/regions/us-east4"
    subnets = [
        {"network": LINK, "name": "a", "region": region, "ipCidrRange": "10.0.0.0/24",
         "secondaryIpRanges": [{"ipCidrRange": "10.1.0.0/16"}, {"ipCidrRange": "fd20::/64"}, {}]},
        {"network": f"{LINK}-2", "name": "b", "region": region, "ipCidrRange": "10.2.0.0/24"},
        {"name": "c", "region": region, "ipCidrRange": "10.2.0.0/24"},
    ]  # fmt: skip
    addresses = [
        {"network": LINK, "name": "r", "purpose": "VPC_PEERING", "address": "10.3.0.0",
         "prefixLength": 16},
        {"network": LINK, "name": "s", "purpose": "PRIVATE_SERVICE_CONNECT", "address": "10.4.0.0",
         "prefixLength": 16},
    ]  # fmt: skip
    routes = [
        {"network": LINK, "name": "p", "destRange": "10.5.0.0/16", "nextHopPeering": "google"},
        {"network": LINK, "name": "n", "destRange": "10.0.0.0/24", "nextHopNetwork": LINK},
        {"network": LINK, "name": "v", "destRange": "10.6.0.9/16", "nextHopIp": "10.0.0.2"},
    ]
    assert held(subnets, addresses, routes) == [
        HeldBlock(Block("10.0.0.0/24"), "subnet a in us-east4 (10.0.0.0/24)", "us-east4/a"),
        HeldBlock(Block("10.1.0.0/16"), "subnet a in us-east4 (10.1.0.0/16)", "us-east4/a"),
        HeldBlock(Block("10.3.0.0/16"), "range r (10.3.0.0/16)", "global/r"),
        HeldBlock(Block("10.5.0.0/16"), "peering google (10.5.0.0/16)", "p"),
        HeldBlock(Block("10.6.0.0/16"), "route v (10.6.0.0/16)", "v", only_within=True),
    ]


def test_what_a_stack_wants_is_what_it_makes_at_addresses_of_its_choice() -> None:
    ranges = {
        "workers": {"address": "10.30.0.0", "prefixLength": 16},
        "anywhere": {"prefixLength": 16},
    }
    peering = {"mode": "peering", "subnet": {"range": "10.20.0.0/26"}, "ranges": ranges}
    assert list(wanted_blocks(planned(network=peering))) == [
        WantedBlock(Block("10.20.0.0/26"), "subnet training-prod", "us-central1/training-prod"),
        WantedBlock(Block("10.30.0.0/16"), "range training-workers-prod",
                    "global/training-workers-prod"),
    ]  # fmt: skip
    assert list(wanted_blocks(planned())) == []
    existing = {"mode": "psc", "existing": HOST_NETWORK, "subnet": {"existing": HOST_SUBNET}}
    assert list(wanted_blocks(planned(network=existing, sharedVpc=HOST))) == []


WANTED = WantedBlock(Block("10.20.0.0/24"), "subnet a", "us-central1/a")


def test_nothing_is_in_the_way_of_what_is_there_already() -> None:
    there = HeldBlock(WANTED.block, "subnet a", WANTED.name)
    other = HeldBlock(Block("10.0.0.0/8"), "w", "us-central1/b")
    assert in_the_way(WANTED, [other, there]) == []


def asked(documents: dict[str, Any], **sections: Any) -> list[Answer]:
    return list(networks.ask(context(documents, **sections)))


def lists(
    subnets: Any = None, addresses: Any = None, routes: Any = None, project: str = PROJECT
) -> dict[str, Any]:
    base = f"{COMPUTE}projects/{project}"
    by_place = {"regions/us-central1": {"subnetworks": subnets or []}, "regions/other": {}}
    return {
        f"{base}/aggregated/subnetworks": {"items": by_place},
        f"{base}/global/addresses": {"items": addresses or []},
        f"{base}/global/routes": {"items": routes or []},
    }


GET_HOST = f"{COMPUTE}projects/{PROJECT}/getXpnHost"


THERE = {"existing": HOST_NETWORK, "mode": "psc", "subnet": {"existing": HOST_SUBNET}}
OF_NETWORK = question(HOST_NETWORK, "whether the network is there")
OF_SUBNET = question(HOST_SUBNET, "whether the subnet is there, and its addresses")


def existing(subnets: Any, **more: Any) -> list[Answer]:
    documents = {
        GET_HOST: {"name": "acme-net-prod"},
        COMPUTE + HOST_NETWORK: {"name": "production"},
        **lists(subnets, project="acme-net-prod"),
    }
    return asked(documents, network=THERE, sharedVpc=HOST, **more)[1:]


def subnet(block: str, network: str = HOST_NETWORK) -> dict[str, str]:
    link = "https://www.googleapis.com/compute/v1/"
    return {"selfLink": link + HOST_SUBNET, "name": "training", "network": link + network,
            "region": "us-central1", "ipCidrRange": block}  # fmt: skip


#: One of the same name in another region.
ELSEWHERE = subnet("10.9.0.0/24") | {"selfLink": f"x/{HOST_SUBNET}".replace("central1", "east4")}


@pytest.mark.parametrize(
    ("subnets", "answer"),
    [
        (
            [ELSEWHERE],
            OF_SUBNET.refused(
                "not there",
                "the attachment is refused",
                "network.subnet.existing: one that is there",
            ),
        ),
        # Google keeps four addresses of each.
        ([ELSEWHERE, subnet("10.0.0.0/29")], OF_SUBNET.ok(
            "10.0.0.0/29: 4 addresses, and jobs take 0 at once")),
        (
            [subnet("10.0.0.0/24", "projects/acme-net-prod/global/networks/other")],
            OF_SUBNET.refused(
                "in other",
                "the attachment is in another network than the stack's",
                "network.existing: projects/acme-net-prod/global/networks/other",
            ),
        ),
    ],
)  # fmt: skip
def test_a_subnet_that_is_used_is_there_and_in_the_network(subnets: Any, answer: Answer) -> None:
    assert existing(subnets) == [OF_NETWORK.ok("there"), answer]


def request(*replicas: Any, parallel: int | None = None, network: bool = True) -> Any:
    pools = [{"replicaCount": each} if each else None for each in replicas]
    spec = {"workerPoolSpecs": [*pools, {"machineSpec": {}}]} | (
        {"pscInterfaceConfig": {}} if not network else {}
    )
    spec |= {"pscInterfaceConfig": {"networkAttachment": "a"}} if network else {}
    message = {} if parallel is None else {"parallelTrialCount": parallel}
    return SimpleNamespace(trial={"jobSpec": spec}, message=message)


def test_more_machines_than_addresses_are_a_warning() -> None:
    for replicas, fits in ((3, True), (4, False)):
        [_, answer] = existing([subnet("10.0.0.0/29")], requests={"a": request(replicas)})
        warning = OF_SUBNET.warning(
            "10.0.0.0/29: 4 addresses",
            "5 machines of jobs at once: some find no address",
            "a larger subnet",
        )
        assert answer == (
            OF_SUBNET.ok("10.0.0.0/29: 4 addresses, and jobs take 4 at once") if fits else warning
        )


def test_a_subnet_of_another_network_is_refused_whatever_its_size() -> None:
    elsewhere = subnet("10.0.0.0/29", "projects/acme-net-prod/global/networks/other")
    [_, answer] = existing([elsewhere], requests={"a": request(9)})
    assert answer == OF_SUBNET.refused(
        "in other",
        "the attachment is in another network than the stack's",
        "network.existing: projects/acme-net-prod/global/networks/other",
    )


CONNECTIONS = (
    "https://servicenetworking.googleapis.com/v1/services/servicenetworking.googleapis.com/"
    "connections?network=projects%2F109876543210%2Fglobal%2Fnetworks%2F"
)
OWN = f"projects/{PROJECT}/global/networks/own"
OF_CONNECTION = question(ID, "its connection with servicenetworking.googleapis.com")
OF_OWN = question(OWN, "its connection with servicenetworking.googleapis.com")
TWO = {
    "mode": "peering",
    "existing": OWN,
    "ranges": {"workers": {"prefixLength": 16}, "there": {"existing": "old"}},
}


def update(*ranges: str) -> str:
    return (
        "gcloud services vpc-peerings update --service=servicenetworking.googleapis.com "
        f"--network=own --project={PROJECT} --ranges={','.join(ranges)}"
    )


@pytest.mark.parametrize(
    ("network", "connections", "peerings", "answer"),
    [
        (PEERING, [], [], OF_CONNECTION.ok("none yet: the stack makes it")),
        (PEERING, [{"reservedPeeringRanges": ["training-workers-prod", "x"]}], [],
         OF_CONNECTION.ok("ranges: training-workers-prod, x")),
        (PEERING, [{"reservedPeeringRanges": ["x"]}], [], OF_CONNECTION.refused(
            "ranges: x",
            "the connection is refused: Cannot modify allocated ranges in CreateConnection",
            "name its ranges: network.ranges.KEY.existing")),
        (TWO, [{"reservedPeeringRanges": ["x"]}], [], OF_OWN.refused(
            "ranges: x", "jobs are refused: old is not a range of it",
            update("x", "training-workers-prod", "old"))),
        (TWO, [{"reservedPeeringRanges": ["old"], "peering": "g"}],
         [{"name": "g", "state": "INACTIVE"}], OF_OWN.refused(
            "peering g is INACTIVE", "jobs reach nothing in the network",
            update("old", "training-workers-prod", "old"))),
        (PEERING, FORBIDDEN, [], OF_CONNECTION.unknown(
            f"{ID} cannot be read: 403 Forbidden", "servicenetworking.services.get")),
    ],
)  # fmt: skip
def test_a_network_has_one_connection_with_the_ranges_of_the_stack(
    network: Any, connections: Any, peerings: Any, answer: Answer
) -> None:
    found = connections if connections == FORBIDDEN else {"connections": connections}
    there = {"name": "n", "peerings": peerings}
    documents = {COMPUTE + ID: there, COMPUTE + OWN: there}
    documents |= {f"{CONNECTIONS}training-prod": found, f"{CONNECTIONS}own": found}
    assert asked(documents | lists(), network=network)[-1] == answer


ATTACHMENT = "projects/acme-net-prod/regions/us-central1/networkAttachments/psc"


@pytest.mark.parametrize("found", [None, {"name": "psc"}, FORBIDDEN])
def test_an_attachment_that_is_used_must_be_there(found: Any) -> None:
    of = question(ATTACHMENT, "whether the attachment is there")
    network = {"mode": "psc", "existing": HOST_NETWORK, "attachment": {"existing": ATTACHMENT}}
    documents = {GET_HOST: {"name": "acme-net-prod"}, COMPUTE + ATTACHMENT: found}
    [*_, answer] = asked(documents, network=network, sharedVpc=HOST)
    unread = of.unknown(f"{ATTACHMENT} cannot be read: 403 Forbidden",
                        "compute.networkAttachments.get")  # fmt: skip
    gone = of.refused(
        "not there", "jobs are refused", "network.attachment.existing: one that is there"
    )
    assert answer == (unread if found == FORBIDDEN else of.ok("there") if found else gone)


ZONES = f"https://dns.googleapis.com/dns/v1/projects/{PROJECT}/managedZones"
OF_ZONES = question("names of db.corp.example.", f"private zones of {PROJECT}")


def zone(name: str, network: str = ID) -> dict[str, Any]:
    link = f"https://www.googleapis.com/compute/v1/{network}"
    return {"dnsName": name, "privateVisibilityConfig": {"networks": [{"networkUrl": link}]}}


@pytest.mark.parametrize(
    ("zones", "answer"),
    [
        ([zone("db.corp.example.")], OF_ZONES.ok("db.corp.example.")),
        ([zone(".")], OF_ZONES.ok(".")),
        ([zone("p.example."), zone("b.corp.example."), zone("db.corp.example.", f"{ID}-2"),
          {"dnsName": "db.corp.example."}],
         OF_ZONES.warning(
            "none that training-prod sees", "jobs find no name of db.corp.example.",
            "gcloud dns managed-zones create NAME --visibility=private "
            f"--dns-name=db.corp.example. --networks=training-prod --project={PROJECT} "
            "--description=NAMES")),
        (FORBIDDEN, OF_ZONES.unknown(
            "names of db.corp.example. cannot be read: 403 Forbidden", "dns.managedZones.list")),
    ],
)  # fmt: skip
def test_names_of_a_domain_are_in_a_zone_of_it_above_or_below_that_the_network_sees(
    zones: Any, answer: Answer
) -> None:
    peerings = {"corp": {"domain": "db.corp.example."}, "more": {"domain": "x.example."}}
    found = zones if zones == FORBIDDEN else {"managedZones": zones}
    [first, second] = asked({ZONES: found}, network={**PSC, "dnsPeering": peerings})
    assert first == answer
    assert second.subject == "names of x.example."
