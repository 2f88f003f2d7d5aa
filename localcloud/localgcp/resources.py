"""Resources of the inventory by the REST methods of their services: read, made, changed, deleted.

The gcp plugin is one client of the cloud; these are the doors of others. Paths, fields and answers
are those of Google's references. A change is made to what the inventory has and checked no further:
who changes things by hand has the console, and what it refuses is not drift. Operations are done
when they are answered.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/iam/docs/reference/rest/v1/Policy
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from localgcp.errors import PolicyConflictError, RefusedRequestError
from localgcp.inventory import resource_paths, vpc
from localgcp.inventory.resource_paths import SELF_LINK
from localgcp.inventory.store import (
    ACCOUNT,
    BUCKET,
    SERVICE,
    Binding,
    Store,
    StoredResource,
    project_number,
)

FIREWALL: Final = "gcp:compute/firewall:Firewall"
ROUTE: Final = "gcp:compute/route:Route"
PEERING: Final = "gcp:compute/networkPeering:NetworkPeering"
#: Collection of Compute Engine -> type.
COLLECTIONS: Final = {"firewalls": FIREWALL, "routes": ROUTE, "subnetworks": vpc.SUBNETWORK}
#: What is only listed here.
_LISTED: Final = {**COLLECTIONS, "addresses": vpc.ADDRESS}
#: Fields that the provider calls otherwise than the API.
_RENAMED: Final = {"allowed": "allows", "denied": "denies", "IPProtocol": "protocol"}
_TO_REST: Final = {name: field for field, name in _RENAMED.items()}
_GATEWAY: Final = "global/gateways/default-internet-gateway"
#: Ids of resources are paths of the API.
_TARGETS: Final = re.compile(r"/(?:v1|compute/v1)/(?P<id>projects/[^:]+)")


def read_policy(store: Store, name: str) -> dict[str, Any]:
    """The IAM policy of a resource."""
    found = store.policy(name)
    bindings = [
        {"role": b.role, "members": list(b.members)}
        | ({"condition": b.condition} if b.condition else {})
        for b in found.bindings
    ]
    conditional = any(binding.condition for binding in found.bindings)
    etag = base64.b64encode(found.etag.encode()).decode()  # bytes, as JSON has them
    return {"version": 3 if conditional else 1, "etag": etag, "bindings": bindings}


def write_policy(store: Store, name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Replace an IAM policy; refused if it is not the one that was read (its ``etag``), or if a
    member has no name.

    Bindings of one role and condition are made one, as IAM does.
    """
    merged: dict[str, Binding] = {}
    for given in policy.get("bindings", ()):
        role, condition = str(given["role"]), given.get("condition") or None
        key = json.dumps([role, condition], sort_keys=True)
        before = merged[key].members if key in merged else ()
        for member in given.get("members", ()):
            if member.endswith(":"):
                raise RefusedRequestError(400, f"Invalid member ({member}).")
        members = tuple(dict.fromkeys((*before, *given.get("members", ()))))
        merged[key] = Binding(role, members, condition)
    bindings = tuple(merged.values())
    given = str(policy.get("etag") or "")
    try:
        etag = base64.b64decode(given).decode() if given else store.policy(name).etag
        store.set_policy(name, bindings, expected_etag=etag)
    except (PolicyConflictError, ValueError):
        text = "There were concurrent policy changes. Please retry the whole read-modify-write."
        raise RefusedRequestError(409, text) from None
    return read_policy(store, name)


def list_in_project(store: Store, project: str, collection: str) -> list[dict[str, Any]]:
    """Firewall rules, subnetworks, addresses, or routes with those that networks come with.

    https://docs.cloud.google.com/vpc/docs/routes: to the internet, and one for each subnet.
    """
    found = [_to_rest(store, each) for each in store.list(_LISTED[collection], project)]
    if collection == "routes":
        found += _routes_of_networks(store, project)
    return found


def read_network(store: Store, path: str) -> dict[str, Any]:
    """A network, with its peerings."""
    found = store.get(vpc.NETWORK, path)
    if found is None:
        raise RefusedRequestError(404, f"The resource '{path}' was not found")
    names = [
        str(each.outputs["peering"])
        for each in vpc.in_network(store, vpc.CONNECTION, path)
        if each.outputs.get("peering")
    ]
    names += [each.outputs["name"] for each in vpc.in_network(store, PEERING, path)]
    peerings = [{"name": name, "state": "ACTIVE"} for name in names]
    return {**_to_rest(store, found), "peerings": peerings}


