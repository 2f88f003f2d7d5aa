"""Policies and resources of the inventory as clients beside the plugin read and change them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from localgcp import resources
from localgcp.apis.discovery import DescribedMethod
from localgcp.apis.server import serve
from localgcp.errors import RefusedRequestError
from localgcp.faults.table import FaultTable
from localgcp.inventory import vpc
from localgcp.inventory.store import ACCOUNT, BUCKET, SERVICE, Binding, Store, project_number
from localgcp.reads.serving import Reads
from localgcp.resources import FIREWALL, PEERING, ROUTE, RestCall

PROJECT = "local-p"
RULE = f"projects/{PROJECT}/global/firewalls/open"
#: Where Google's services have the policy of each: verb and path to read, verb and path to write.
POLICIES = {
    "b/data": ("GET", "/storage/v1/b/data/iam", "PUT", "/storage/v1/b/data/iam"),
    f"projects/{PROJECT}": (
        *("POST", f"/v3/projects/{PROJECT}:getIamPolicy"),
        *("POST", f"/v3/projects/{PROJECT}:setIamPolicy"),
    ),
    f"projects/{PROJECT}/secrets/s": (
        *("GET", f"/v1/projects/{PROJECT}/secrets/s:getIamPolicy"),
        *("POST", f"/v1/projects/{PROJECT}/secrets/s:setIamPolicy"),
    ),
    f"projects/{PROJECT}/regions/r/subnetworks/n": (
        *("GET", f"/compute/v1/projects/{PROJECT}/regions/r/subnetworks/n/getIamPolicy"),
        *("POST", f"/compute/v1/projects/{PROJECT}/regions/r/subnetworks/n/setIamPolicy"),
    ),
}


class Client:
    """Calls by REST."""

    def __init__(self, port: int, store: Store, faults: FaultTable) -> None:
        self.store, self.faults = store, faults
        self._url, self._session = f"http://127.0.0.1:{port}", requests.Session()
        self._session.trust_env = False

    def call(self, verb: str, path: str, body: Any = None, expect: int = 200) -> Any:
        answer = self._session.request(verb, self._url + path, json=body)
        assert answer.status_code == expect, answer.text
        return answer.json()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    store, faults = Store(tmp_path / "cloud.sqlite"), FaultTable(tmp_path / "faults.sqlite")
    server = serve([], 0, folder=tmp_path, also=Reads(store, faults, threading.Event()).answer)
    yield Client(server.port, store, faults)
    server.stop(None).wait()


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_read_and_written_where_its_service_has_it(client: Client, name: str) -> None:
    read, from_, write, to = POLICIES[name]
    condition = {"title": "t", "expression": "request.time < x"}
    policy = client.call(read, from_)
    assert (policy["version"], policy["bindings"]) == (1, [])
    bindings = [
        {"role": "roles/x", "members": ["user:a"]},
        {"role": "roles/x", "members": ["user:b", "user:a"]},
        {"role": "roles/x", "members": ["user:c"], "condition": condition},
    ]
    policy["bindings"] = bindings
    client.call(write, to, policy if write == "PUT" else {"policy": policy})
    assert client.store.policy(name).bindings == (
        Binding("roles/x", ("user:a", "user:b")),
        Binding("roles/x", ("user:c",), condition),
    )
    assert client.call(read, from_)["version"] == 3
    # What somebody else wrote in between is not overwritten.
    client.call(write, to, policy if write == "PUT" else {"policy": policy}, expect=409)


def test_a_firewall_rule_is_made_read_changed_and_deleted_with_the_apis_fields(
    client: Client,
) -> None:
    collection = f"/compute/v1/projects/{PROJECT}/global/firewalls"
    allowed = [{"IPProtocol": "tcp", "ports": ["22"]}]
    rule = {"name": "open", "network": "n", "allowed": allowed}
    client.call("POST", collection, rule)
    client.call("POST", collection, rule, expect=409)
    found = client.store.get(FIREWALL, RULE)
    assert found is not None
    assert found.outputs["allows"] == [{"protocol": "tcp", "ports": ["22"]}]
    client.call("PATCH", f"{collection}/open", {"disabled": True})
    read = client.call("GET", f"{collection}/open")
    assert (read["allowed"], read["disabled"]) == (allowed, True)
    [listed] = client.call("GET", collection)["items"]
    assert listed == read
    client.call("DELETE", f"{collection}/open")
    client.call("GET", f"{collection}/open", expect=404)


def test_settings_of_a_bucket_are_changed_by_the_names_of_the_api(client: Client) -> None:
    client.store.put(BUCKET, "data", PROJECT, {}, {"publicAccessPrevention": "enforced"})
    access = {"publicAccessPrevention": "inherited", "uniformBucketLevelAccess": {"enabled": False}}
    body = {"iamConfiguration": access, "labels": {"a": "b"}}
    client.call("PATCH", "/storage/v1/b/data", body)
    outputs = client.store.bucket("data")
    assert outputs is not None
    assert outputs["publicAccessPrevention"] == "inherited"
    assert outputs["uniformBucketLevelAccess"] is False
    assert outputs["labels"] == outputs["effectiveLabels"] == {"a": "b"}


@pytest.mark.parametrize("path", ["/v1/nothing", f"/compute/v1/{RULE}", "/storage/v1/b/gone"])
def test_what_is_not_there_is_404(client: Client, path: str) -> None:
    for verb in ("GET", "PATCH", "DELETE"):
        client.call(verb, path, {}, expect=404)


def test_the_default_account_of_compute_engine_is_listed_where_its_api_is_on(
    client: Client,
) -> None:
    path = f"/v1/projects/{PROJECT}/serviceAccounts"
    assert client.call("GET", path)["accounts"] == []
    client.call("POST", f"/v1/projects/{PROJECT}/services/compute.googleapis.com:enable", {})
    [default] = client.call("GET", path)["accounts"]
    assert default["displayName"] == "Compute Engine default service account"
    assert default["email"].endswith("-compute@developer.gserviceaccount.com")


def test_a_member_without_a_name_is_refused(client: Client) -> None:
    policy = {"bindings": [{"role": "roles/x", "members": ["serviceAccount:"]}]}
    path = f"/v3/projects/{PROJECT}:setIamPolicy"
    told = client.call("POST", path, {"policy": policy}, expect=400)["error"]
    assert told["status"] == "INVALID_ARGUMENT"
    assert "Invalid member (serviceAccount:)." in told["message"]


def test_a_binding_without_a_role_is_refused(client: Client) -> None:
    path = f"/v3/projects/{PROJECT}:setIamPolicy"
    given = {"policy": {"bindings": [{"members": ["user:a@example.com"]}]}}
    told = client.call("POST", path, given, expect=400)["error"]
    assert "has no role" in told["message"]


LINK = "https://www.googleapis.com/compute/v1/"
HOME = f"projects/{PROJECT}"
NETWORK = f"{HOME}/global/networks/n"
SUBNET = f"{HOME}/regions/r/subnetworks/s"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.sqlite")


def call(
    store: Store, id_: str, at: str, rest: str = "", response: str = "compute.Operation",
    **body: Any,
) -> dict[str, Any]:  # fmt: skip
    """Call a method by its id, as the description of its service has it."""
    method = DescribedMethod(id_, "POST", "", {}, response=response)
    return resources.METHODS[id_](store, RestCall(method, at, rest, body))


def operation(answer: dict[str, Any]) -> dict[str, Any]:
    """An operation without its number, which its name has, too."""
    number = int(answer.pop("id"))
    assert answer.pop("name") == f"operation-{number:08x}"
    return answer


def test_an_operation_of_compute_engine_is_done_and_names_what_it_was_about(store: Store) -> None:
    done = {"kind": "compute#operation", "progress": 100, "status": "DONE"}
    made = call(store, "compute.v1.subnetworks.insert", f"{HOME}/regions/r", "/subnetworks",
                name="s", network="n", ipCidrRange="10.0.0.0/24")  # fmt: skip
    link = f"{LINK}{HOME}/regions/r/subnetworks/s"
    assert operation(made) == done | {"operationType": "insert", "targetLink": link}
    found = store.get(vpc.SUBNETWORK, SUBNET)
    assert found is not None
    assert found.project == PROJECT
    assert found.outputs == found.inputs == {
        "name": "s", "network": "n", "ipCidrRange": "10.0.0.0/24", "project": PROJECT,
        "selfLink": link, "region": "r",
    }  # fmt: skip
    changed = call(store, "compute.v1.subnetworks.patch", SUBNET, purpose="PRIVATE")
    assert operation(changed) == done | {"operationType": "patch", "targetLink": link}
    gone = call(store, "compute.v1.subnetworks.delete", SUBNET)
    assert operation(gone) == done | {"operationType": "delete", "targetLink": link}
    assert store.list() == []


def told(store: Store, id_: str, at: str, rest: str = "", **body: Any) -> tuple[int, str, str]:
    with pytest.raises(RefusedRequestError) as error:
        call(store, id_, at, rest, **body)
    return error.value.status, error.value.name, str(error.value)


def test_a_network_has_its_peerings_and_those_of_services(store: Store) -> None:
    with pytest.raises(RefusedRequestError, match=f"^The resource '{NETWORK}' was not found$"):
        resources.read_network(store, NETWORK)
    store.put(vpc.NETWORK, NETWORK, PROJECT, {}, {"name": "n", "numericId": "7"})
    for name, network, peering in (("a", "n", "service-a"), ("b", "m", "service-b"),
                                   ("c", "n", "")):  # fmt: skip
        outputs = {"network": network, "peering": peering}
        store.put(vpc.CONNECTION, name, PROJECT, {}, outputs)
    answer = call(store, "compute.v1.networks.addPeering", NETWORK, "/addPeering", name="hub")
    assert answer["operationType"] == "addPeering"
    call(store, "compute.v1.networks.addPeering", NETWORK, networkPeering={"name": "spoke"})
    assert resources.read_network(store, NETWORK) == {
        "name": "n", "numericId": "7", "id": "7", "kind": "compute#network",
        "selfLink": LINK + NETWORK,
        "peerings": [{"name": name, "state": "ACTIVE"} for name in ("service-a", "hub", "spoke")],
    }  # fmt: skip
    assert [each.id for each in store.list(PEERING, PROJECT)] == ["n/hub", "n/spoke"]
    call(store, "compute.v1.networks.removePeering", NETWORK, name="hub")
    assert [each.id for each in store.list(PEERING)] == ["n/spoke"]
    status, _, text = told(store, "compute.v1.networks.addPeering", NETWORK)
    assert (status, "Required field 'resource.name' not specified" in text) == (400, True)


def test_routes_are_those_that_were_made_and_those_of_networks(store: Store) -> None:
    """https://docs.cloud.google.com/vpc/docs/routes"""
    store.put(vpc.NETWORK, NETWORK, PROJECT, {}, {"name": "n"})
    store.put(vpc.SUBNETWORK, SUBNET, PROJECT, {}, {"network": "n", "ipCidrRange": "10.1.0.0/16"})
    store.put(vpc.SUBNETWORK, f"{SUBNET}2", PROJECT, {}, {"network": "m", "ipCidrRange": "x"})
    call(store, "compute.v1.routes.insert", HOME, "/global/routes", name="own", network="n",
         destRange="10.9.0.0/16")  # fmt: skip
    own, internet, subnet = resources.list_in_project(store, PROJECT, "routes")
    assert own.pop("id").isdecimal()
    assert own == {
        "name": "own", "network": LINK + NETWORK, "destRange": "10.9.0.0/16", "project": PROJECT,
        "kind": "compute#route", "selfLink": f"{LINK}{HOME}/global/routes/own",
    }  # fmt: skip
    assert store.get(ROUTE, f"{HOME}/global/routes/own") is not None
    for route, begin in ((internet, "default-route-"), (subnet, "default-route-r-")):
        name = route.pop("name")
        assert name.startswith(begin)
        assert len(name) == len(begin) + 16
        assert route.pop("selfLink") == f"{LINK}{HOME}/global/routes/{name}"
    assert internet == {
        "network": LINK + NETWORK, "destRange": "0.0.0.0/0", "priority": 1000,
        "nextHopGateway": f"{LINK}{HOME}/global/gateways/default-internet-gateway",
    }  # fmt: skip
    assert subnet == {
        "network": LINK + NETWORK, "destRange": "10.1.0.0/16", "priority": 0,
        "nextHopNetwork": LINK + NETWORK,
    }  # fmt: skip
    assert resources.list_in_project(store, "local-q", "routes") == []
    assert resources.list_in_project(store, PROJECT, "firewalls") == []


