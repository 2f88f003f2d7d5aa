"""What a resource names that waits for components: them, and what in them does not exist."""

from __future__ import annotations

import asyncio
from typing import Any

import pulumi
import pytest

from tests.unit.infra.recorder import Recorder
from vertex_training.components.ordering import component_dependencies


class Missing(Recorder):
    """Answers without an id for what was left out."""

    def new_resource(self, args: Any) -> Any:
        id_, state = super().new_resource(args)
        return ("" if args.name.startswith("left-out") else id_), state


@pytest.mark.parametrize(
    ("preview", "named"),
    [
        # In a preview what is to be created has no id either.
        (True, ["outer", "alone"]),
        (False, ["outer", "alone", "left-out"]),
    ],
)
def test_components_and_their_missing_parts_are_named(preview: bool, named: list[str]) -> None:
    found: list[str] = []
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Missing(), "acme", "dev", preview=preview)

    @pulumi.runtime.test
    def run() -> pulumi.Output[None]:
        outer = pulumi.ComponentResource("test:a:Outer", "outer")
        below = pulumi.ResourceOptions(parent=outer)
        inner = pulumi.ComponentResource("test:a:Inner", "inner", opts=below)
        pulumi.CustomResource("test:a:Thing", "there", opts=below)
        below = pulumi.ResourceOptions(parent=inner)
        pulumi.CustomResource("test:a:Thing", "left-out", opts=below)
        alone = pulumi.CustomResource("test:a:Thing", "alone")
        waits = component_dependencies([outer, alone])
        urns = waits.apply(lambda given: pulumi.Output.all(*(each.urn for each in given)))
        return urns.apply(lambda all_: found.extend(urn.rpartition("::")[2] for urn in all_))

    run()
    assert found == named
