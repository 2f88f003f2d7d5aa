"""Entries under another name: what is made anew for want of `formerly`, or with a wrong one."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import renames, report


def warnings(sections: dict[str, object], *told: plans.Event) -> list[str]:
    config = {f"vertex-training:{key}": json.dumps(value) for key, value in sections.items()}
    prelude = {"preludeEvent": {"config": config}}
    found = report.build(plans.plan(prelude, *told), source="here")
    return [each.message for each in found.warnings]


KEPT = plans.step("same", plans.BUCKET, "storage-control", old={"name": "c"}, new={"name": "c"})
RENAMED = {"buckets": {"corpus": {"formerly": "dta"}}}


def test_a_first_name_that_nothing_had_is_told() -> None:
    made = plans.create(plans.BUCKET, "storage-dta", name="acme-dta-dev")
    gone = plans.delete(plans.BUCKET, "storage-data", name="acme-data-dev")
    [told] = warnings(RENAMED, KEPT, made, gone)
    assert told.startswith("buckets.corpus: formerly: dta names nothing that is deployed")


BUCKET = {"name": "acme-data-dev", "labels": {"data": "yes", "database": "no"}}


def found(*told: plans.Event, outputs: Any = None, **sections: Any) -> Plan:
    stack = plans.step("same", "pulumi:pulumi:Stack", "s", {}, {}, outputs=outputs or {})
    config = {f"vertex-training:{key}": json.dumps(value) for key, value in sections.items()}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


def test_another_type_or_a_resource_that_stays_is_no_renamed_one() -> None:
    made = plans.create(plans.BUCKET, "storage-corpus", name="acme-corpus")
    network = plans.delete("gcp:compute/network:Network", "storage-data", name="acme-data")
    stays = plans.step("update", plans.BUCKET, "storage-data", {"name": "acme-data"}, {"name": "x"})
    left = plans.delete(plans.BUCKET, "other-data", name="acme-data")
    for other in (network, stays, left):
        assert renames.renames(found(made, other, buckets={"corpus": {}})) == ()
