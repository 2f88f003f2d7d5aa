"""Types that are previewed only, and plan more than their schema says."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..codec import Unknown, plain
from ..diff import UPDATE, Change
from ..rules import firewall_needs_a_source
from .base import Service


@dataclass(frozen=True)
class Subnetwork(Service):
    """A subnetwork grows in place; any other change of its range replaces it."""

    title: str = "Subnetwork"
    built: bool = False

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        old, new = olds.get("ipCidrRange"), news.get("ipCidrRange")
        if not old or not new or isinstance(new, Unknown):
            return []
        before = ipaddress.ip_network(old, strict=False)
        after = ipaddress.ip_network(new, strict=False)
        grown = before.version == after.version and _contains(after, before)
        # The plugin reports this replacement on no property of its own.
        return [] if grown else [Change("__meta", UPDATE, replace=True)]


def _contains(outer: Any, inner: Any) -> bool:
    return inner.subnet_of(outer)


@dataclass(frozen=True)
class Firewall(Service):
    """A rule for incoming traffic must say where it comes from."""

    title: str = "Firewall"
    built: bool = False

    def refuse(self, inputs: Mapping[str, Any]) -> str | None:
        return firewall_needs_a_source(plain(dict(inputs)))
