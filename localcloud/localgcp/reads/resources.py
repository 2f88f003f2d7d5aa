"""REST methods that read, create, change and delete resources of the inventory, without checks.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/iam/docs/reference/rest/v1/Policy
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from localgcp.errors import InvalidRequestError, PolicyConflictError, RefusedRequestError
from localgcp.inventory import resource_paths, vpc
from localgcp.inventory.resource_paths import SELF_LINK, is_local
from localgcp.inventory.store import (
    ACCOUNT,
    BUCKET,
    SERVICE,
    Binding,
    Store,
    StoredResource,
    project_number,
)
from localgcp.reads.methods import ReadMethod, Request, refused

FIREWALL: Final = "gcp:compute/firewall:Firewall"
ROUTE: Final = "gcp:compute/route:Route"
PEERING: Final = "gcp:compute/networkPeering:NetworkPeering"
#: Collection of Compute Engine -> type token.
COLLECTIONS: Final = {"firewalls": FIREWALL, "routes": ROUTE, "subnetworks": vpc.SUBNETWORK}
#: Field in the API -> the provider's different name.
_RENAMED: Final = {"allowed": "allows", "denied": "denies", "IPProtocol": "protocol"}


def read_policy(store: Store, name: str) -> dict[str, Any]:
    """Return the IAM policy of a resource."""
    stored_policy = store.policy(name)
    bindings = [
        {"role": b.role, "members": list(b.members)}
        | ({"condition": b.condition} if b.condition else {})
        for b in stored_policy.bindings
    ]
    conditional = any(binding.condition for binding in stored_policy.bindings)
    etag = base64.b64encode(stored_policy.etag.encode()).decode()  # bytes, as JSON has them
    return {"version": 3 if conditional else 1, "etag": etag, "bindings": bindings}


def write_policy(store: Store, name: str, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Replace an IAM policy; merge bindings with the same role and condition, as IAM does.

    Raises RefusedRequestError for an outdated ``etag``, an invalid member or a missing role.
    """
    merged: dict[str, Binding] = {}
    for binding in policy.get("bindings", ()):
        role, condition = str(binding.get("role") or ""), binding.get("condition") or None
        if not role:
            raise RefusedRequestError(400, "A binding of the policy has no role.")
        key = json.dumps([role, condition], sort_keys=True)
        before = merged[key].members if key in merged else ()
        for member in binding.get("members", ()):
            if member.endswith(":"):
                raise RefusedRequestError(400, f"Invalid member ({member}).")
        members = tuple(dict.fromkeys((*before, *binding.get("members", ()))))
        merged[key] = Binding(role, members, condition)
    bindings = tuple(merged.values())
    binding = str(policy.get("etag") or "")
    try:
        etag = base64.b64decode(binding).decode() if binding else store.policy(name).etag
        store.set_policy(name, bindings, expected_etag=etag)
    except (PolicyConflictError, ValueError):
        text = "There were concurrent policy changes. Please retry the whole read-modify-write."
        raise RefusedRequestError(409, text) from None
    return read_policy(store, name)


def permissions(request: Request) -> dict[str, Any]:
    """Return the tested permissions on an existing resource, except those that a fault denies."""
    name = request.name
    tested = request.permissions
    if not _exists(request.store, name):
        if (name.startswith("projects/") and name.count("/") > 3) or name.startswith("b/"):
            raise RefusedRequestError(404, f"{name} was not found.")
        return {}
    if name.startswith("b/") and {"storage.buckets.create", "storage.buckets.list"} & {*tested}:
        raise RefusedRequestError(400, "a bucket does not have permissions of projects.")
    granted = [permission for permission in tested if not request.denies(name, permission)]
    return {"permissions": granted} if granted else {}


def _exists(store: Store, name: str) -> bool:
    if name.startswith("b/"):
        return store.bucket(name.removeprefix("b/")) is not None
    if "/serviceAccounts/" in name:
        return store.account(name.rpartition("/")[2]) is not None
    project = name.split("/")[1]
    if name == f"projects/{project}":
        return is_local(project) or project in store.projects()
    return any(resource.id == name for resource in store.list(project=project))


