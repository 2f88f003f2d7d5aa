"""Permissions of who asks, and IAM policies.

https://docs.cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions: a GET, unlike
everywhere else.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Service
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import Store
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.reads.resources import read_policy, write_policy

#: What an IAM policy is named after.
_BUCKET: Final = r"(?P<policy>b/[^/]+)"
_NAMED: Final = (
    r"(?P<policy>projects/[^/:]+(?:/(?:secrets|serviceAccounts)/[^/:]+"
    r"|/locations/[^/:]+/(?:repositories|keyRings/[^/:]+/cryptoKeys)/[^/:]+"
    r"|/regions/[^/:]+/subnetworks/[^/:]+)?)"
)
#: Permissions that are of a project and of no bucket in it.
_OF_NO_BUCKET: Final = frozenset({"storage.buckets.create", "storage.buckets.list"})


def permissions(request: Request) -> dict[str, Any]:
    """All that are asked for, on what exists and no fault denies; none on others."""
    name = unquote(request.match["policy"])
    asked = request.permissions
    if not _exists(request.store, name):
        if (name.startswith("projects/") and name.count("/") > 3) or name.startswith("b/"):
            raise RefusedRequestError(404, f"{name} was not found.")
        return {}
    if name.startswith("b/") and not _OF_NO_BUCKET.isdisjoint(asked):
        raise RefusedRequestError(400, "permissions of projects are asked of no bucket.")
    held = [each for each in asked if not request.denies(name, each)]
    return {"permissions": held} if held else {}


def _exists(store: Store, name: str) -> bool:
    if name.startswith("b/"):
        return store.bucket(name.removeprefix("b/")) is not None
    if "/serviceAccounts/" in name:
        return store.account(name.rpartition("/")[2]) is not None
    project = name.split("/")[1]
    if name == f"projects/{project}":
        return is_local(project) or project in store.projects()
    return any(each.id == name for each in store.list(project=project))


def policy(request: Request) -> dict[str, Any]:
    """The IAM policy of a resource; with one in the request, after it was written."""
    name, body = unquote(request.match["policy"]), request.body
    is_write = "bindings" in body or "policy" in body
    if request.denied:
        raise refused(f"resourcemanager.projects.{'set' if is_write else 'get'}IamPolicy", name)
    if is_write:
        return write_policy(request.store, name, body.get("policy", body))
    return read_policy(request.store, name)


METHODS: Final = (
    *(
        ReadMethod(Service.IAM, "TestIamPermissions", verb, re.compile(path), permissions)
        for verb, path in (
            ("POST", rf"/(?:v1|v3|compute/v1)/{_NAMED}[:/]testIamPermissions"),
            ("GET", rf"/storage/v1/{_BUCKET}/iam/testPermissions"),
        )
    ),
    *(
        ReadMethod(Service.IAM, method, verb, re.compile(path), policy)
        for method, verb, path in (
            ("GetIamPolicy", "GET", rf"/storage/v1/{_BUCKET}/iam"),
            ("SetIamPolicy", "PUT", rf"/storage/v1/{_BUCKET}/iam"),
            ("GetIamPolicy", "GET", rf"/(?:v1|compute/v1)/{_NAMED}[:/]getIamPolicy"),
            ("GetIamPolicy", "POST", rf"/v[13]/{_NAMED}:getIamPolicy"),
            ("SetIamPolicy", "POST", rf"/(?:v1|v3|compute/v1)/{_NAMED}[:/]setIamPolicy"),
        )
    ),
)
