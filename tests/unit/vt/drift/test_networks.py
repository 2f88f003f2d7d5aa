"""What somebody else makes in the stack's network, read from the local cloud over REST."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from localgcp.apis.server import serve
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory import vpc
from localgcp.inventory.store import Store
from localgcp.reads.serving import Reads
from vertex_training.errors import CommandError
from vertex_training_cli.drift.findings import DeclaredNetwork, ResourceDifference
from vertex_training_cli.drift.undeclared import undeclared_parts
from vertex_training_cli.rest import RestClient

PATH = "projects/local-p/global/networks/training-dev"
OTHER = "projects/local-p/global/networks/default"
SUBNET = "projects/local-p/regions/us-central1/subnetworks/training-dev"
NETWORK = DeclaredNetwork(PATH, ("servicenetworking-googleapis-com",))
URL = "/compute/v1/projects/local-p/"


@dataclass
class Estate:
    """A project with two networks: the stack's, with a subnet and a peering, and another one."""

    client: RestClient
    faults: FaultTable
    address: str

    def make(self, path: str, **body: Any) -> None:
        with requests.Session() as session:
            session.trust_env = False
            assert session.post(f"http://{self.address}{URL}{path}", json=body).ok

    def found(self, *ids: str) -> list[ResourceDifference]:
        return undeclared_parts(self.client, NETWORK, {SUBNET, *ids})[0]


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    store, faults = Store(tmp_path / "cloud.sqlite"), FaultTable(tmp_path / "faults.sqlite")
    for path in (PATH, OTHER):
        store.put(vpc.NETWORK, path, "local-p", {}, {"name": path.rpartition("/")[2]})
    link = f"https://www.googleapis.com/compute/v1/{SUBNET}"
    subnet = {"name": "training-dev", "network": PATH, "region": "us-central1", "selfLink": link}
    store.put(vpc.SUBNETWORK, SUBNET, "local-p", {}, subnet | {"ipCidrRange": "10.0.0.0/26"})
    peering = {"network": PATH, "peering": "servicenetworking-googleapis-com"}
    store.put(vpc.CONNECTION, "x:servicenetworking.googleapis.com", "local-p", {}, peering)
    server = serve([], 0, folder=tmp_path, also=Reads(store, faults, threading.Event()).answer)
    session = requests.Session()
    session.trust_env = False
    address = f"127.0.0.1:{server.port}"
    yield Estate(RestClient(session, address), faults, address)
    session.close()
    server.stop(None).wait()


def test_what_a_network_comes_with_and_what_the_stack_made_is_no_drift(estate: Estate) -> None:
    assert undeclared_parts(estate.client, NETWORK, {SUBNET}) == ([], [])


def test_a_rule_is_told_with_what_it_lets_in_and_the_way_to_keep_it(estate: Estate) -> None:
    allowed = [{"IPProtocol": "tcp", "ports": ["22", "80"]}]
    estate.make(
        "global/firewalls",
        name="open",
        network=PATH,
        sourceRanges=["0.0.0.0/0"],
        allowed=allowed,
        denied=[{"IPProtocol": "icmp"}, {"IPProtocol": "udp", "ports": ["53"]}],
    )
    [rule] = estate.found()
    assert (rule.name, rule.type, rule.resource) == ("open", "firewall rule", "firewalls/open")
    assert [(f.path, f.cloud) for f in rule.fields] == [
        ("sourceRanges", "0.0.0.0/0"),
        ("allowed", "tcp:22,80"),
        ("denied", "icmp, udp:53"),
    ]
    assert "list `firewalls/open` with a reason under `drift.allowedResources`" in rule.note
    assert rule.summary == "is in the stack's network, but is not declared"
    assert estate.found("projects/local-p/global/firewalls/open") == []


def test_a_route_like_the_one_to_the_internet_that_leads_elsewhere_is_told(estate: Estate) -> None:
    hop = {"destRange": "0.0.0.0/0", "nextHopIp": "10.0.0.9"}
    estate.make("global/routes", name="default-route-0123", network=PATH, priority=9, **hop)
    [route] = estate.found()
    assert [(f.path, f.cloud) for f in route.fields] == [*hop.items()]


def test_what_may_not_be_read_is_named_with_the_permission_and_the_rest_is_read(
    estate: Estate,
) -> None:
    estate.make("global/routes", name="there", network=PATH, destRange="10.0.0.0/8", priority=9)
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="firewalls", times=0))
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="networks/", times=0))
    found, refused = undeclared_parts(estate.client, NETWORK, {SUBNET})
    assert [each.name for each in found] == ["there"]
    assert refused == [
        f"firewall rules of {PATH}, because compute.firewalls.list is missing",
        f"network peerings of {PATH}, because compute.networks.get is missing",
    ]
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="subnetworks", times=0))
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="routes", times=0))
    assert undeclared_parts(estate.client, NETWORK, {SUBNET}) == (
        [],
        [
            f"firewall rules of {PATH}, because compute.firewalls.list is missing",
            f"subnetworks of {PATH}, because compute.subnetworks.list is missing",
            f"routes of {PATH}, because compute.routes.list is missing",
            f"network peerings of {PATH}, because compute.networks.get is missing",
        ],
    )


def test_an_answer_that_is_no_refusal_ends_the_comparison(estate: Estate) -> None:
    estate.faults.add(Fault.parse(service="compute", kind="error", code="503", times=0))
    with pytest.raises(CommandError, match="cannot be read: 503"):
        undeclared_parts(estate.client, NETWORK, {SUBNET})
