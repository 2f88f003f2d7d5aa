"""A project: its number and state, who pays for it, and the APIs that are on.

https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/get
https://docs.cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/list
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import grpc

from localgcp.apis.client import Api
from localgcp.errors import ApiError, RefusedRequestError
from localgcp.faults.model import Service
from localgcp.inventory import resource_paths
from localgcp.inventory.projects import is_local, local_project_number
from localgcp.inventory.store import SERVICE, Store
from localgcp.reads.methods import ReadMethod, Request, refused

if TYPE_CHECKING:
    from google.cloud.resourcemanager_v3 import types

#: On in every project, as ``bootstrap`` leaves one: the stack switches on the others by these.
FIRST: Final = ("cloudresourcemanager.googleapis.com", "serviceusage.googleapis.com")
_PROJECT: Final = r"projects/(?P<project>[^/:]+)"
_CODES: Final = {
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
}
#: Nobody pays for what this cloud gives.
_ACCOUNT: Final = "billingAccounts/000000-000000-000000"


def project(request: Request) -> dict[str, Any]:
    """A project; every one of the local cloud is there, whether it holds something or not."""
    name = request.match["project"]
    if not is_local(name) and name not in request.store.projects():
        raise refused("resourcemanager.projects.get", f"projects/{name}")
    number = local_project_number(name)
    return {"name": f"projects/{number}", "projectId": name, "state": "ACTIVE"}


def billing(request: Request) -> dict[str, Any]:
    """The billing account of a project."""
    name = request.match["project"]
    found = {"name": f"projects/{name}/billingInfo", "projectId": name}
    return {**found, "billingAccountName": _ACCOUNT, "billingEnabled": True}


def services(request: Request) -> dict[str, Any]:
    """APIs that are on."""
    name = request.match["project"]
    ids = {each.id.rpartition("/")[2] for each in request.store.list(SERVICE, name)} | {*FIRST}
    on = {"state": "ENABLED", "parent": f"projects/{name}"}
    return {
        "services": [
            {"name": f"projects/{name}/services/{each}", "config": {"name": each}, **on}
            for each in sorted(ids)
        ]
    }


class ProjectService:
    """``google.cloud.resourcemanager.v3.Projects``: the SDK asks for a project's id in a job.

    It answers as over REST, where ``answer`` is ``Reads.answer``, for ids and for numbers.
    """

    api: ClassVar = Api("google.cloud.resourcemanager_v3", "projects")

    def __init__(self, store: Store, answer: Callable[[str, str, bytes], bytes | None]) -> None:
        self._store, self._answer = store, answer

    def get_project(self, request: types.GetProjectRequest) -> types.Project:
        """A project by its id or number. Raises ApiError."""
        from google.cloud.resourcemanager_v3 import types

        given = request.name.removeprefix("projects/")
        found = resource_paths.project_id(self._store, given)
        try:
            answer = self._answer("GET", f"/v3/projects/{found}", b"")
        except RefusedRequestError as error:
            code = _CODES.get(error.status, grpc.StatusCode.UNAVAILABLE)
            raise ApiError(code, str(error)) from None
        assert answer is not None
        found = types.Project.from_json(answer.decode(), ignore_unknown_fields=True)
        assert isinstance(found, types.Project)
        return found


METHODS: Final = (
    ReadMethod(
        Service.RESOURCEMANAGER,
        "projects.get",
        "GET",
        re.compile(rf"/v3/{_PROJECT}"),
        project,
        "resourcemanager.projects.get",
    ),
    ReadMethod(
        Service.BILLING,
        "projects.getBillingInfo",
        "GET",
        re.compile(rf"/v1/{_PROJECT}/billingInfo"),
        billing,
        "resourcemanager.projects.get",
    ),
    ReadMethod(
        Service.SERVICEUSAGE,
        "services.list",
        "GET",
        re.compile(rf"/v1/{_PROJECT}/services"),
        services,
        "serviceusage.services.list",
    ),
)
