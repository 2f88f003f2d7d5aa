"""The document of ``pulumi preview --json`` becomes a plan."""

from __future__ import annotations

import json

from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Diagnostic, Plan, ResourceState, Step

URN = "urn:pulumi:dev::p::a:b:C::x"
STATE = ResourceState({"n": 1}, {"m": 2}, protect=True, id="i", retained=True)
RAW = {
    "type": "a:b:C",
    "inputs": {"n": 1},
    "outputs": {"m": 2},
    "protect": True,
    "id": "i",
    "retainOnDelete": True,
}


def parse(document: object, *, succeeded: bool = True) -> Plan:
    return events.parse_document(json.dumps(document), "dev", succeeded=succeeded)


def test_a_document_becomes_one_plan() -> None:
    found = parse(
        {
            "config": {"gcp:project": "x"},
            "steps": [
                {"op": "update", "urn": URN, "oldState": RAW, "newState": RAW | {"id": "j"},
                 "detailedDiff": {"labels": {}, "q.r": {}, "effectiveLabels": {}}},
                {"op": "create", "urn": URN, "newState": {"type": "a:b:D"}, "detailedDiff": None},
                {"op": "delete", "urn": URN, "oldState": RAW},
                {"op": "same", "urn": URN},
            ],
            "diagnostics": [
                {"severity": "error", "message": " password=hunter2hunter2\n", "urn": URN}, {},
            ],
            "changeSummary": {"update": 1},
        }
    )  # fmt: skip
    changed = ResourceState({"n": 1}, {"m": 2}, protect=True, id="j", retained=True)
    assert found == Plan(
        "dev",
        steps=(
            Step("update", URN, "a:b:C", STATE, changed, (), ("labels", "q.r")),
            Step("create", URN, "a:b:D", None, ResourceState({}, {})),
            Step("delete", URN, "a:b:C", STATE, None),
            Step("same", URN, "", None, None),
        ),
        diagnostics=(
            Diagnostic("error", "password=[secret]", URN),
            Diagnostic("info", "", ""),
        ),
        succeeded=True,
    )
