"""REST methods that read, create, change and delete resources of the inventory.

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
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from localgcp.errors import InvalidRequestError, PolicyConflictError, RefusedRequestError
from localgcp.inventory import resource_paths, vpc
from localgcp.inventory.projects import is_local
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
from localgcp.reads.methods import ReadMethod, Request, refused

FIREWALL: Final = "gcp:compute/firewall:Firewall"
ROUTE: Final = "gcp:compute/route:Route"
PEERING: Final = "gcp:compute/networkPeering:NetworkPeering"
#: Collection of Compute Engine -> type token.
COLLECTIONS: Final = {"firewalls": FIREWALL, "routes": ROUTE, "subnetworks": vpc.SUBNETWORK}
#: Collections with a list method -> type token.
_LISTED: Final = {**COLLECTIONS, "addresses": vpc.ADDRESS}
#: Field in the API -> the provider's different name.
_RENAMED: Final = {"allowed": "allows", "denied": "denies", "IPProtocol": "protocol"}
_TO_REST: Final = {name: field for field, name in _RENAMED.items()}
_GATEWAY: Final = "global/gateways/default-internet-gateway"
#: Fields of a new account that a client may set.
_DESCRIBED: Final = ("displayName", "description")


#: Permissions that apply to a project and not to a bucket.
_OF_NO_BUCKET: Final = frozenset({"storage.buckets.create", "storage.buckets.list"})


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
    """Replace an IAM policy. Raises RefusedRequestError for an outdated ``etag``, a member without
    a name or a binding without a role.

    Bindings of one role and condition are made one, as IAM does.
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
    asked = request.permissions
    if not _exists(request.store, name):
        if (name.startswith("projects/") and name.count("/") > 3) or name.startswith("b/"):
            raise RefusedRequestError(404, f"{name} was not found.")
        return {}
    if name.startswith("b/") and not _OF_NO_BUCKET.isdisjoint(asked):
        raise RefusedRequestError(400, "a bucket does not have permissions of projects.")
    held = [permission for permission in asked if not request.denies(name, permission)]
    return {"permissions": held} if held else {}


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
    """Return firewall rules, subnetworks, addresses or routes, including default routes.

    https://docs.cloud.google.com/vpc/docs/routes: to the internet, and one for each subnet.
    """
    documents = [_to_rest(store, resource) for resource in store.list(_LISTED[collection], project)]
    if collection == "routes":
        documents += _routes_of_networks(store, project)
    return documents


def read_network(store: Store, path: str) -> dict[str, Any]:
    """Return a network with its peerings."""
    resource = store.get(vpc.NETWORK, path)
    if resource is None:
        raise RefusedRequestError(404, f"The resource '{path}' was not found")
    names = [
        str(connection.outputs["peering"])
        for connection in vpc.in_network(store, vpc.CONNECTION, path)
        if connection.outputs.get("peering")
    ]
    names += [connection.outputs["name"] for connection in vpc.in_network(store, PEERING, path)]
    peerings = [{"name": name, "state": "ACTIVE"} for name in names]
    return {**_to_rest(store, resource), "peerings": peerings}


def read_resource(store: Store, name: str) -> dict[str, Any]:
    """Return a resource in its API's form. Raises RefusedRequestError (404)."""
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
    """Delete a resource with its IAM policy; for an account, delete its grants too."""
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
    values = _from_rest(dict(request.body)) | {"project": project, "selfLink": SELF_LINK + id_}
    if "/regions/" in id_:
        values["region"] = request.name.rpartition("/")[2]
    if not request.store.insert(COLLECTIONS[collection], id_, project, values, values):
        text = f"The resource '{id_}' already exists"
        raise RefusedRequestError(409, text, "ALREADY_EXISTS")
    return _done(request, id_)


def add_peering(request: Request) -> dict[str, Any]:
    """Peer a network with another network."""
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
    named = {k: v for k, v in (request.body.get("serviceAccount") or {}).items() if k in _DESCRIBED}
    values = {"email": email, "project": project, "accountId": id_, **named}
    name = f"{request.name}/serviceAccounts/{email}"
    if not request.store.insert(ACCOUNT, name, project, values, values):
        text = f"Service account {id_} already exists within project {request.name}."
        raise RefusedRequestError(409, text, "ALREADY_EXISTS")
    return {"name": name, "projectId": project, **values}


