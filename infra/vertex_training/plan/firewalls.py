"""Finds firewall rules that allow traffic with any address. Pure.

A separate module for policy packs, whose environment lacks the packages to read stack files.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

Block = ipaddress.IPv4Network | ipaddress.IPv6Network
Direction = Literal["INGRESS", "EGRESS"]
#: Ranges with every address: default of a rule without ranges.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
#: Half of the addresses of the internet; all of IPv6 are in ``2000::/3``:
#: https://www.iana.org/assignments/ipv6-address-space
_HALF: Final = {4: 2**31, 6: 2**124}


def open_ranges(inputs: Mapping[str, Any] | None, direction: Direction) -> tuple[str, ...]:
    """Return ranges by which an enabled rule of this direction allows any address; can be empty.

    A rule without sources or destinations applies to all:
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
    """Return True if a rule allows egress to any address, or ingress to all machines.

    An ingress rule without destination ranges applies to its target machines.
    """
    if not inputs or not _allows(inputs):
        return False
    return bool(covering(inputs.get("destinationRanges")) or open_ranges(inputs, "EGRESS"))


def _allows(inputs: Mapping[str, Any]) -> bool:
    """Return True if the rule is enabled, and allows traffic instead of denying it."""
    return bool(inputs.get("allows")) and inputs.get("disabled") is not True


def covering(ranges: Any) -> tuple[str, ...]:
    """Return the ranges that together cover at least half of the internet's addresses.

    Ranges count alone, or else together, since ``0.0.0.0/0`` can be written as two halves. Empty if
    the ranges have fewer addresses, or are unknown.

    >>> covering(["10.0.0.0/8", "2000::/3"]), covering(["0.0.0.0/2", "192.0.0.0/2", "10.0.0.1"])
    (('2000::/3',), ('0.0.0.0/2', '192.0.0.0/2', '10.0.0.1'))
    """
    blocks = [(str(text), parsed) for text in _listed(ranges) if (parsed := _block(text))]
    if alone := tuple(text for text, block in blocks if _is_half([block])):
        return alone
    versions = [[item for item in blocks if item[1].version == version] for version in (4, 6)]
    together = (same for same in versions if same and _is_half([block for _, block in same]))
    return tuple(text for same in together for text, _ in same)


def _listed(ranges: Any) -> Sequence[Any]:
    return ranges if isinstance(ranges, list | tuple) else ()


def _block(text: Any) -> Block | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None  # an unknown value


def _is_half(blocks: Sequence[Any]) -> bool:
    addresses = sum(block.num_addresses for block in ipaddress.collapse_addresses(blocks))
    return addresses >= _HALF[blocks[0].version]
