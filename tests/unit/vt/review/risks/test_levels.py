"""Policies whose level a change lowers: old and new in the headline, and in the digest."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import formats, report


def planned(
    now: dict[str, str], before: dict[str, str] | None = None, file: dict[str, str] | None = None
) -> Plan:
    outputs = {} if before is None else {"policyLevels": before}
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {}, outputs=outputs
    )
    config = {"vertex-training:policyLevels": json.dumps(now)}
    found = events.parse(plans.lines(stack, config=config), "dev")
    return dataclasses.replace(found, levels=now | (file or {}))


def test_every_format_names_the_policies_that_are_not_mandatory() -> None:
    found = report.build(planned({"p": "advisory", "q": "mandatory"}), source="here")
    assert "Policies that are not mandatory in this stack: `p` `advisory`." in formats.to_markdown(
        found
    )
    assert "Policies that are not mandatory in this stack" in formats.to_html(found)
    told = json.loads(formats.to_json(found))["policies"]
    assert told["levels"] == {"p": "advisory", "q": "mandatory"}
    assert told["lowered"] == [{"path": "p", "old": "mandatory", "new": "advisory"}]
