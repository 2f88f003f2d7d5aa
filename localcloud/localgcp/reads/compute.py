"""Reservations, what is in a network, and what a network is joined to.

https://docs.cloud.google.com/compute/docs/reference/rest/v1
https://docs.cloud.google.com/service-infrastructure/docs/service-networking/reference/rest/v1/services.connections/list
https://docs.cloud.google.com/dns/docs/reference/rest/v1/managedZones/list
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import unquote

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Service
from localgcp.inventory import reservations, resource_paths, vpc
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.reads.resources import SELF_LINK, list_in_project, read_network, read_resource

#: Fields of a reservation that the provider has as the API has them.
_SAME: Final = ("specificReservationRequired", "reservationSharingPolicy", "deleteAtTime")
#: The project of what is listed.
_LISTED: Final = r"projects/(?P<project>[^/]+)/"


def reservation(request: Request) -> dict[str, Any]:
    """A reservation that is there."""
    name = request.match["name"]
    found = None if request.denied else reservations.find(request.store, name)
    if found is None:
        raise RefusedRequestError(404, f"The resource '{name}' was not found")
    stored = request.store.get(reservations.RESERVATION, found.path)
    values = dict(stored.outputs) if stored else {}
    share = values.get("shareSettings") or {}
    maps = {each["id"]: {"projectId": each["id"]} for each in share.get("projectMaps") or ()}
    shared = {"shareType": found.share_type} | ({"projectMap": maps} if maps else {})
    machines = {**values["specificReservation"], "count": str(found.count)}  # int64, as JSON has it
    same = {key: values[key] for key in _SAME if key in values}
    given = {"shareSettings": shared, "specificReservation": machines, "status": "READY"}
    return {**read_resource(request.store, found.path), **same, **given}


def network(request: Request) -> dict[str, Any]:
    """A network with its peerings."""
    return read_network(request.store, request.match["name"])


def listed(request: Request) -> dict[str, Any]:
    """Firewall rules, routes or subnetworks of a project; those of regions by region."""
    project, collection = request.match["project"], request.match["collection"]
    if request.denied:
        raise refused(f"compute.{collection}.list", f"projects/{project}")
    found = list_in_project(request.store, project, collection)
    kind = f"compute#{collection.removesuffix('s')}"
    link = SELF_LINK + unquote(request.match[0]).removeprefix("/compute/v1/")
    if not request.match["aggregated"]:
        return {"kind": f"{kind}List", "selfLink": link, "items": found}
    items: dict[str, Any] = {}
    for each in found:
        region = f"regions/{each['region'].rpartition('/')[2]}"
        items.setdefault(region, {}).setdefault(collection, []).append(each)
    return {"kind": f"{kind}AggregatedList", "selfLink": link, "items": items}


def addresses(request: Request) -> dict[str, Any]:
    """Global addresses, among them the ranges of peering."""
    found = list_in_project(request.store, request.match["project"], "addresses")
    return {"kind": "compute#addressList", "items": found}


def attachment(request: Request) -> dict[str, Any]:
    """A network attachment."""
    return read_resource(request.store, request.match["name"])


def host(request: Request) -> dict[str, Any]:
    """The host project of a service project; nothing of one that is attached to none."""
    project = request.match["project"]
    for each in request.store.list(vpc.SERVICE_PROJECT):
        if each.outputs["serviceProject"] == project:
            return {"kind": "compute#project", "name": each.outputs["hostProject"]}
    return {}


def connections(request: Request) -> dict[str, Any]:
    """Connections of a network with Google's services."""
    given = (request.query.get("network") or [""])[0]
    if not given.startswith("projects/"):
        raise RefusedRequestError(400, "network must be projects/NUMBER/global/networks/NAME.")
    path = resource_paths.canonical(request.store, given)
    found = [
        {
            "network": given,
            "peering": each.outputs.get("peering"),
            "reservedPeeringRanges": each.outputs.get("reservedPeeringRanges") or [],
            "service": "services/servicenetworking.googleapis.com",
        }
        for each in vpc.in_network(request.store, vpc.CONNECTION, path)
    ]
    return {"connections": found} if found else {}


def zones(request: Request) -> dict[str, Any]:
    """One private zone that has all names: jobs look up those of this machine."""
    project = request.match["project"]
    seen = [
        {"networkUrl": f"{resource_paths.SELF_LINK}{each.id}"}
        for each in request.store.list(vpc.NETWORK, project)
    ]
    zone = {"name": "this-machine", "dnsName": ".", "visibility": "private"}
    visibility = {"privateVisibilityConfig": {"networks": seen}}
    return {"managedZones": [{**zone, **visibility}] if seen else []}


METHODS: Final = (
    ReadMethod(
        Service.COMPUTE,
        "reservations.get",
        "GET",
        re.compile(r"/compute/v1/(?P<name>projects/[^/]+/zones/[^/]+/reservations/[^/]+)"),
        reservation,
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
    *(
        ReadMethod(service, method, "GET", re.compile(path), answer, permission)
        for service, method, path, answer, permission in (
            (
                Service.COMPUTE,
                "globalAddresses.list",
                rf"/compute/v1/{_LISTED}global/addresses",
                addresses,
                "compute.globalAddresses.list",
            ),
            (
                Service.COMPUTE,
                "networkAttachments.get",
                r"/compute/v1/(?P<name>projects/[^/]+/regions/[^/]+/networkAttachments/[^/]+)",
                attachment,
                "compute.networkAttachments.get",
            ),
            (
                Service.COMPUTE,
                "projects.getXpnHost",
                rf"/compute/v1/{_LISTED}getXpnHost",
                host,
                "compute.projects.get",
            ),
            (
                Service.SERVICE_NETWORKING,
                "services.connections.list",
                r"/v1/services/servicenetworking\.googleapis\.com/connections",
                connections,
                "servicenetworking.services.get",
            ),
            (
                Service.DNS,
                "managedZones.list",
                rf"/dns/v1/{_LISTED}managedZones",
                zones,
                "dns.managedZones.list",
            ),
        )
    ),
)
