"""Methods that change resources: each at Google's path, and what it does to the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import ACCOUNT, BUCKET, EMPTY_POLICY, Binding
from tests.unit.localcloud.conftest import set_grant
from tests.unit.localcloud.rest_cloud import PROJECT, RestCloud, cloud

__all__ = ["cloud"]

HOME = f"projects/{PROJECT}"
COMPUTE = f"/compute/v1/{HOME}"
REPOSITORY, SECRET = "gcp:artifactregistry/repository:Repository", "gcp:secretmanager/secret:Secret"
FIREWALL, ROUTE = "gcp:compute/firewall:Firewall", "gcp:compute/route:Route"
ROUTER = "gcp:compute/router:Router"
#: Type, path of its API, and id of one of each.
PLACES = {
    "firewalls": (FIREWALL, "/compute/v1/", f"{HOME}/global/firewalls/x"),
    "networks": (vpc.NETWORK, "/compute/v1/", f"{HOME}/global/networks/x"),
    "attachments": (vpc.ATTACHMENT, "/compute/v1/", f"{HOME}/regions/r/networkAttachments/x"),
    "reservations": (RESERVATION, "/compute/v1/", f"{HOME}/zones/z/reservations/x"),
    "routers": (ROUTER, "/compute/v1/", f"{HOME}/regions/r/routers/x"),
    "routes": (ROUTE, "/compute/v1/", f"{HOME}/global/routes/x"),
    "subnetworks": (vpc.SUBNETWORK, "/compute/v1/", f"{HOME}/regions/r/subnetworks/x"),
    "repositories": (REPOSITORY, "/v1/", f"{HOME}/locations/l/repositories/x"),
    "secrets": (SECRET, "/v1/", f"{HOME}/secrets/x"),
    "accounts": (ACCOUNT, "/v1/", f"{HOME}/serviceAccounts/x@y.iam.gserviceaccount.com"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_resource_is_deleted_at_its_path(cloud: RestCloud, place: str) -> None:
    type_, api, id_ = PLACES[place]
    cloud.put(type_, id_, name="x", email="x@y.iam.gserviceaccount.com")
    set_grant(cloud.store, id_, "roles/viewer", "a@b.iam.gserviceaccount.com")
    held = (
        Binding("roles/browser", ("serviceAccount:x@y.iam.gserviceaccount.com",)),
        Binding("roles/viewer", ("user:a@b.c",)),
    )
    cloud.store.set_policy(HOME, held, expected_etag=EMPTY_POLICY.etag)
    answer = cloud.send("DELETE", api + id_)
    assert (cloud.store.list(), [*cloud.store.policies()]) == ([], [HOME])
    held = cloud.store.roles(HOME, "serviceAccount:x@y.iam.gserviceaccount.com")
    assert held == (set() if place == "accounts" else {"roles/browser"})
    if place in ("secrets", "accounts"):
        assert answer == {}
    elif place == "repositories":
        assert answer == {"name": "operations/noop.DONE_OPERATION", "done": True}
    else:
        assert (answer["operationType"], answer["status"]) == ("delete", "DONE")
        assert answer["targetLink"] == f"https://www.googleapis.com/compute/v1/{id_}"
    assert cloud.refusal("DELETE", api + id_) == (404, f"The resource '{id_}' was not found")


@pytest.mark.parametrize(
    ("place", "verb", "given", "stored"),
    [
        ("firewalls", "PATCH", {"denied": [{"IPProtocol": "udp", "ports": ["53"]}]},
         {"denies": [{"protocol": "udp", "ports": ["53"]}]}),
        ("firewalls", "PATCH", {"allowed": [{"IPProtocol": "icmp"}]},
         {"allows": [{"protocol": "icmp"}]}),
        ("attachments", "PATCH", {"description": "d"}, {"description": "d"}),
        ("reservations", "PATCH", {"description": "d"}, {"description": "d"}),
        ("routers", "PATCH", {"bgp": {"asn": 64512}}, {"bgp": {"asn": 64512}}),
        ("subnetworks", "PATCH", {"privateIpGoogleAccess": True}, {"privateIpGoogleAccess": True}),
        ("repositories", "PATCH", {"labels": {"a": "b"}},
         {"labels": {"a": "b"}, "effectiveLabels": {"a": "b"}}),
        ("secrets", "PATCH", {"labels": {"a": "b"}},
         {"labels": {"a": "b"}, "effectiveLabels": {"a": "b"}}),
    ],
)  # fmt: skip
def test_fields_of_a_resource_are_changed_at_its_path(
    cloud: RestCloud, place: str, verb: str, given: Any, stored: Any
) -> None:
    type_, api, id_ = PLACES[place]
    cloud.put(type_, id_, name="x", kept="k")
    answer = cloud.send(verb, api + id_, **given)
    found = cloud.store.get(type_, id_)
    assert found is not None
    assert (found.project, found.outputs) == (PROJECT, {"name": "x", "kept": "k", **stored})
    if api == "/compute/v1/":
        verb_of = "update" if place == "reservations" else "patch"
        assert (answer["operationType"], answer["status"]) == (verb_of, "DONE")
    else:
        assert answer == {"name": id_, **given}


@pytest.mark.parametrize(
    ("place", "stored", "wanted"),
    [
        ("firewalls", {"denies": [{"protocol": "udp"}], "network": f"{HOME}/global/networks/n"},
         {"denied": [{"IPProtocol": "udp"}],
          "network": f"https://www.googleapis.com/compute/v1/{HOME}/global/networks/n"}),
        ("routers", {"region": "r"},
         {"region": f"https://www.googleapis.com/compute/v1/{HOME}/regions/r"}),
        ("routes", {"priority": 7}, {"priority": 7}),
        ("subnetworks", {"ipCidrRange": "10.0.0.0/24"},
         {"ipCidrRange": "10.0.0.0/24",
          "region": f"https://www.googleapis.com/compute/v1/{HOME}/regions/r"}),
    ],
)  # fmt: skip
def test_a_resource_is_read_at_its_path(
    cloud: RestCloud, place: str, stored: Any, wanted: Any
) -> None:
    type_, api, id_ = PLACES[place]
    cloud.put(type_, id_, name="x", numericId="7", **stored)
    assert cloud.get(api + id_) == {
        "name": "x", "id": "7", "kind": f"compute#{place.removesuffix('s')}",
        "selfLink": f"https://www.googleapis.com/compute/v1/{id_}", **wanted,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "place", "name", "fields"),
    [
        (FIREWALL, "global/firewalls", "f", {"network": "n"}),
        (ROUTE, "global/routes", "t",
         {"network": "n", "destRange": "10.0.0.0/8", "priority": 1000, "tags": ["a"]}),
        (vpc.SUBNETWORK, "regions/r/subnetworks", "s",
         {"network": "n", "ipCidrRange": "10.0.0.0/24"}),
    ],
)  # fmt: skip
def test_a_resource_of_compute_engine_is_made_in_its_collection(
    cloud: RestCloud, type_: str, place: str, name: str, fields: Any
) -> None:
    assert cloud.send("POST", f"{COMPUTE}/{place}", name=name, **fields)["status"] == "DONE"
    [made] = cloud.store.list()
    assert (made.type, made.id) == (type_, f"{HOME}/{place}/{name}")
    link = f"https://www.googleapis.com/compute/v1/{made.id}"
    region = {"region": "r"} if "regions" in place else {}
    values = {"name": name, **fields, **region, "project": PROJECT, "selfLink": link}
    assert (made.inputs, made.outputs) == (values, values)


def test_a_peering_is_added_to_a_network_and_taken_from_it(cloud: RestCloud) -> None:
    at = f"{COMPUTE}/global/networks/n"
    cloud.send("POST", f"{at}/addPeering", name="hub")
    [made] = cloud.store.list()
    network = f"https://www.googleapis.com/compute/v1/{HOME}/global/networks/n"
    values = {"name": "hub", "network": network}
    assert (made.type, made.id) == ("gcp:compute/networkPeering:NetworkPeering", "n/hub")
    assert (made.project, made.inputs, made.outputs) == (PROJECT, values, values)
    cloud.send("POST", f"{at}/removePeering", name="hub")
    assert cloud.store.list() == []


def test_settings_of_a_bucket_are_those_of_the_api(cloud: RestCloud) -> None:
    cloud.put(BUCKET, "data", project=PROJECT, uniformBucketLevelAccess=True)
    answer = cloud.send("PATCH", "/storage/v1/b/data", versioning={"enabled": True})
    assert (answer["versioning"], answer["iamConfiguration"]) == (
        {"enabled": True},
        {"publicAccessPrevention": "inherited", "uniformBucketLevelAccess": {"enabled": True}},
    )


def test_an_account_is_made_and_switched_off_where_iam_has_it(cloud: RestCloud) -> None:
    email = f"ci@{PROJECT}.iam.gserviceaccount.com"
    at = f"/v1/{HOME}/serviceAccounts"
    described = {"displayName": "CI", "description": "builds"}
    made = cloud.send("POST", at, accountId="ci", serviceAccount=described)
    named = {"name": f"{HOME}/serviceAccounts/{email}", "projectId": PROJECT, "email": email}
    assert made == named | described
    assert cloud.send("POST", f"{at}/{email}:disable") == {}
    assert cloud.get(at) == {"accounts": [{**named, **described, "disabled": True}]}
    assert cloud.get(f"{at}/{email}") == {**named, **described, "disabled": True}


def test_apis_are_switched_on_and_off_where_service_usage_has_them(cloud: RestCloud) -> None:
    def on() -> list[str]:
        return [each.id for each in cloud.store.list(project=PROJECT)]

    done = {"name": "operations/noop.DONE_OPERATION", "done": True}
    at = f"/v1/{HOME}/services"
    assert cloud.send("POST", f"{at}/run.googleapis.com:enable") == done
    assert cloud.send("POST", f"{at}:batchEnable", serviceIds=["a.x", "b.x"]) == done
    assert on() == [f"{PROJECT}/{name}" for name in ("a.x", "b.x", "run.googleapis.com")]
    assert cloud.send("POST", f"{at}/a.x:disable") == done
    assert on() == [f"{PROJECT}/{name}" for name in ("b.x", "run.googleapis.com")]
