"""Methods that change resources: each at Google's path, and what it does to the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.inventory import vpc
from localgcp.inventory.reservations import RESERVATION
from localgcp.inventory.store import ACCOUNT
from tests.unit.localcloud.rest_cloud import PROJECT, RestCloud, cloud

__all__ = ["cloud"]

HOME = f"projects/{PROJECT}"
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


@pytest.mark.parametrize(
    ("place", "verb", "given", "stored"),
    [
        ("firewalls", "PATCH", {"denied": [{"IPProtocol": "udp", "ports": ["53"]}]},
         {"denies": [{"protocol": "udp", "ports": ["53"]}]}),
        ("attachments", "PATCH", {"description": "d"}, {"description": "d"}),
        ("reservations", "PATCH", {"description": "d"}, {"description": "d"}),
        ("routers", "PATCH", {"bgp": {"asn": 64512}}, {"bgp": {"asn": 64512}}),
        ("subnetworks", "PATCH", {"privateIpGoogleAccess": True}, {"privateIpGoogleAccess": True}),
        ("repositories", "PATCH", {"labels": {"a": "b"}},
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
