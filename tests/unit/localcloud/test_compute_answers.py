"""Reservations, and what lies in networks, as Compute Engine answers them over REST."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from tests.unit.localcloud.rest_cloud import PROJECT, RestCloud, cloud

__all__ = ["cloud"]

COMPUTE = f"/compute/v1/projects/{PROJECT}"
LINK = "https://www.googleapis.com"
PATH = f"projects/{PROJECT}/zones/us-west1-a/reservations/r"
FIREWALL = "gcp:compute/firewall:Firewall"


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
    cloud: RestCloud, stored: Any, shared: Any
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


def test_what_lies_in_networks_is_listed_by_kind_and_by_region(cloud: RestCloud) -> None:
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
        ("globalAddresses.list", "global/addresses", "compute.globalAddresses.list",
         f"{COMPUTE}/global/addresses"),
        ("projects.getXpnHost", "getXpnHost", "compute.projects.get", f"{COMPUTE}/getXpnHost"),
        ("projects.get", "", "compute.projects.get", COMPUTE),
        ("regions.get", "regions/r", "compute.regions.get", f"{COMPUTE}/regions/r"),
    ],
)  # fmt: skip
def test_a_fault_denies_a_method_by_its_permission(
    cloud: RestCloud, method: str, path: str, permission: str, on: str
) -> None:
    cloud.fault("compute", "deny", method=method)
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    assert cloud.refusal("GET", f"{COMPUTE}/{path}".rstrip("/")) == (403, text)


def test_global_addresses_are_listed(cloud: RestCloud) -> None:
    cloud.put(vpc.ADDRESS, f"projects/{PROJECT}/global/addresses/a", name="a", prefixLength=16)
    found = cloud.get(f"{COMPUTE}/global/addresses")
    assert (found["kind"], [each["name"] for each in found["items"]]) == (
        "compute#addressList", ["a"],
    )  # fmt: skip


def test_an_attachment_is_read_by_its_path(cloud: RestCloud) -> None:
    path = f"projects/{PROJECT}/regions/us-west1/networkAttachments/a"
    assert cloud.refusal("GET", f"/compute/v1/{path}")[0] == 404
    cloud.put(vpc.ATTACHMENT, path, name="a", region="us-west1", subnetworks=["s"])
    found = cloud.get(f"/compute/v1/{path}")
    assert (found["name"], found["subnetworks"]) == ("a", ["s"])