@pytest.mark.parametrize(
    ("outputs", "wanted"),
    [
        ({"name": "r"}, {"name": f"{HOME}/locations/l/repositories/r"}),
        ({"name": "projects/7/x"}, {"name": "projects/7/x"}),
        ({"cleanupPolicies": []}, {"name": f"{HOME}/locations/l/repositories/r"}),
        (
            {"cleanupPolicies": [{"id": "old", "action": "DELETE"}]},
            {"name": f"{HOME}/locations/l/repositories/r",
             "cleanupPolicies": {"old": {"id": "old", "action": "DELETE"}}},
        ),
    ],
)  # fmt: skip
def test_a_repository_is_called_by_its_path(
    store: Store, outputs: dict[str, Any], wanted: dict[str, Any]
) -> None:
    id_ = f"{HOME}/locations/l/repositories/r"
    store.put("gcp:artifactregistry/repository:Repository", id_, PROJECT, {}, outputs)
    assert resources.read_resource(store, id_) == wanted


ACCOUNTS = "iam.v1.projects.serviceAccounts"


def test_accounts_are_made_listed_found_without_their_project_and_deleted(store: Store) -> None:
    email = f"ci@{PROJECT}.iam.gserviceaccount.com"
    given = {"displayName": "CI", "description": "d", "email": "other@x"}
    made = call(store, f"{ACCOUNTS}.create", HOME, response="iam.ServiceAccount",
                accountId="ci", serviceAccount=given)  # fmt: skip
    assert made == {
        "name": f"{HOME}/serviceAccounts/{email}", "projectId": PROJECT, "email": email,
        "project": PROJECT, "accountId": "ci", "displayName": "CI", "description": "d",
    }  # fmt: skip
    assert told(store, f"{ACCOUNTS}.create", HOME, accountId="ci") == (
        409, "ALREADY_EXISTS", f"Service account ci already exists within project {HOME}.",
    )  # fmt: skip
    store.put(SERVICE, f"{PROJECT}/compute.googleapis.com", PROJECT, {}, {})
    call(store, f"{ACCOUNTS}.create", HOME, accountId="a")
    listed = call(store, f"{ACCOUNTS}.list", HOME)["accounts"]
    default = f"{project_number(PROJECT)}-compute@developer.gserviceaccount.com"
    wanted = sorted([default, f"a@{PROJECT}.iam.gserviceaccount.com", email])
    assert [each["email"] for each in listed] == wanted
    assert listed[wanted.index(default)] == {
        "name": f"{HOME}/serviceAccounts/{default}", "projectId": PROJECT, "email": default,
        "displayName": "Compute Engine default service account",
    }  # fmt: skip
    anywhere = f"projects/-/serviceAccounts/{email}"
    assert resources.read_resource(store, anywhere)["oauth2ClientId"] is None
    store.put(ACCOUNT, "own", PROJECT, {}, {"uniqueId": "7", "accountId": "own", "email": "own"})
    assert resources.read_resource(store, "own") == {
        "name": "own", "projectId": PROJECT, "accountId": "own", "email": "own", "uniqueId": "7",
        "oauth2ClientId": "7",
    }  # fmt: skip
    store.delete(ACCOUNT, "own")
    assert call(store, f"{ACCOUNTS}.disable", anywhere) == {}
    [account] = [each for each in store.list(ACCOUNT) if each.outputs["email"] == email]
    assert account.outputs["disabled"] is True
    name = f"{HOME}/serviceAccounts/{email}"
    assert call(store, f"{ACCOUNTS}.delete", name, response="protobuf.Empty") == {}
    assert [each.outputs["accountId"] for each in store.list(ACCOUNT)] == ["a"]


def test_a_policy_that_was_not_read_is_written_over_what_is_there(store: Store) -> None:
    """https://docs.cloud.google.com/iam/docs/reference/rest/v1/Policy: without an etag, blindly."""
    for member in ("user:a", "user:b"):
        written = resources.write_policy(
            store, "b/data", {"bindings": [{"role": "roles/x", "members": [member]}]}
        )
        assert written == resources.read_policy(store, "b/data")
    assert written["version"] == 1
    assert written["bindings"] == [{"role": "roles/x", "members": ["user:b"]}]
    with pytest.raises(RefusedRequestError) as told:
        resources.write_policy(store, "b/data", {"etag": "x", "bindings": []})
    assert (told.value.status, str(told.value)) == (
        409,
        "There were concurrent policy changes. Please retry the whole read-modify-write.",
    )
