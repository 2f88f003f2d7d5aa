"""What somebody else makes in the stack's network, read from the local cloud over REST."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
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
from vertex_training_cli.drift.networks import undeclared_parts
from vertex_training_cli.drift.rest import RestClient

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


def test_what_others_have_in_their_networks_is_no_drift(estate: Estate) -> None:
    estate.make("global/firewalls", name="theirs", network=OTHER)
    assert estate.found() == []


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
    assert "list `firewalls/open` with its reason under `drift.allowedResources`" in rule.note
    assert rule.summary == "is in the stack's network, and is not declared"
    assert estate.found("projects/local-p/global/firewalls/open") == []


def test_a_route_like_the_one_to_the_internet_that_leads_elsewhere_is_told(estate: Estate) -> None:
    hop = {"destRange": "0.0.0.0/0", "nextHopIp": "10.0.0.9"}
    estate.make("global/routes", name="default-route-0123", network=PATH, priority=9, **hop)
    [route] = estate.found()
    assert [(f.path, f.cloud) for f in route.fields] == [*hop.items()]


def test_a_subnet_and_a_peering_are_told_unless_a_team_declares_them(estate: Estate) -> None:
    place = {"region": "europe-west4", "ipCidrRange": "10.1.0.0/24"}
    estate.make("regions/europe-west4/subnetworks", name="eu", network=PATH, **place)
    peering = {"networkPeering": {"name": "to-eve", "network": OTHER}}
    estate.make("global/networks/training-dev/addPeering", **peering)
    assert [each.resource for each in estate.found()] == ["peerings/to-eve", "subnetworks/eu"]
    subnet = "projects/local-p/regions/europe-west4/subnetworks/eu"
    assert estate.found(subnet, "training-dev/to-eve") == []


def test_what_may_not_be_read_is_named_with_the_permission_and_the_rest_is_read(
    estate: Estate,
) -> None:
    estate.make("global/routes", name="there", network=PATH, destRange="10.0.0.0/8", priority=9)
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="firewalls", times=0))
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="networks/", times=0))
    found, refused = undeclared_parts(estate.client, NETWORK, {SUBNET})
    assert [each.name for each in found] == ["there"]
    assert refused == [
        f"firewall rules of {PATH}: compute.firewalls.list is missing",
        f"network peerings of {PATH}: compute.networks.get is missing",
    ]
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="subnetworks", times=0))
    estate.faults.add(Fault.parse(service="compute", kind="deny", match="routes", times=0))
    assert undeclared_parts(estate.client, NETWORK, {SUBNET}) == (
        [],
        [
            f"firewall rules of {PATH}: compute.firewalls.list is missing",
            f"subnetworks of {PATH}: compute.subnetworks.list is missing",
            f"routes of {PATH}: compute.routes.list is missing",
            f"network peerings of {PATH}: compute.networks.get is missing",
        ],
    )


def test_an_answer_that_is_no_refusal_ends_the_comparison(estate: Estate) -> None:
    estate.faults.add(Fault.parse(service="compute", kind="error", code="503", times=0))
    with pytest.raises(CommandError, match="cannot be read: 503"):
        undeclared_parts(estate.client, NETWORK, {SUBNET})


def test_a_list_is_read_to_its_last_page() -> None:
    class Session:
        """Two pages, the second by the token of the first."""

        asked: list[str]

        def request(self, _method: str, url: str, **_more: Any) -> requests.Response:
            answer = requests.Response()
            answer.status_code = 200
            first = b'{"items": [{"name": "a"}], "nextPageToken": "t/2"}'
            answer._content = b'{"items": [{"name": "b"}]}' if "pageToken=t%2F2" in url else first
            return answer

    client = RestClient(Session())
    found = client.items("https://compute.googleapis.com/x", "x", "firewalls")
    assert [each["name"] for each in found] == ["a", "b"]


@pytest.mark.parametrize(
    "next_token",
    [lambda _: "t", lambda count: "ab"[count % 2], str],
    ids=["one", "two", "new ones"],
)
def test_a_list_without_an_end_is_given_up(next_token: Callable[[int], str]) -> None:
    class Session:
        """Empty pages, each with a token for another one."""

        pages = 0

        def request(self, _method: str, url: str, **_more: Any) -> requests.Response:
            self.pages += 1
            assert self.pages < 20_000, "it is asked for ever"
            answer = requests.Response()
            answer.status_code = 200
            answer._content = json.dumps({"nextPageToken": next_token(self.pages)}).encode()
            return answer

    client = RestClient(Session())
    with pytest.raises(CommandError, match="firewalls cannot be read: its list has no end"):
        list(client.items("https://compute.googleapis.com/x", "firewalls", "firewalls"))


@pytest.mark.parametrize("content", [b"<html>sign in</html>", b"", b"[]", b"null"])
def test_an_answer_that_is_no_document_cannot_be_read(content: bytes) -> None:
    """What a proxy or a hotel's page answers in the place of Google."""

    class Session:
        def request(self, _method: str, _url: str, **_more: Any) -> requests.Response:
            answer = requests.Response()
            answer.status_code, answer._content = 200, content
            return answer

    with pytest.raises(CommandError, match="firewalls cannot be read: the answer is no document"):
        RestClient(Session()).get("https://compute.googleapis.com/x", "firewalls")


def test_a_list_whose_later_page_is_gone_is_not_taken_for_whole() -> None:
    class Session:
        def request(self, _method: str, url: str, **_more: Any) -> requests.Response:
            answer = requests.Response()
            answer.status_code = 404 if "pageToken" in url else 200
            answer._content = json.dumps({"items": [], "nextPageToken": "t"}).encode()
            return answer

    with pytest.raises(CommandError, match="a page of its list is not there"):
        list(RestClient(Session()).items("https://compute.googleapis.com/x", "firewalls", "x"))
