"""Policies on firewall rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vertex_training.catalog.resource_types import FIREWALL
from vertex_training.guardrails.policy import Resource, items, policy
from vertex_training.plan.network import open_ranges


@policy(
    "no-ingress-from-anywhere",
    "critical",
    why="Workers talk to each other only; whatever listens would be reached from the internet.",
    url="https://docs.cloud.google.com/firewall/docs/firewalls",
    standards=("CIS GCP 3.6", "CIS GCP 3.7", "CKV_GCP_2", "CKV_GCP_3"),
)
def no_ingress_from_anywhere(resource: Resource, _settings: Mapping[str, Any]) -> Iterator[str]:
    """No firewall rule lets the whole internet in."""
    if resource.type == FIREWALL and (ranges := open_ranges(resource.props, "INGRESS")):
        allowed = [str(each.get("protocol")) for each in items(resource.props, "allows")]
        protocols = ", ".join(allowed) or "protocols known later"
        hint = "name the ranges that need it"
        yield f"{', '.join(ranges)} may reach it ({protocols}). Hint: {hint}"
