"""Versions and endpoints of a plan as whole values, and the tables that a report has of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.vt.review import plans
from tests.unit.vt.review.test_serving import (
    BOTH,
    ONE,
    PRIVATE,
    SHELL,
    TRAFFIC,
    Event,
    shell,
    traffic,
)
from vertex_training_cli.review import serving
from vertex_training_cli.review.serving import (
    EndpointChange,
    endpoint_changes,
)


def endpoint(**more: Any) -> EndpointChange:
    found: dict[str, Any] = {
        "name": "titanic", "model": "titanic", "action": "change", "before": ONE, "after": BOTH,
        "machine": "1 to 2 x n1-standard-2 a version", "cost_before": None, "cost": None,
        "reach_before": "", "reach": "", "account": "trainer@p.iam",
        "metrics": {"run 3": {}, "run 4": {}},
    }  # fmt: skip
    return EndpointChange(**found | more)


def without_costs(*events: Event) -> EndpointChange:
    [found] = endpoint_changes(plans.plan(*events))
    return endpoint(**{
        name: getattr(found, name) for name in EndpointChange.__slots__
        if name not in ("cost", "cost_before")
    })  # fmt: skip


@pytest.mark.parametrize(
    ("shell_event", "reach_before", "reach", "text"),
    [
        (plans.create(SHELL, "s", **shell()), "", "public", "public"),
        (plans.create(SHELL, "s", **shell(**PRIVATE)), "", "private, by Private Service Connect",
         "private, by Private Service Connect"),
        (plans.create(SHELL, "s", **shell(network="n")), "", "private, by peering",
         "private, by peering"),
        (plans.step("same", SHELL, "s", shell(), shell()), "public", "public", "public"),
        (plans.delete(SHELL, "s", **shell()), "public", "", "public"),
        (plans.create(SHELL, "s", **shell(name="other")), "", "", ""),
    ],
)  # fmt: skip
def test_an_endpoint_is_reached_as_its_shell_says(
    shell_event: Event, reach_before: str, reach: str, text: str
) -> None:
    found = without_costs(
        shell_event, plans.step("update", TRAFFIC, "t", traffic(ONE), traffic(BOTH))
    )
    assert found == endpoint(reach_before=reach_before, reach=reach)
    assert serving.reach_text(found) == text


@pytest.mark.parametrize(
    ("old", "new", "is_raised"),
    [
        (None, traffic(ONE), True),
        (traffic(ONE), traffic(ONE, most=3), True),
        (traffic(ONE), traffic(ONE, most=1), False),
        (traffic(ONE, least=2), traffic(ONE, most=1), False),
        (traffic(ONE, machine="n9-x"), traffic(ONE), True),
        (None, traffic({}), False),
    ],
)
def test_more_a_month_is_a_raise(old: Event | None, new: Event | None, is_raised: bool) -> None:
    op = "create" if old is None else "delete" if new is None else "update"
    found = serving.raised_costs(plans.plan(plans.step(op, TRAFFIC, "t", old, new)))
    assert bool(found) is is_raised
