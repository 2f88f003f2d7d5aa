"""Reservations, quotas of Vertex AI, and what is in a network."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Service
from localgcp.inventory import reservations
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.resources import list_in_project, read_network

_UNLIMITED: Final = "-1"
#: The project of what is listed.
_LISTED: Final = r"projects/(?P<project>[^/]+)/"


def reservation(request: Request) -> dict[str, Any]:
    """A reservation that is there."""
    name = request.match["name"]
    found = None if request.denied else reservations.find(request.store, name)
    if found is None:
        raise RefusedRequestError(404, f"The resource '{name}' was not found")
    return {"name": name.rpartition("/")[2], "zone": found.zone, "status": "READY"}


def quota(request: Request) -> dict[str, Any]:
    """One limit, which is none."""
    bucket = {} if request.denied else {"effectiveLimit": _UNLIMITED}  # JSON leaves 0 out
    limits = [{"unit": "1/{project}/{region}", "quotaBuckets": [bucket]}]
    return {"metric": unquote(request.match["metric"]), "consumerQuotaLimits": limits}


def network(request: Request) -> dict[str, Any]:
    """A network with its peerings."""
    return read_network(request.store, request.match["name"])


def listed(request: Request) -> dict[str, Any]:
    """Firewall rules, routes or subnetworks of a project; those of regions by region."""
    project, collection = request.match["project"], request.match["collection"]
    if request.denied:
        raise refused(f"compute.{collection}.list", f"projects/{project}")
    found = list_in_project(request.store, project, collection)
    if not request.match["aggregated"]:
        return {"items": found}
    items: dict[str, Any] = {}
    for each in found:
        region = f"regions/{each['region'].rpartition('/')[2]}"
        items.setdefault(region, {}).setdefault(collection, []).append(each)
    return {"items": items}


METHODS: Final = (
    ReadMethod(
        Service.COMPUTE,
        "reservations.get",
        "GET",
        re.compile(r"/compute/v1/(?P<name>projects/[^/]+/zones/[^/]+/reservations/[^/]+)"),
        reservation,
    ),
    ReadMethod(
        Service.SERVICEUSAGE,
        "consumerQuotaMetrics.get",
        "GET",
        re.compile(
            r"/v1beta1/projects/[^/]+/services/aiplatform\.googleapis\.com/consumerQuotaMetrics/"
            r"(?P<metric>[^/]+)"
        ),
        quota,
    ),
    ReadMethod(
        Service.COMPUTE,
        "networks.get",
        "GET",
        re.compile(r"/compute/v1/(?P<name>projects/[^/]+/global/networks/[^/]+)"),
        network,
        "compute.networks.get",
    ),
    *(
        ReadMethod(
            Service.COMPUTE, method, "GET", re.compile(rf"/compute/v1/{_LISTED}{path}"), listed
        )
        for method, path in (
            ("firewalls.list", r"global/(?P<collection>firewalls)(?P<aggregated>)"),
            ("routes.list", r"global/(?P<collection>routes)(?P<aggregated>)"),
            (
                "subnetworks.aggregatedList",
                r"(?P<aggregated>aggregated)/(?P<collection>subnetworks)",
            ),
        )
    ),
)
