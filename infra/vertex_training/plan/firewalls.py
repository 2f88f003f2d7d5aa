"""Traffic that a firewall rule allows, and whether its other end is any address. Pure.

A module of its own: policy packs read it, whose environment lacks what stack files are read with.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

Block = ipaddress.IPv4Network | ipaddress.IPv6Network
Direction = Literal["INGRESS", "EGRESS"]
#: Ranges with every address: what a rule without ranges holds for.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
#: Half of the addresses of the internet; all of IPv6 are in ``2000::/3``:
#: https://www.iana.org/assignments/ipv6-address-space
_HALF: Final = {4: 2**31, 6: 2**124}


def open_ranges(inputs: Mapping[str, Any] | None, direction: Direction) -> tuple[str, ...]:
    """Ranges by which an enabled rule of this direction lets any address through; empty if none.

    A rule without sources or destinations holds for all:
    https://docs.cloud.google.com/firewall/docs/firewalls
    """
    if not inputs or not _allows(inputs):
        return ()
    is_egress = inputs.get("direction") == "EGRESS"
    if is_egress != (direction == "EGRESS"):
        return ()
    if is_egress:
        return covering(inputs.get("destinationRanges") or ANYWHERE)
    named = any(map(inputs.get, ("sourceTags", "sourceServiceAccounts")))
    return covering(inputs.get("sourceRanges") or (() if named else ANYWHERE))


def reaches_anywhere(inputs: Mapping[str, Any] | None) -> bool:
    """Return whether a rule opens machines to any address: outward, or inward of all machines.

    An ingress rule without ranges of destinations is for the machines that it is about.
    """
    if not inputs or not _allows(inputs):
        return False
    return bool(covering(inputs.get("destinationRanges")) or open_ranges(inputs, "EGRESS"))


def _allows(inputs: Mapping[str, Any]) -> bool:
    """Return whether the rule is enabled and allows traffic."""
    return bool(inputs.get("allows")) and inputs.get("disabled") is not True


def covering(ranges: Any) -> tuple[str, ...]:
    """Those of a rule's ranges that have as many addresses as half of the internet, or more.

    Alone, or else together: whoever may not name ``0.0.0.0/0`` names its two halves. Empty if they
    have less, or are not known yet.

    >>> covering(["10.0.0.0/8", "2000::/3"]), covering(["0.0.0.0/2", "192.0.0.0/2", "10.0.0.1"])
    (('2000::/3',), ('0.0.0.0/2', '192.0.0.0/2', '10.0.0.1'))
    """
    blocks = [(str(text), found) for text in _listed(ranges) if (found := _block(text))]
    if alone := tuple(text for text, block in blocks if _is_half([block])):
        return alone
    versions = [[each for each in blocks if each[1].version == version] for version in (4, 6)]
    together = (same for same in versions if same and _is_half([block for _, block in same]))
    return tuple(text for same in together for text, _ in same)


def _listed(ranges: Any) -> Sequence[Any]:
    return ranges if isinstance(ranges, list | tuple) else ()


def _block(text: Any) -> Block | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None  # a value that is known later


def _is_half(blocks: Sequence[Any]) -> bool:
    addresses = sum(block.num_addresses for block in ipaddress.collapse_addresses(blocks))
    return addresses >= _HALF[blocks[0].version]