def policy(request: Request) -> dict[str, Any]:
    """Return the IAM policy of a resource, after writing the request's policy if it has one."""
    name, body = request.name, request.body
    is_write = "bindings" in body or "policy" in body
    if request.denied:
        raise refused(f"resourcemanager.projects.{'set' if is_write else 'get'}IamPolicy", name)
    if is_write:
        return write_policy(request.store, name, body.get("policy", body))
    return read_policy(request.store, name)


def list_in_project(store: Store, project: str, collection: str) -> list[dict[str, Any]]:
    """Return a project's firewall rules, subnetworks, addresses or routes with default routes.

    Default routes lead to the internet and to each subnet
    (https://docs.cloud.google.com/vpc/docs/routes).
    """
    type_ = vpc.ADDRESS if collection == "addresses" else COLLECTIONS[collection]
    documents = [_to_rest(store, resource) for resource in store.list(type_, project)]
    for network in store.list(vpc.NETWORK, project) if collection == "routes" else ():
        link = SELF_LINK + network.id
        gateway = f"{SELF_LINK}projects/{project}/global/gateways/default-internet-gateway"
        documents.append(_route(project, link, "0.0.0.0/0", {"nextHopGateway": gateway}))
        for subnet in vpc.in_network(store, vpc.SUBNETWORK, network.id):
            target = subnet.outputs["ipCidrRange"]
            documents.append(_route(project, link, target, {"nextHopNetwork": link}))
    return documents


def read_resource(store: Store, name: str) -> dict[str, Any]:
    """Return a resource in the API's form. Raises RefusedRequestError (404)."""
    return _to_rest(store, _find(store, name))


def get(request: Request) -> dict[str, Any]:
    """Return a resource."""
    return read_resource(request.store, request.name)


def change(request: Request) -> dict[str, Any]:
    """Change fields of a resource."""
    resource = _find(request.store, request.name)
    _change(request.store, resource, request.body)
    return _done(request) if _is_compute(request) else get(request)


def delete(request: Request) -> dict[str, Any]:
    """Delete a resource with its IAM policy, and the grants of a service account."""
    resource = _find(request.store, request.name)
    request.store.delete(resource.type, resource.id)
    request.store.delete_policy(resource.id)
    if resource.type == ACCOUNT:
        request.store.delete_member(f"serviceAccount:{resource.outputs.get('email')}")
    return _done(request)


def insert(request: Request) -> dict[str, Any]:
    """Create a resource of Compute Engine."""
    collection, project = request.rest.rpartition("/")[2], request.project
    id_ = f"{request.name}{request.rest}/{request.body['name']}"
    values = _renamed(dict(request.body), _RENAMED) | {
        "project": project,
        "selfLink": SELF_LINK + id_,
    }
    if "/regions/" in id_:
        values["region"] = request.name.rpartition("/")[2]
    if not request.store.insert(COLLECTIONS[collection], id_, project, values, values):
        text = f"The resource '{id_}' already exists"
        raise RefusedRequestError(409, text, "ALREADY_EXISTS")
    return _done(request, id_)


def add_peering(request: Request) -> dict[str, Any]:
    """Add a peering to a network."""
    name = request.body.get("name") or request.body.get("networkPeering", {}).get("name")
    if not name:
        text = "Required field 'resource.name' not specified"
        raise InvalidRequestError([("resource.name", text)])
    values = {"name": name, "network": SELF_LINK + request.name}
    request.store.put(PEERING, _peering(request, name), request.project, values, values)
    return _done(request)


def remove_peering(request: Request) -> dict[str, Any]:
    """Remove a peering from a network."""
    request.store.delete(PEERING, _peering(request, request.body.get("name", "")))
    return _done(request)


def _peering(request: Request, name: str) -> str:
    return f"{resource_paths.short_name(request.name)}/{name}"


def create_account(request: Request) -> dict[str, Any]:
    """Create a service account."""
    project, id_ = request.project, request.body.get("accountId", "")
    email = f"{id_}@{project}.iam.gserviceaccount.com"
    account = request.body.get("serviceAccount") or {}
    texts = {key: account[key] for key in ("displayName", "description") if key in account}
    values = {"email": email, "project": project, "accountId": id_, **texts}
    name = f"{request.name}/serviceAccounts/{email}"
    if not request.store.insert(ACCOUNT, name, project, values, values):
        text = f"Service account {id_} already exists within project {request.name}."
        raise RefusedRequestError(409, text, "ALREADY_EXISTS")
    return {"name": name, "projectId": project, **values}


