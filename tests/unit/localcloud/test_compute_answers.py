"""Reservations, and what lies in networks, as Compute Engine answers them over REST."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import Store
from localgcp.reads.serving import Reads

PROJECT = "local-p1"
COMPUTE = f"/compute/v1/projects/{PROJECT}"
LINK = "https://www.googleapis.com"
PATH = f"projects/{PROJECT}/zones/us-west1-a/reservations/r"
FIREWALL = "gcp:compute/firewall:Firewall"


class Cloud:
    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "cloud.sqlite")
        self.faults = FaultTable(folder / "faults.sqlite")
        self._reads = Reads(self.store, self.faults, threading.Event())

    def get(self, target: str) -> Any:
        return json.loads(self._reads.answer("GET", target, b"") or b"null")

    def refusal(self, target: str) -> tuple[int, str]:
        with pytest.raises(RefusedRequestError) as told:
            self._reads.answer("GET", target, b"")
        return told.value.status, str(told.value)

    def put(self, type_: str, id_: str, /, **outputs: Any) -> None:
        self.store.put(type_, id_, PROJECT, {}, outputs)

    def deny(self, method: str) -> None:
        self.faults.add(Fault.parse(service="compute", kind="deny", method=method, times=0))


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


MACHINES = {"count": 4, "inUseCount": "1", "instanceProperties": {"machineType": "a2-highgpu-1g"}}


@pytest.mark.parametrize(
    ("stored", "shared"),
    [
        ({}, {"shareType": "LOCAL"}),
        ({"shareSettings": {"shareType": "ORGANIZATION"}}, {"shareType": "ORGANIZATION"}),
        ({"shareSettings": {"shareType": "SPECIFIC_PROJECTS",
                            "projectMaps": [{"id": "a", "projectId": "a"}]}},
         {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"a": {"projectId": "a"}}}),
    ],
)  # fmt: skip
def test_a_reservation_has_its_machines_and_those_it_is_shared_with(
    cloud: Cloud, stored: Any, shared: Any
) -> None:
    given = {"name": "r", "zone": "us-west1-a", "specificReservation": MACHINES, **stored}
    cloud.put(RESERVATION, PATH, **given)
    found = cloud.get(f"/compute/v1/{PATH}")
    wanted = {"name": "r", "status": "READY", "shareSettings": shared,
              "specificReservation": MACHINES | {"count": "4"}}  # fmt: skip
    assert {key: found[key] for key in wanted} == wanted
    assert "specificReservationRequired" not in found
    more = {"specificReservationRequired": True, "deleteAtTime": "2999-01-01T00:00:00Z",
            "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"}}  # fmt: skip
    cloud.put(RESERVATION, PATH, **given, **more)
    found = cloud.get(f"/compute/v1/{PATH}")
    assert {key: found[key] for key in more} == more


def test_a_reservation_that_is_denied_or_over_is_not_found(cloud: Cloud) -> None:
    missing = (404, f"The resource '{PATH}' was not found")
    assert cloud.refusal(f"/compute/v1/{PATH}") == missing
    given = {"name": "r", "zone": "us-west1-a", "specificReservation": MACHINES}
    cloud.put(RESERVATION, PATH, **given, deleteAtTime="2020-01-01T00:00:00Z")
    assert cloud.refusal(f"/compute/v1/{PATH}") == missing
    cloud.put(RESERVATION, PATH, **given)
    assert cloud.get(f"/compute/v1/{PATH}")["name"] == "r"
    cloud.deny("reservations.get")
    assert cloud.refusal(f"/compute/v1/{PATH}") == missing


def test_what_lies_in_networks_is_listed_by_kind_and_by_region(cloud: Cloud) -> None:
    assert cloud.get(f"{COMPUTE}/global/firewalls") == {
        "kind": "compute#firewallList", "selfLink": f"{LINK}{COMPUTE}/global/firewalls",
        "items": [],
    }  # fmt: skip
    cloud.put(FIREWALL, f"projects/{PROJECT}/global/firewalls/f", name="f")
    cloud.store.put(FIREWALL, "projects/local-p2/global/firewalls/g", "local-p2", {}, {"name": "g"})
    [rule] = cloud.get(f"{COMPUTE}/global/firewalls")["items"]
    assert rule["name"] == "f"
    for name, region in (("a", "us-west1"), ("b", "us-west1"), ("c", "us-east1")):
        path = f"projects/{PROJECT}/regions/{region}/subnetworks/{name}"
        cloud.put(vpc.SUBNETWORK, path, name=name, region=region, network="n",
                  ipCidrRange="10.0.0.0/24")  # fmt: skip
    found = cloud.get(f"{COMPUTE}/aggregated/subnetworks")
    names = {
        region: {kind: [each["name"] for each in rows] for kind, rows in lists.items()}
        for region, lists in found.pop("items").items()
    }
    assert names == {
        "regions/us-west1": {"subnetworks": ["a", "b"]}, "regions/us-east1": {"subnetworks": ["c"]},
    }  # fmt: skip
    assert found == {
        "kind": "compute#subnetworkAggregatedList",
        "selfLink": f"{LINK}{COMPUTE}/aggregated/subnetworks",
    }
    assert cloud.get(f"{COMPUTE}/global/routes")["kind"] == "compute#routeList"


@pytest.mark.parametrize(
    ("method", "path", "permission", "on"),
    [
        ("firewalls.list", "global/firewalls", "compute.firewalls.list", f"projects/{PROJECT}"),
        ("routes.list", "global/routes", "compute.routes.list", f"projects/{PROJECT}"),
        ("subnetworks.aggregatedList", "aggregated/subnetworks", "compute.subnetworks.list",
         f"projects/{PROJECT}"),
        ("globalAddresses.list", "global/addresses", "compute.globalAddresses.list",
         f"{COMPUTE}/global/addresses"),
        ("networks.get", "global/networks/n", "compute.networks.get",
         f"{COMPUTE}/global/networks/n"),
        ("networkAttachments.get", "regions/r/networkAttachments/a",
         "compute.networkAttachments.get", f"{COMPUTE}/regions/r/networkAttachments/a"),
        ("projects.getXpnHost", "getXpnHost", "compute.projects.get", f"{COMPUTE}/getXpnHost"),
        ("projects.get", "", "compute.projects.get", COMPUTE),
        ("regions.get", "regions/r", "compute.regions.get", f"{COMPUTE}/regions/r"),
    ],
)  # fmt: skip
def test_a_fault_denies_a_method_by_its_permission(
    cloud: Cloud, method: str, path: str, permission: str, on: str
) -> None:
    cloud.deny(method)
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    assert cloud.refusal(f"{COMPUTE}/{path}".rstrip("/")) == (403, text)


def test_global_addresses_are_listed(cloud: Cloud) -> None:
    cloud.put(vpc.ADDRESS, f"projects/{PROJECT}/global/addresses/a", name="a", prefixLength=16)
    found = cloud.get(f"{COMPUTE}/global/addresses")
    assert (found["kind"], [each["name"] for each in found["items"]]) == (
        "compute#addressList", ["a"],
    )  # fmt: skip


def test_an_attachment_is_read_by_its_path(cloud: Cloud) -> None:
    path = f"projects/{PROJECT}/regions/us-west1/networkAttachments/a"
    assert cloud.refusal(f"/compute/v1/{path}")[0] == 404
    cloud.put(vpc.ATTACHMENT, path, name="a", region="us-west1", subnetworks=["s"])
    found = cloud.get(f"/compute/v1/{path}")
    assert (found["name"], found["subnetworks"]) == ("a", ["s"])
