"""Policies on firewall rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.resource_types import FIREWALL
from vertex_training.guardrails.policy import Resource, items, policy

ANYWHERE: Final = ("0.0.0.0/0", "::/0")


@policy(
    "no-ingress-from-anywhere",
    "critical",
    why="Workers talk to each other only; whatever listens would be reached from the internet.",
    url="https://docs.cloud.google.com/firewall/docs/firewalls",
    standards=("CIS GCP 3.6", "CIS GCP 3.7", "CKV_GCP_2", "CKV_GCP_3"),
)
def no_ingress_from_anywhere(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """No firewall rule lets the whole internet in."""
    props = resource.props
    outward = props.get("direction") == "EGRESS" or props.get("disabled") is True
    if resource.type != FIREWALL or outward or not items(props, "allows"):
        return
    for source in items(props, "sourceRanges"):
        if source in ANYWHERE:
            ports = [str(allow.get("protocol")) for allow in items(props, "allows")]
            yield f"{source} may reach it ({', '.join(ports)}). Hint: name the ranges that need it"
