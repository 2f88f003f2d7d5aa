"""Documents of inventory resources in their API's form, IAM policies and permissions.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/iam/docs/reference/rest/v1/Policy
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

from localgcp.errors import PolicyConflictError, RefusedRequestError
from localgcp.inventory import vpc
from localgcp.inventory.projects import is_local
from localgcp.inventory.resource_paths import SELF_LINK
from localgcp.inventory.store import (
    ACCOUNT,
    BUCKET,
    Binding,
    Store,
    StoredResource,
    project_number,
)
from localgcp.reads.methods import ReadMethod, Request, refused

#: Property of the provider -> field of the API with a different name.
_TO_REST: Final = {"allows": "allowed", "denies": "denied", "protocol": "IPProtocol"}
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
    sent = str(policy.get("etag") or "")
    try:
        etag = base64.b64decode(sent).decode() if sent else store.policy(name).etag
        store.set_policy(name, tuple(merged.values()), expected_etag=etag)
    except (PolicyConflictError, ValueError):
        text = "There were concurrent policy changes. Please retry the whole read-modify-write."
        raise RefusedRequestError(409, text) from None
    return read_policy(store, name)


def policy(request: Request) -> dict[str, Any]:
    """Return the IAM policy of a resource, after writing the request's policy if it has one."""
    name, body = request.name, request.body
    is_write = "bindings" in body or "policy" in body
    if request.denied:
        raise refused(f"resourcemanager.projects.{'set' if is_write else 'get'}IamPolicy", name)
    if is_write:
        return write_policy(request.store, name, body.get("policy", body))
    return read_policy(request.store, name)


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


def document(request: Request) -> dict[str, Any]:
    """Return a resource of the inventory by its path."""
    return read_resource(request.store, request.name)


def read_resource(store: Store, name: str) -> dict[str, Any]:
    """Return a resource in its API's form. Raises RefusedRequestError (404)."""
    if name.startswith("b/"):
        stored = store.get(BUCKET, name.removeprefix("b/"))
        if stored is None:
            raise RefusedRequestError(404, "The specified bucket does not exist.")
        return to_rest(store, stored)
    for stored in store.list():
        if name in (stored.id, f"projects/-/serviceAccounts/{stored.outputs.get('email')}"):
            return to_rest(store, stored)
    raise RefusedRequestError(404, f"The resource '{name}' was not found")


def to_rest(store: Store, resource: StoredResource) -> dict[str, Any]:
    """Convert a resource to its API's form; ``DescribedMethod.fit`` drops fields of the plugin."""
    document: dict[str, Any] = _renamed(resource.outputs)
    if "effectiveLabels" in document:
        document["labels"] = document["effectiveLabels"]
    if resource.type.startswith("gcp:compute/"):
        return document | _compute_fields(store, resource)
    if resource.type == BUCKET:
        return document | _bucket_fields(resource)
    if resource.type == ACCOUNT:
        project = {"name": resource.id, "projectId": resource.project}
        return document | project | {"oauth2ClientId": document.get("uniqueId")}
    clean_up = document.pop("cleanupPolicies", None) or ()
    by_id = {"cleanupPolicies": {item["id"]: item for item in clean_up}} if clean_up else {}
    name = document["name"] if "/" in str(document.get("name")) else resource.id
    return document | by_id | {"name": name}


def _compute_fields(store: Store, resource: StoredResource) -> dict[str, Any]:
    path, outputs = resource.id.split("/"), resource.outputs
    word = resource.type.rpartition(":")[2]
    fields: dict[str, Any] = {
        "id": str(outputs.get("numericId") or zlib.crc32(resource.id.encode())),
        "kind": f"compute#{word[0].lower()}{word[1:]}",
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


def _renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renamed(element) for element in value]
    if not isinstance(value, dict):
        return value
    return {_TO_REST.get(key, key): _renamed(element) for key, element in value.items()}


#: Collections whose resources have an IAM policy.
_GOVERNED: Final = (
    "cloudkms.v1.projects.locations.keyRings.cryptoKeys",
    "cloudresourcemanager.v1.projects",
    "cloudresourcemanager.v3.projects",
    "compute.v1.subnetworks",
    "storage.v1.buckets",
    "iam.v1.projects.serviceAccounts",
    "artifactregistry.v1.projects.locations.repositories",
    "secretmanager.v1.projects.secrets",
)
METHODS: Final = {
    f"{prefix}.{verb}{noun}": ReadMethod(answer, None, f"iam.{verb.capitalize()}{noun}")
    for prefix in _GOVERNED
    for verb, noun, answer in (
        ("test", "IamPermissions", permissions),
        ("get", "IamPolicy", policy),
        ("set", "IamPolicy", policy),
    )
}
