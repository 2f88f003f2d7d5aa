"""A project: its number and state, who pays for it, and the APIs that are on.

https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/get
https://docs.cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/list
"""

from __future__ import annotations

import re
from typing import Any, Final

from localgcp.faults.model import Service
from localgcp.inventory.store import SERVICE
from localgcp.projects import is_local, local_project_number
from localgcp.reads.methods import ReadMethod, Request, refused

_PROJECT: Final = r"projects/(?P<project>[^/:]+)"
#: Nobody pays for what this cloud gives.
_ACCOUNT: Final = "billingAccounts/000000-000000-000000"


def project(request: Request) -> dict[str, Any]:
    """A project; every one of the local cloud is there, whether it holds something or not."""
    name = request.match["project"]
    if not is_local(name):
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
    ids = (each.id.rpartition("/")[2] for each in request.store.list(SERVICE, name))
    on = {"state": "ENABLED", "parent": f"projects/{name}"}
    return {
        "services": [
            {"name": f"projects/{name}/services/{each}", "config": {"name": each}, **on}
            for each in sorted(ids)
        ]
    }


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
