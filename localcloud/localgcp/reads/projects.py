"""Projects, their billing and APIs, and resources with globally unique names.

https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/get
https://docs.cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/list
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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import grpc

from localgcp.apis.client import Api
from localgcp.errors import ApiError, RefusedRequestError
from localgcp.inventory import resource_paths
from localgcp.inventory.resource_paths import is_local, project_number
from localgcp.inventory.store import ALERT_POLICY, BUDGET, CHANNEL, DASHBOARD, SERVICE, Store
from localgcp.reads import secretmanager
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.reads.resources import get, read_resource

if TYPE_CHECKING:
    from google.cloud.resourcemanager_v3 import types

#: APIs that are enabled in every project, as ``bootstrap`` enables them.
FIRST: Final = ("cloudresourcemanager.googleapis.com", "serviceusage.googleapis.com")
_CODES: Final = {
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
}


def project(request: Request) -> dict[str, Any]:
    """Return a project; every local project exists. Raises RefusedRequestError."""
    name = request.project
    if not is_local(name) and name not in request.store.projects():
        raise refused("resourcemanager.projects.get", f"projects/{name}")
    number = project_number(name)
    return {"name": f"projects/{number}", "projectId": name, "state": "ACTIVE"}


def billing(request: Request) -> dict[str, Any]:
    """Return the billing account of a project."""
    name = request.project
    document = {"name": f"projects/{name}/billingInfo", "projectId": name, "billingEnabled": True}
    return {**document, "billingAccountName": "billingAccounts/000000-000000-000000"}


def services(request: Request) -> dict[str, Any]:
    """Return the enabled APIs."""
    name = request.project
    ids = {service.id.rpartition("/")[2] for service in request.store.list(SERVICE, name)}
    on = {"state": "ENABLED", "parent": f"projects/{name}"}
    return {
        "services": [
            {"name": f"projects/{name}/services/{id_}", "config": {"name": id_}, **on}
            for id_ in sorted(ids | {*FIRST})
        ]
    }


class ProjectService:
    """Serves ``google.cloud.resourcemanager.v3.Projects``; ``answer`` is ``Reads.answer``."""

    api: ClassVar = Api("google.cloud.resourcemanager_v3", "projects")

    def __init__(self, store: Store, answer: Callable[[str, str, bytes], bytes | None]) -> None:
        self._store, self._answer = store, answer

    def get_project(self, request: types.GetProjectRequest) -> types.Project:
        """Return a project by its id or number. Raises ApiError."""
        from google.cloud.resourcemanager_v3 import types

        name = request.name.removeprefix("projects/")
        project_id = resource_paths.project_id(self._store, name)
        try:
            answer = self._answer("GET", f"/v3/projects/{project_id}", b"")
        except RefusedRequestError as error:
            code = _CODES.get(error.status, grpc.StatusCode.UNAVAILABLE)
            raise ApiError(code, str(error)) from None
        assert answer is not None
        project_id = types.Project.from_json(answer.decode(), ignore_unknown_fields=True)
        assert isinstance(project_id, types.Project)
        return project_id


def bucket(request: Request) -> dict[str, Any]:
    """Return a bucket with the project's number. Raises RefusedRequestError (404)."""
    name = request.name.removeprefix("b/")
    bucket_resource = request.store.bucket(name)
    if bucket_resource is None:
        raise RefusedRequestError(404, "The specified bucket does not exist.")
    if not bucket_resource.get("project"):
        return {"kind": "storage#bucket", "id": name, "name": name}
    return read_resource(request.store, request.name)


def key(request: Request) -> dict[str, Any]:
    """Return an encryption key with its primary version."""
    key_resource = get(request)
    primary = next(iter(key_resource.get("primaries") or ()), None)
    purpose = key_resource.get("purpose") or "ENCRYPT_DECRYPT"
    return {"name": request.name, "purpose": purpose, "primary": primary}


def watching(request: Request) -> dict[str, Any]:
    """Return a project's channels, alert policies or dashboards, or a billing account's budgets."""
    collection, scope = request.rest.removeprefix("/"), request.parameter("scope")
    documents = []
    for policy in request.store.list(_WATCHING[collection]):
        if policy.id.rpartition("/")[0] != request.name + request.rest:
            continue
        resource = read_resource(request.store, policy.id)
        text = resource.get("dashboardJson")
        documents.append({**(json.loads(text) if text else {}), **resource})
    if scope:
        documents = [
            policy
            for policy in documents
            if scope in (policy.get("budgetFilter") or {}).get("projects", ())
        ]
    return {collection: documents}


def secret_version(request: Request) -> dict[str, Any]:
    """Return an enabled version of a secret. Raises RefusedRequestError (404)."""
    project, secret, version = request.variables
    folder = request.store.path.parent / "secrets"
    stored = secretmanager.find_version(request.store, folder, project, secret, version)
    if stored is None:
        raise RefusedRequestError(404, f"Secret Version [{request.name}] not found.")
    name = f"projects/{project_number(project)}/secrets/{secret}/versions/{stored[0]}"
    return {"name": name, "state": "ENABLED"}


#: Collection -> type token.
_WATCHING: Final = {
    "notificationChannels": CHANNEL,
    "alertPolicies": ALERT_POLICY,
    "dashboards": DASHBOARD,
    "budgets": BUDGET,
}

_GET_PROJECT: Final = "resourcemanager.projects.get"
METHODS: Final = {
    "cloudresourcemanager.v3.projects.get": ReadMethod(project, _GET_PROJECT),
    "cloudbilling.v1.projects.getBillingInfo": ReadMethod(billing, _GET_PROJECT),
    "serviceusage.v1.services.list": ReadMethod(services),
    "storage.v1.buckets.get": ReadMethod(bucket),
    "iam.v1.projects.serviceAccounts.get": ReadMethod(get),
    "artifactregistry.v1.projects.locations.repositories.get": ReadMethod(get),
    "secretmanager.v1.projects.secrets.get": ReadMethod(get),
    "secretmanager.v1.projects.secrets.versions.get": ReadMethod(secret_version),
    "cloudkms.v1.projects.locations.keyRings.cryptoKeys.get": ReadMethod(key),
    "monitoring.v3.projects.notificationChannels.get": ReadMethod(get),
    "monitoring.v3.projects.notificationChannels.list": ReadMethod(watching),
    "monitoring.v3.projects.alertPolicies.list": ReadMethod(watching),
    "monitoring.v1.projects.dashboards.list": ReadMethod(watching),
    "billingbudgets.v1.billingAccounts.budgets.list": ReadMethod(watching, "billing.budgets.list"),
}
