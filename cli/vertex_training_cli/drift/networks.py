"""What is in a network that the stack made, and that nobody declares.

A refresh reads what the state has. Somebody else's firewall rule, subnet, route or peering in the
network is in no state: these are listed, and compared with the ids of the state.

https://docs.cloud.google.com/compute/docs/reference/rest/v1/networks has fields and methods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from vertex_training.errors import ForbiddenReadError
from vertex_training_cli import rest
from vertex_training_cli.drift.findings import (
    ADDED,
    DeclaredNetwork,
    PropertyDifference,
    ResourceDifference,
)
from vertex_training_cli.rest import RestClient

#: What is in a network, by the name of its collection -> its list.
LISTS: Final = {
    "firewalls": rest.FIREWALLS,
    "subnetworks": rest.SUBNETWORKS,
    "routes": rest.ROUTES,
}
WORDS: Final = {
    "firewalls": "firewall rule",
    "subnetworks": "subnetwork",
    "routes": "route",
    "peerings": "network peering",
}
_GATEWAY: Final = "/gateways/default-internet-gateway"


def undeclared_parts(
    client: RestClient, network: DeclaredNetwork, ids: Collection[str]
) -> tuple[list[ResourceDifference], list[str]]:
    """What is in a network of the stack and in no state, and what could not be read, in words.

    ``ids`` are those of the state.

    Raises:
        CommandError: there is no answer, or another one than a refusal.
    """
    found, refused = list[ResourceDifference](), list[str]()
    project = network.path.split("/")[1]
    for collection, read in LISTS.items():
        try:
            found += [
                _difference(collection, _path(item["selfLink"]), _facts(item))
                for item in client.items(read, project)
                if _path(str(item.get("network"))) == network.path
                and not _is_made_with_network(item)
            ]
        except ForbiddenReadError:
            what = WORDS[collection]
            refused.append(f"{what}s of {network.path}: {read.permission} is missing")
    try:
        document = client.get(rest.NETWORK.url(network.path), network.path) or {}
        found += [_peering(network.path, each) for each in document.get("peerings", ())]
    except ForbiddenReadError:
        missing = rest.NETWORK.permission
        refused.append(f"network peerings of {network.path}: {missing} is missing")
    # A peering that a team's extra.py makes has NETWORK/NAME as its id.
    own = {f"{network.path}/peerings/{name}" for name in network.peerings}
    short = network.path.rpartition("/")[2]
    left = (e for e in found if e.id not in own and not {e.id, f"{short}/{e.name}"} & {*ids})
    return sorted(left, key=lambda each: each.id), refused


def _peering(network: str, item: Mapping[str, Any]) -> ResourceDifference:
    facts = [(name, str(item[name])) for name in ("network", "state") if item.get(name)]
    return _difference("peerings", f"{network}/peerings/{item['name']}", facts)


def _difference(collection: str, path: str, facts: Iterable[tuple[str, str]]) -> ResourceDifference:
    name = path.rpartition("/")[2]
    resource = f"{collection}/{name}"
    note = (
        "No deployment removes it. Delete it, declare it in `extra.py`, or list "
        f"`{resource}` with its reason under `drift.allowedResources`."
    )
    fields = tuple(PropertyDifference(field, value, "") for field, value in facts)
    return ResourceDifference(ADDED, name, WORDS[collection], path, fields, note, resource=resource)


def _is_made_with_network(item: Mapping[str, Any]) -> bool:
    """Return whether it is a route that comes with a network, a subnet or a peering.

    https://docs.cloud.google.com/vpc/docs/routes
    """
    if item.get("nextHopNetwork") or item.get("nextHopPeering"):
        return True
    is_default = str(item.get("name")).startswith("default-route-")
    return is_default and str(item.get("nextHopGateway")).endswith(_GATEWAY)


def _facts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("direction", "sourceRanges", "destinationRanges", "ipCidrRange", "destRange"):
        if value := item.get(name):
            yield name, ", ".join(value) if isinstance(value, list) else str(value)
    for name in ("allowed", "denied"):
        if rules := item.get(name):
            yield name, ", ".join(_rule(rule) for rule in rules)
    for name, value in item.items():
        if name.startswith("nextHop"):
            yield name, str(value)


def _rule(rule: Mapping[str, Any]) -> str:
    ports = ",".join(rule.get("ports") or ())
    return f"{rule.get('IPProtocol')}:{ports}" if ports else str(rule.get("IPProtocol"))


def _path(link: str) -> str:
    """The path of a full link, from ``projects/`` on."""
    _, found, rest = link.partition("projects/")
    return found + rest