class Resources:
    """Changes by other clients than the plugin."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, verb: str, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer; None if no method is called so. Raises RefusedRequestError."""
        if verb == "POST":
            return self._enable(path, body) or self._insert(path, body) or self._act(path, body)
        if verb == "GET" and (listed := self._list(path)) is not None:
            return listed
        found = self._find(path)
        if found is None or verb not in ("GET", "PATCH", "DELETE"):
            return None
        if verb == "GET":
            return _to_rest(self._store, found)
        if verb == "DELETE":
            self._store.delete(found.type, found.id)
            return _done(found.id)
        self._change(found, body)
        return _done(found.id)

    def _find(self, path: str) -> StoredResource | None:
        if bucket := re.fullmatch(r"/storage/v1/b/([^/]+)", path):
            return self._store.get(BUCKET, bucket[1])
        target = _TARGETS.fullmatch(path)
        if target is None:
            return None
        project = resource_paths.project_of(target["id"])
        return next((r for r in self._store.list(project=project) if r.id == target["id"]), None)

    def _change(self, found: StoredResource, body: Mapping[str, Any]) -> None:
        fields = _from_rest(dict(body))
        for name, value in (fields.pop("iamConfiguration", None) or {}).items():
            fields[name] = value["enabled"] if isinstance(value, dict) else value
        if "labels" in fields:
            fields["effectiveLabels"] = fields["labels"]
        outputs = {**found.outputs, **fields}
        self._store.put(found.type, found.id, found.project, found.inputs, outputs)

    def _insert(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if accounts := re.fullmatch(r"/v1/projects/([^/]+)/serviceAccounts", path):
            email = f"{body['accountId']}@{accounts[1]}.iam.gserviceaccount.com"
            values = {"email": email, "project": accounts[1], "accountId": body["accountId"]}
            id_ = f"projects/{accounts[1]}/serviceAccounts/{email}"
            self._store.put(ACCOUNT, id_, accounts[1], values, values)
            return {"name": id_, **values}
        form = r"/compute/v1/(projects/([^/]+)/(?:global|regions/[^/]+)/(\w+))"
        found = re.fullmatch(form, path)
        type_ = COLLECTIONS.get(found[3]) if found else None
        if found is None or type_ is None:
            return None
        id_ = f"{found[1]}/{body['name']}"
        values = _from_rest(dict(body)) | {"project": found[2], "selfLink": SELF_LINK + id_}
        if not self._store.insert(type_, id_, found[2], values, values):
            raise RefusedRequestError(409, f"The resource '{id_}' already exists")
        return _done(id_)

    def _list(self, path: str) -> dict[str, Any] | None:
        """Service accounts of a project."""
        found = re.fullmatch(r"/v1/projects/([^/]+)/serviceAccounts", path)
        if found is None:
            return None
        project = found[1]
        emails = [str(each.outputs["email"]) for each in self._store.list(ACCOUNT, project)]
        accounts = [{"email": email} for email in sorted(emails)]
        if self._store.service_enabled(project, "compute.googleapis.com"):
            # https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account
            email = f"{project_number(project)}-compute@developer.gserviceaccount.com"
            name = "Compute Engine default service account"
            accounts.append({"email": email, "displayName": name})
        named = f"projects/{project}/serviceAccounts"
        return {
            "accounts": [
                {"name": f"{named}/{each['email']}", "projectId": project, **each}
                for each in accounts
            ]
        }

    def _enable(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Switch APIs on: one that is named in the path, or those of the body."""
        form = r"/v1/projects/([^/]+)/services(?:/([^/:]+):enable|:batchEnable)"
        if (found := re.fullmatch(form, path)) is None:
            return None
        for name in [found[2]] if found[2] else body.get("serviceIds", ()):
            self._store.put(SERVICE, f"{found[1]}/{name}", found[1], {}, {})
        return {"name": "operations/noop.DONE_OPERATION", "done": True}

    def _act(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if service := re.fullmatch(r"/v1/projects/([^/]+)/services/([^/:]+):disable", path):
            self._store.delete(SERVICE, f"{service[1]}/{service[2]}")
            return {"done": True}
        if path.endswith(":disable") and (account := self._find(path.removesuffix(":disable"))):
            self._change(account, {"disabled": True})
            return {}
        if peered := re.fullmatch(r"/compute/v1/(projects/([^/]+)/.+)/(add|remove)Peering", path):
            name = body.get("name") or body["networkPeering"]["name"]
            id_ = f"{resource_paths.short_name(peered[1])}/{name}"
            if peered[3] == "remove":
                self._store.delete(PEERING, id_)
            else:
                values = {"name": name, "network": SELF_LINK + peered[1]}
                self._store.put(PEERING, id_, peered[2], values, values)
            return _done(peered[1])
        return None


def _routes_of_networks(store: Store, project: str) -> Iterator[dict[str, Any]]:
    for network in store.list(vpc.NETWORK, project):
        link = SELF_LINK + network.id
        gateway = f"{SELF_LINK}projects/{project}/{_GATEWAY}"
        yield _route(project, link, "0.0.0.0/0", {"nextHopGateway": gateway})
        for subnet in vpc.in_network(store, vpc.SUBNETWORK, network.id):
            yield _route(project, link, subnet.outputs["ipCidrRange"], {"nextHopNetwork": link})


def _route(project: str, network: str, target: str, hop: dict[str, str]) -> dict[str, Any]:
    middle = "r-" if "nextHopNetwork" in hop else ""
    name = f"default-route-{middle}{zlib.crc32(f'{network}{target}'.encode()):016x}"
    link = f"{SELF_LINK}projects/{project}/global/routes/{name}"
    base = {"name": name, "network": network, "destRange": target, "selfLink": link}
    return {**base, "priority": 0 if middle else 1000, **hop}


def _to_rest(store: Store, resource: StoredResource) -> dict[str, Any]:
    found: dict[str, Any] = _renamed(resource.outputs, _TO_REST)
    if network := vpc.network_of(store, resource):
        found["network"] = SELF_LINK + network
    return found


def _from_rest(body: dict[str, Any]) -> dict[str, Any]:
    return _renamed(body, _RENAMED)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    return {names.get(key, key): _renamed(each, names) for key, each in value.items()}


def _done(id_: str) -> dict[str, Any]:
    return {"kind": "compute#operation", "status": "DONE", "targetLink": SELF_LINK + id_}
