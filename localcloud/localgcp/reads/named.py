"""What has a name that can be taken, and what a deployment finds under it.

https://docs.cloud.google.com/storage/docs/json_api/v1/buckets/get
https://docs.cloud.google.com/iam/docs/reference/rest/v1/projects.serviceAccounts/get
https://docs.cloud.google.com/artifact-registry/docs/reference/rest/v1/projects.locations.repositories/get
https://docs.cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/get
https://docs.cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys/get
https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.notificationChannels/get
https://docs.cloud.google.com/billing/docs/reference/budget/rest/v1/billingAccounts.budgets/list
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import unquote

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Service
from localgcp.inventory.projects import local_project_number
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, DASHBOARD
from localgcp.reads import secretmanager
from localgcp.reads.methods import ReadMethod, Request
from localgcp.reads.resources import read_resource


def bucket(request: Request) -> dict[str, Any]:
    """A bucket, with the number of its project; of none of ours, 404."""
    name = unquote(request.match["bucket"])
    found = request.store.bucket(name)
    if found is None:
        raise RefusedRequestError(404, "The specified bucket does not exist.")
    if not found.get("project"):
        return {"kind": "storage#bucket", "id": name, "name": name}
    return read_resource(request.store, f"b/{name}")


def resource(request: Request) -> dict[str, Any]:
    """A resource of the inventory by its path."""
    return read_resource(request.store, unquote(request.match[0]).removeprefix("/v1/"))


def key(request: Request) -> dict[str, Any]:
    """A key with its primary version."""
    found = resource(request)
    name, primaries = unquote(request.match[0]).removeprefix("/v1/"), found.get("primaries")
    purpose = found.get("purpose") or "ENCRYPT_DECRYPT"
    return {"name": name, "purpose": purpose} | ({"primary": primaries[0]} if primaries else {})


def channel(request: Request) -> dict[str, Any]:
    """A channel of Cloud Monitoring."""
    return read_resource(request.store, unquote(request.match[0]).removeprefix("/v3/"))


def watching(request: Request) -> dict[str, Any]:
    """All channels, alert policies or dashboards of a project, or budgets of a billing account."""
    parent, _, collection = unquote(request.match[0]).rpartition("/")
    scope = request.query.get("scope", [""])[0]
    found = []
    for each in request.store.list(_WATCHING[collection]):
        if each.id.rpartition("/")[0] != f"{parent.split('/', 2)[2]}/{collection}":
            continue
        resource = read_resource(request.store, each.id)
        text = resource.get("dashboardJson")
        found.append({**(json.loads(text) if text else {}), **resource})
    if scope:
        found = [
            each for each in found if scope in (each.get("budgetFilter") or {}).get("projects", ())
        ]
    return {collection: found}


def secret_version(request: Request) -> dict[str, Any]:
    """A version of a secret: there and enabled, or not there."""
    project, secret, version = (
        unquote(request.match[part]) for part in ("project", "secret", "version")
    )
    folder = request.store.path.parent / "secrets"
    found = secretmanager.find_version(request.store, folder, project, secret, version)
    if found is None:
        raise RefusedRequestError(404, f"Secret Version [{request.match[0]}] not found.")
    name = f"projects/{local_project_number(project)}/secrets/{secret}/versions/{found[0]}"
    return {"name": name, "state": "ENABLED"}


#: Collection -> type.
_WATCHING: Final = {
    "notificationChannels": CHANNEL,
    "alertPolicies": ALERT_POLICY,
    "dashboards": DASHBOARD,
    "budgets": BUDGET,
}
_PROJECT: Final = r"/v1/projects/(?P<project>[^/:]+)"

METHODS: Final = tuple(
    ReadMethod(service, method, "GET", re.compile(path), answer, permission)
    for service, method, path, answer, permission in (
        (
            Service.STORAGE,
            "buckets.get",
            r"/storage/v1/b/(?P<bucket>[^/]+)",
            bucket,
            "storage.buckets.get",
        ),
        (
            Service.IAM,
            "serviceAccounts.get",
            rf"{_PROJECT}/serviceAccounts/[^/:]+",
            resource,
            "iam.serviceAccounts.get",
        ),
        (
            Service.REGISTRY,
            "repositories.get",
            rf"{_PROJECT}/locations/[^/]+/repositories/[^/:]+",
            resource,
            "artifactregistry.repositories.get",
        ),
        (
            Service.SECRETS,
            "secrets.get",
            rf"{_PROJECT}/secrets/[^/:]+",
            resource,
            "secretmanager.secrets.get",
        ),
        (
            Service.SECRETS,
            "versions.get",
            rf"{_PROJECT}/secrets/(?P<secret>[^/]+)/versions/(?P<version>[^/:]+)",
            secret_version,
            "secretmanager.versions.get",
        ),
        (
            Service.KEYS,
            "cryptoKeys.get",
            rf"{_PROJECT}/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/:]+",
            key,
            "cloudkms.cryptoKeys.get",
        ),
        (
            Service.MONITORING,
            "projects.notificationChannels.get",
            r"/v3/projects/[^/]+/notificationChannels/[^/:]+",
            channel,
            "monitoring.notificationChannels.get",
        ),
        *(
            (
                Service.MONITORING,
                f"projects.{collection}.list",
                rf"/{version}/projects/[^/]+/{collection}",
                watching,
                f"monitoring.{collection}.list",
            )
            for version, collection in (
                ("v3", "notificationChannels"),
                ("v3", "alertPolicies"),
                ("v1", "dashboards"),
            )
        ),
        (
            Service.BUDGETS,
            "billingAccounts.budgets.list",
            r"/v1/billingAccounts/[^/]+/budgets",
            watching,
            "billing.budgets.list",
        ),
    )
)
