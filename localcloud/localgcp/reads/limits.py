"""What an organization and its quotas would forbid: here nothing, until a fault patches an answer.

https://docs.cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/regions/get
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final
from urllib.parse import unquote

from localgcp.faults.model import Service
from localgcp.inventory import reservations, vpc
from localgcp.inventory.projects import local_project_number
from localgcp.inventory.reservations import RESERVATION
from localgcp.reads.methods import ReadMethod, Request
from localgcp.reads.resources import FIREWALL

_UNLIMITED: Final = "-1"
#: Limit of Compute Engine's quotas, which are numbers.
_MANY: Final = 1_000_000
#: Constraints that are enforced or not; others list values.
_BOOLEAN: Final = re.compile(r"iam\.disable.*")
#: Type -> quota of how many there may be.
_OF_A_REGION: Final = {
    RESERVATION: "RESERVATIONS",
    vpc.ATTACHMENT: "NETWORK_ATTACHMENTS",
    "gcp:compute/routerNat:RouterNat": "IN_USE_ADDRESSES",
}
_OF_A_PROJECT: Final = {
    vpc.NETWORK: "NETWORKS",
    vpc.SUBNETWORK: "SUBNETWORKS",
    vpc.ADDRESS: "GLOBAL_INTERNAL_ADDRESSES",
    FIREWALL: "FIREWALLS",
    "gcp:compute/router:Router": "ROUTERS",
}


def policy(request: Request) -> dict[str, Any]:
    """A constraint's policy in effect: nothing is restricted."""
    project, name = request.match["project"], unquote(request.match["constraint"])
    rule = {"enforce": False} if _BOOLEAN.fullmatch(name) else {"allowAll": True}
    number = local_project_number(project)
    return {"name": f"projects/{number}/policies/{name}", "spec": {"rules": [rule]}}


def quota(request: Request) -> dict[str, Any]:
    """One limit, which is none."""
    bucket = {} if request.denied else {"effectiveLimit": _UNLIMITED}  # JSON leaves 0 out
    limits = [{"unit": "1/{project}/{region}", "quotaBuckets": [bucket]}]
    name = unquote(request.match[0]).removeprefix("/v1beta1/")
    metric = unquote(request.match["metric"])
    return {"name": name, "metric": metric, "consumerQuotaLimits": limits}


def region(request: Request) -> dict[str, Any]:
    """A region of Compute Engine, with what a project uses in it."""
    project, name = request.match["project"], request.match["region"]
    used = Counter[str]({metric: 0 for metric in _OF_A_REGION.values()})
    for type_, metric in _OF_A_REGION.items():
        for each in request.store.list(type_, project):
            zone = str(each.outputs.get("zone") or "").rpartition("/")[2]
            used[metric] += (each.outputs.get("region") or zone.rpartition("-")[0]) == name
    for each in reservations.everywhere(request.store):
        if (each.project, each.region) == (project, name) and each.shape.accelerator:
            gpu = each.shape.accelerator.replace("TESLA_", "")
            used[f"{gpu}_GPUS"] += each.count * each.shape.count
    return {"kind": "compute#region", "name": name, "status": "UP", "quotas": _quotas(used)}


def project(request: Request) -> dict[str, Any]:
    """A project of Compute Engine, with what it uses in all regions."""
    name = request.match["project"]
    used = Counter({m: len(request.store.list(type_, name)) for type_, m in _OF_A_PROJECT.items()})
    found = {"kind": "compute#project", "name": name, "quotas": _quotas(used)}
    is_host = request.store.get(vpc.HOST_PROJECT, name) is not None
    return {**found, "xpnProjectStatus": "HOST"} if is_host else found


def _quotas(used: Counter[str]) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "limit": float(_MANY), "usage": float(count)}
        for metric, count in sorted(used.items())
    ]


_COMPUTE: Final = r"/compute/v1/projects/(?P<project>[^/]+)"

METHODS: Final = (
    ReadMethod(
        Service.ORGANIZATION_POLICIES,
        "projects.policies.getEffectivePolicy",
        "GET",
        re.compile(
            r"/v2/projects/(?P<project>[^/]+)/policies/(?P<constraint>[^/:]+):getEffectivePolicy"
        ),
        policy,
        "orgpolicy.policy.get",
    ),
    ReadMethod(
        Service.SERVICEUSAGE,
        "consumerQuotaMetrics.get",
        "GET",
        re.compile(
            r"/v1beta1/projects/[^/]+/services/[^/]+/consumerQuotaMetrics/(?P<metric>[^/]+)"
        ),
        quota,
    ),
    ReadMethod(
        Service.COMPUTE,
        "projects.get",
        "GET",
        re.compile(_COMPUTE),
        project,
        "compute.projects.get",
    ),
    ReadMethod(
        Service.COMPUTE,
        "regions.get",
        "GET",
        re.compile(rf"{_COMPUTE}/regions/(?P<region>[^/]+)"),
        region,
        "compute.regions.get",
    ),
)
