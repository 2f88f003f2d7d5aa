"""Compute Engine: reservations, networks and their connections, constraints and quotas.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/service-infrastructure/docs/service-networking/reference/rest/v1/services.connections/list
https://docs.cloud.google.com/dns/docs/reference/rest/v1/managedZones/list
https://docs.cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

from localgcp.errors import RefusedRequestError
from localgcp.inventory import resource_paths, vpc
from localgcp.inventory.machines import RESERVATION, all_reservations, find_reservation
from localgcp.inventory.resource_paths import project_number
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.reads.resources import (
    FIREWALL,
    PEERING,
    SELF_LINK,
    get,
    list_in_project,
    read_resource,
)

#: Constraints with boolean rules; other constraints list values.
_BOOLEAN: Final = re.compile(r"iam\.(disable|managed).*|storage\.(uniform|publicAccess).*")
#: Type of regional resources -> quota for their number.
_OF_A_REGION: Final = {
    RESERVATION: "RESERVATIONS",
    vpc.ATTACHMENT: "NETWORK_ATTACHMENTS",
    "gcp:compute/routerNat:RouterNat": "IN_USE_ADDRESSES",
}
#: Type of global resources -> quota for their number.
_OF_A_PROJECT: Final = {
    vpc.NETWORK: "NETWORKS",
    vpc.SUBNETWORK: "SUBNETWORKS",
    vpc.ADDRESS: "GLOBAL_INTERNAL_ADDRESSES",
    FIREWALL: "FIREWALLS",
    "gcp:compute/router:Router": "ROUTERS",
}


def reservation(request: Request) -> dict[str, Any]:
    """Return a reservation. Raises RefusedRequestError (404)."""
    name = request.name
    resource = None if request.denied else find_reservation(request.store, name)
    if resource is None:
        raise RefusedRequestError(404, f"The resource '{name}' was not found")
    document = read_resource(request.store, resource.path)
    share = document.get("shareSettings") or {}
    maps = {p["id"]: {"projectId": p["id"]} for p in share.get("projectMaps") or ()}
    shared = {"shareType": resource.share_type} | ({"projectMap": maps} if maps else {})
    return {**document, "shareSettings": shared, "status": "READY"}


def network(request: Request) -> dict[str, Any]:
    """Return a network with its peerings."""
    store, path = request.store, request.name
    connections = vpc.in_network(store, vpc.CONNECTION, path)
    names = [connection.outputs.get("peering") for connection in connections]
    names += [peering.outputs["name"] for peering in vpc.in_network(store, PEERING, path)]
    peerings = [{"name": name, "state": "ACTIVE"} for name in names if name]
    return {**read_resource(store, path), "peerings": peerings}


def listed(request: Request) -> dict[str, Any]:
    """Return firewall rules, routes or subnetworks of a project, or subnetworks by region."""
    collection = request.rest.rpartition("/")[2]
    if request.denied:
        raise refused(f"compute.{collection}.list", request.name)
    resources = list_in_project(request.store, request.project, collection)
    kind = f"compute#{collection.removesuffix('s')}"
    link = SELF_LINK + request.name + request.rest
    if not request.rest.startswith("/aggregated/"):
        return {"kind": f"{kind}List", "selfLink": link, "items": resources}
    items: dict[str, Any] = {}
    for resource in resources:
        region = f"regions/{resource['region'].rpartition('/')[2]}"
        items.setdefault(region, {}).setdefault(collection, []).append(resource)
    return {"kind": f"{kind}AggregatedList", "selfLink": link, "items": items}


def addresses(request: Request) -> dict[str, Any]:
    """Return global addresses, including the ranges of peerings."""
    resources = list_in_project(request.store, request.project, "addresses")
    return {"kind": "compute#addressList", "items": resources}


def host(request: Request) -> dict[str, Any]:
    """Return the host project of a service project; empty for a project without a host."""
    project = request.project
    for resource in request.store.list(vpc.SERVICE_PROJECT):
        if resource.outputs["serviceProject"] == project:
            return {"kind": "compute#project", "name": resource.outputs["hostProject"]}
    return {}


def connections(request: Request) -> dict[str, Any]:
    """Return the private connections of a network."""
    network_name = request.parameter("network")
    if not network_name.startswith("projects/"):
        raise RefusedRequestError(400, "network must be projects/NUMBER/global/networks/NAME.")
    path = resource_paths.canonical(request.store, network_name)
    documents = [
        {
            "network": network_name,
            "peering": connection.outputs.get("peering"),
            "reservedPeeringRanges": connection.outputs.get("reservedPeeringRanges") or [],
            "service": "services/servicenetworking.googleapis.com",
        }
        for connection in vpc.in_network(request.store, vpc.CONNECTION, path)
    ]
    return {"connections": documents} if documents else {}


def zones(request: Request) -> dict[str, Any]:
    """Return one private DNS zone for all names, because jobs use the DNS of this machine."""
    seen = [
        {"networkUrl": f"{resource_paths.SELF_LINK}{resource.id}"}
        for resource in request.store.list(vpc.NETWORK, request.project)
    ]
    zone = {"name": "this-machine", "dnsName": ".", "visibility": "private"}
    visibility = {"privateVisibilityConfig": {"networks": seen}}
    return {"managedZones": [{**zone, **visibility}] if seen else []}


def constraint(request: Request) -> dict[str, Any]:
    """Return the effective policy of a constraint, which allows everything."""
    project, name = request.variables
    rule = {"enforce": False} if _BOOLEAN.fullmatch(name) else {"allowAll": True}
    number = project_number(project)
    return {"name": f"projects/{number}/policies/{name}", "spec": {"rules": [rule]}}


def quota(request: Request) -> dict[str, Any]:
    """Return one quota limit, which is unlimited without a ``deny`` fault."""
    bucket = {} if request.denied else {"effectiveLimit": "-1"}  # JSON omits the limit 0
    limits = [{"unit": "1/{project}/{region}", "quotaBuckets": [bucket]}]
    metric = request.variables[-1]
    return {"name": request.name, "metric": metric, "consumerQuotaLimits": limits}


def region(request: Request) -> dict[str, Any]:
    """Return a region of Compute Engine with the project's usage."""
    project, name = request.variables
    used = Counter[str]({metric: 0 for metric in _OF_A_REGION.values()})
    for type_, metric in _OF_A_REGION.items():
        for resource in request.store.list(type_, project):
            zone = str(resource.outputs.get("zone") or "").rpartition("/")[2]
            used[metric] += (resource.outputs.get("region") or zone.rpartition("-")[0]) == name
    for reserved in all_reservations(request.store):
        if (reserved.project, reserved.region) == (project, name) and reserved.shape.accelerator:
            gpu = reserved.shape.accelerator.replace("TESLA_", "")
            used[f"{gpu}_GPUS"] += reserved.count * reserved.shape.count
    return {"kind": "compute#region", "name": name, "status": "UP", "quotas": _quotas(used)}


