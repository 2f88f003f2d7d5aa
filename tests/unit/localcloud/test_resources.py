"""Policies and resources of the inventory as clients beside the plugin read and change them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from localgcp.apis.server import serve
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import BUCKET, SERVICE, Binding, Store
from localgcp.reads.serving import Reads
from localgcp.resources import FIREWALL

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


def test_a_policy_that_a_fault_denies_is_neither_read_nor_written(client: Client) -> None:
    client.faults.add(Fault.parse(service="iam", kind="deny", times=0))
    path = f"/v3/projects/{PROJECT}"
    told = client.call("POST", f"{path}:getIamPolicy", {}, expect=403)["error"]["message"]
    assert "Permission 'resourcemanager.projects.getIamPolicy' denied" in told
    client.call("POST", f"{path}:setIamPolicy", {"policy": {"bindings": []}}, expect=403)


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


def test_an_api_is_switched_off_and_an_account_disabled(client: Client) -> None:
    service = f"{PROJECT}/run.googleapis.com"
    client.store.put(SERVICE, service, PROJECT, {}, {})
    client.call("POST", f"/v1/projects/{PROJECT}/services/run.googleapis.com:disable")
    assert client.store.get(SERVICE, service) is None
    accounts = f"/v1/projects/{PROJECT}/serviceAccounts"
    email = client.call("POST", accounts, {"accountId": "ci"})["email"]
    client.call("POST", f"{accounts}/{email}:disable")
    account = client.store.account(email)
    assert account is not None
    assert account["disabled"] is True


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