def list_accounts(request: Request) -> dict[str, Any]:
    """Return the service accounts of a project."""
    project = request.project
    accounts = [
        _to_rest(request.store, resource) for resource in request.store.list(ACCOUNT, project)
    ]
    if request.store.service_enabled(project, "compute.googleapis.com"):
        # https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account
        email = f"{project_number(project)}-compute@developer.gserviceaccount.com"
        name = {"name": f"{request.name}/serviceAccounts/{email}", "projectId": project}
        accounts.append(
            {**name, "email": email, "displayName": "Compute Engine default service account"}
        )
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
    """Return the stored resource. Raises RefusedRequestError (404)."""
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
    fields = _from_rest(dict(body))
    for name, value in (fields.pop("iamConfiguration", None) or {}).items():
        fields[name] = value["enabled"] if isinstance(value, dict) else value
    if "labels" in fields:
        fields["effectiveLabels"] = fields["labels"]
    store.put(
        resource.type,
        resource.id,
        resource.project,
        resource.inputs,
        {**resource.outputs, **fields},
    )


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
    """Convert a resource to its API's form; ``DescribedMethod.fit`` drops fields of the plugin."""
    document: dict[str, Any] = _renamed(resource.outputs, _TO_REST)
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
    if policies := document.get("cleanupPolicies"):
        document["cleanupPolicies"] = {
            cleanup_policy["id"]: cleanup_policy for cleanup_policy in policies
        }
    else:
        document.pop("cleanupPolicies", None)
    return document | {
        "name": document["name"] if "/" in str(document.get("name")) else resource.id
    }


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


def _from_rest(body: dict[str, Any]) -> dict[str, Any]:
    return _renamed(body, _RENAMED)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(element, names) for element in value]
    if not isinstance(value, dict):
        return value
    return {names.get(key, key): _renamed(element, names) for key, element in value.items()}


def _is_compute(request: Request) -> bool:
    return request.method.response.startswith("compute.")


def _done(request: Request, target: str = "") -> dict[str, Any]:
    """Return a completed operation; an empty object for a method without operations."""
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
_SERVICES: Final = "serviceusage.v1.services"
#: Method id (``localgcp.apis.discovery``) -> function.
METHODS: Final[Mapping[str, Callable[[Request], dict[str, Any]]]] = {
    "compute.v1.firewalls.get": get,
    "compute.v1.firewalls.insert": insert,
    "compute.v1.firewalls.patch": change,
    "compute.v1.firewalls.delete": delete,
    "compute.v1.networkAttachments.patch": change,
    "compute.v1.networkAttachments.delete": delete,
    "compute.v1.networks.addPeering": add_peering,
    "compute.v1.networks.removePeering": remove_peering,
    "compute.v1.networks.delete": delete,
    "compute.v1.reservations.update": change,
    "compute.v1.reservations.delete": delete,
    "compute.v1.routers.get": get,
    "compute.v1.routers.patch": change,
    "compute.v1.routers.delete": delete,
    "compute.v1.routes.get": get,
    "compute.v1.routes.insert": insert,
    "compute.v1.routes.delete": delete,
    "compute.v1.subnetworks.get": get,
    "compute.v1.subnetworks.insert": insert,
    "compute.v1.subnetworks.patch": change,
    "compute.v1.subnetworks.delete": delete,
    f"{_REPOSITORIES}.patch": change,
    f"{_REPOSITORIES}.delete": delete,
    f"{_SECRETS}.patch": change,
    f"{_SECRETS}.delete": delete,
    "storage.v1.buckets.patch": change,
    f"{_ACCOUNTS}.create": create_account,
    f"{_ACCOUNTS}.list": list_accounts,
    f"{_ACCOUNTS}.delete": delete,
    f"{_ACCOUNTS}.disable": disable_account,
    f"{_SERVICES}.enable": enable,
    f"{_SERVICES}.batchEnable": enable,
    f"{_SERVICES}.disable": disable,
}
#: Collections whose resources have an IAM policy.
_GOVERNED: Final = (
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
    for prefix in _GOVERNED
    for verb, noun, answer in (
        ("test", "IamPermissions", permissions),
        ("get", "IamPolicy", policy),
        ("set", "IamPolicy", policy),
    )
}