def project_of_compute(request: Request) -> dict[str, Any]:
    """Return a project of Compute Engine with its usage in all regions."""
    name = request.project
    used = Counter({m: len(request.store.list(type_, name)) for type_, m in _OF_A_PROJECT.items()})
    document = {"kind": "compute#project", "name": name, "quotas": _quotas(used)}
    is_host = request.store.get(vpc.HOST_PROJECT, name) is not None
    return {**document, "xpnProjectStatus": "HOST"} if is_host else document


def _quotas(used: Counter[str]) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "limit": 1_000_000.0, "usage": float(count)}
        for metric, count in sorted(used.items())
    ]


METHODS: Final = {
    "compute.v1.reservations.get": ReadMethod(reservation, None),
    "compute.v1.networks.get": ReadMethod(network),
    "compute.v1.firewalls.list": ReadMethod(listed, None),
    "compute.v1.routes.list": ReadMethod(listed, None),
    "compute.v1.subnetworks.aggregatedList": ReadMethod(listed, None),
    "compute.v1.globalAddresses.list": ReadMethod(addresses),
    "compute.v1.networkAttachments.get": ReadMethod(get),
    "compute.v1.projects.getXpnHost": ReadMethod(host, "compute.projects.get"),
    "compute.v1.projects.get": ReadMethod(project_of_compute),
    "compute.v1.regions.get": ReadMethod(region),
    "servicenetworking.v1.services.connections.list": ReadMethod(
        connections, "servicenetworking.services.get"
    ),
    "dns.v1.managedZones.list": ReadMethod(zones),
    "orgpolicy.v2.projects.policies.getEffectivePolicy": ReadMethod(
        constraint, "orgpolicy.policy.get"
    ),
    "serviceusage.v1beta1.services.consumerQuotaMetrics.get": ReadMethod(quota, None),
}