def list_accounts(request: Request) -> dict[str, Any]:
    """Return the service accounts of a project."""
    project, store = request.project, request.store
    accounts = [_to_rest(store, resource) for resource in store.list(ACCOUNT, project)]
    if store.service_enabled(project, "compute.googleapis.com"):
        # https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account
        email = f"{project_number(project)}-compute@developer.gserviceaccount.com"
        name = {"name": f"{request.name}/serviceAccounts/{email}", "projectId": project}
        title = "Compute Engine default service account"
        accounts.append({**name, "email": email, "displayName": title})
    return {"accounts": sorted(accounts, key=lambda resource: resource["email"])}


def disable_account(request: Request) -> dict[str, Any]:
    """Disable a service account."""
    _change(request.store, _find(request.store, request.name), {"disabled": True})
    return {}


def enable(request: Request) -> dict[str, Any]:
    """Enable the API in the path, or the APIs in the body."""
    project = request.project
    one = request.name.rpartition("/services/")[2]
    for name in request.body.get("serviceIds", ()) if "batchEnable" in request.rest else [one]:
        request.store.put(SERVICE, f"{project}/{name}", project, {}, {})
    return _done(request)


def disable(request: Request) -> dict[str, Any]:
    """Disable an API."""
    request.store.delete(SERVICE, f"{request.project}/{request.name.rpartition('/services/')[2]}")
    return _done(request)


def _find(store: Store, name: str) -> StoredResource:
    if name.startswith("b/"):
        stored = store.get(BUCKET, name.removeprefix("b/"))
        if stored is None:
            raise RefusedRequestError(404, "The specified bucket does not exist.")
        return stored
    for resource in store.list():
        if name in (resource.id, f"projects/-/serviceAccounts/{resource.outputs.get('email')}"):
            return resource
    raise RefusedRequestError(404, f"The resource '{name}' was not found")


def _change(store: Store, resource: StoredResource, body: Mapping[str, Any]) -> None:
    fields = _renamed(dict(body), _RENAMED)
    for name, value in (fields.pop("iamConfiguration", None) or {}).items():
        fields[name] = value["enabled"] if isinstance(value, dict) else value
    if "labels" in fields:
        fields["effectiveLabels"] = fields["labels"]
    outputs = {**resource.outputs, **fields}
    store.put(resource.type, resource.id, resource.project, resource.inputs, outputs)


def _route(project: str, network: str, target: str, hop: dict[str, str]) -> dict[str, Any]:
    middle = "r-" if "nextHopNetwork" in hop else ""
    name = f"default-route-{middle}{zlib.crc32(f'{network}{target}'.encode()):016x}"
    link = f"{SELF_LINK}projects/{project}/global/routes/{name}"
    base = {"name": name, "network": network, "destRange": target, "selfLink": link}
    return {**base, "priority": 0 if middle else 1000, **hop}


def _to_rest(store: Store, resource: StoredResource) -> dict[str, Any]:
    names = {name: field for field, name in _RENAMED.items()}
    document: dict[str, Any] = _renamed(resource.outputs, names)
    _, _, word = resource.type.rpartition(":")
    service = resource.type.removeprefix("gcp:").partition("/")[0]
    if "effectiveLabels" in document:
        document["labels"] = document["effectiveLabels"]
    if service == "compute":
        return document | _compute_fields(store, resource, word[0].lower() + word[1:])
    if resource.type == BUCKET:
        return document | _bucket_fields(resource)
    if resource.type == ACCOUNT:
        project = {"name": resource.id, "projectId": resource.project}
        return document | project | {"oauth2ClientId": document.get("uniqueId")}
    if policies := document.pop("cleanupPolicies", None):
        document["cleanupPolicies"] = {item["id"]: item for item in policies}
    if "/" not in str(document.get("name")):
        document["name"] = resource.id
    return document


