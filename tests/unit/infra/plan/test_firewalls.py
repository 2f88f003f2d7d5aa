"""Whether the other end of a firewall rule is any address there is, however it is written."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.plan.access import Direction, covering, open_ranges

TCP = [{"protocol": "tcp"}]
BOTH = ("0.0.0.0/0", "::/0")


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        (["0.0.0.0/0", "10.0.0.0/8"], ["0.0.0.0/0"]),
        (["::/0"], ["::/0"]),
        (["0::/0"], ["0::/0"]),
        (["0.0.0.1/0"], ["0.0.0.1/0"]),
        (["0.0.0.0/2", "64.0.0.0/2"], ["0.0.0.0/2", "64.0.0.0/2"]),
        # Less than half, the same range twice, and what is known later:
        (["(known later)", None, {}], []),
    ],
)  # fmt: skip
def test_ranges_with_half_of_all_addresses_are_anywhere(ranges: Any, found: list[str]) -> None:
    assert covering(ranges) == tuple(found)


@pytest.mark.parametrize(
    ("rule", "inward", "outward"),
    [
        ({"allows": TCP, "direction": "(known later)"}, BOTH, ()),
        ({"allows": TCP}, BOTH, ()),
        ({"allows": TCP, "disabled": False, "direction": "INGRESS"}, BOTH, ()),
        ({"allows": TCP, "disabled": True}, (), ()),
        ({"allows": TCP, "sourceRanges": ["10.0.0.0/8"]}, (), ()),
        ({"allows": TCP, "direction": "EGRESS"}, (), BOTH),
    ],
)
def test_a_rule_is_open_by_its_own_direction_alone(
    rule: Any, inward: tuple[str, ...], outward: tuple[str, ...]
) -> None:
    sides: tuple[Direction, ...] = ("INGRESS", "EGRESS")
    assert tuple(open_ranges(rule, side) for side in sides) == (inward, outward)