def _compute_fields(store: Store, resource: StoredResource, word: str) -> dict[str, Any]:
    path, outputs = resource.id.split("/"), resource.outputs
    fields: dict[str, Any] = {
        "id": str(outputs.get("numericId") or zlib.crc32(resource.id.encode())),
        "kind": f"compute#{word}",
        "selfLink": outputs.get("selfLink") or SELF_LINK + resource.id,
    }
    if path[2] in ("regions", "zones"):
        fields[path[2].removesuffix("s")] = SELF_LINK + "/".join(path[:4])
    if network := vpc.network_of(store, resource):
        fields["network"] = SELF_LINK + network
    return fields


def _bucket_fields(resource: StoredResource) -> dict[str, Any]:
    outputs, name = resource.outputs, resource.id
    access = {
        "publicAccessPrevention": outputs.get("publicAccessPrevention", "inherited"),
        "uniformBucketLevelAccess": {"enabled": bool(outputs.get("uniformBucketLevelAccess"))},
    }
    return {
        "id": name,
        "kind": "storage#bucket",
        "name": name,
        "iamConfiguration": access,
        "projectNumber": project_number(resource.project),
    }


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(element, names) for element in value]
    if not isinstance(value, dict):
        return value
    return {names.get(key, key): _renamed(element, names) for key, element in value.items()}


def _is_compute(request: Request) -> bool:
    return request.method.response.startswith("compute.")


def _done(request: Request, target: str = "") -> dict[str, Any]:
    if request.method.response.endswith(".Empty"):
        return {}
    if not _is_compute(request):
        return {"name": "operations/noop.DONE_OPERATION", "done": True}
    verb = request.method.id.rpartition(".")[2]
    return {
        "id": str(zlib.crc32(f"{verb} {request.name}".encode())),
        "kind": "compute#operation",
        "name": f"operation-{zlib.crc32(f'{verb} {request.name}'.encode()):08x}",
        "operationType": verb,
        "progress": 100,
        "status": "DONE",
        "targetLink": SELF_LINK + (target or request.name),
    }


_ACCOUNTS: Final = "iam.v1.projects.serviceAccounts"
_REPOSITORIES: Final = "artifactregistry.v1.projects.locations.repositories"
_SECRETS: Final = "secretmanager.v1.projects.secrets"
_VERBS: Final = {"get": get, "insert": insert, "patch": change, "update": change, "delete": delete}
_CHANGES: Final = {
    "compute.v1.firewalls": "get insert patch delete",
    "compute.v1.networkAttachments": "patch delete",
    "compute.v1.networks": "delete",
    "compute.v1.reservations": "update delete",
    "compute.v1.routers": "get patch delete",
    "compute.v1.routes": "get insert delete",
    "compute.v1.subnetworks": "get insert patch delete",
    "storage.v1.buckets": "patch",
    _ACCOUNTS: "delete",
    _REPOSITORIES: "patch delete",
    _SECRETS: "patch delete",
}
#: Method id (``localgcp.apis.discovery``) -> function.
METHODS: Final[Mapping[str, Callable[[Request], dict[str, Any]]]] = {
    **{f"{name}.{verb}": _VERBS[verb] for name in _CHANGES for verb in _CHANGES[name].split()},
    "compute.v1.networks.addPeering": add_peering,
    "compute.v1.networks.removePeering": remove_peering,
    f"{_ACCOUNTS}.create": create_account,
    f"{_ACCOUNTS}.list": list_accounts,
    f"{_ACCOUNTS}.disable": disable_account,
    "serviceusage.v1.services.enable": enable,
    "serviceusage.v1.services.batchEnable": enable,
    "serviceusage.v1.services.disable": disable,
}
#: Collections of resources with IAM policies.
_WITH_POLICIES: Final = (
    "cloudkms.v1.projects.locations.keyRings.cryptoKeys",
    "cloudresourcemanager.v1.projects",
    "cloudresourcemanager.v3.projects",
    "compute.v1.subnetworks",
    "storage.v1.buckets",
    _ACCOUNTS,
    _REPOSITORIES,
    _SECRETS,
)
POLICIES: Final = {
    f"{prefix}.{verb}{noun}": ReadMethod(answer, None, f"iam.{verb.capitalize()}{noun}")
    for prefix in _WITH_POLICIES
    for verb, noun, answer in (
        ("test", "IamPermissions", permissions),
        ("get", "IamPolicy", policy),
        ("set", "IamPolicy", policy),
    )
}
