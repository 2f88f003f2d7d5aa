"""The engine's events become a plan."""

from __future__ import annotations

import json

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Diagnostic, Plan, PolicyViolation, ResourceState, Step


def test_an_error_makes_a_preview_a_failed_one_whatever_its_summary_says() -> None:
    assert plans.plan().succeeded
    assert not plans.plan(plans.said("error", "no")).succeeded
    assert not plans.plan(plans.summary("failed")).succeeded
    assert not events.parse(plans.lines()[:-1], "dev").succeeded  # cut off before the summary


URN = "urn:pulumi:dev::p::a:b:C::x"
#: What an event has about a resource before a step, and what becomes of it.
OLD = {
    "inputs": {"n": 1},
    "outputs": {"m": 2},
    "protect": True,
    "id": "i",
    "retainOnDelete": True,
}
BEFORE = ResourceState({"n": 1}, {"m": 2}, protect=True, id="i", retained=True)


def read(*told: dict[str, object]) -> Plan:
    """The plan of these events alone."""
    return events.parse([json.dumps({"sequence": n, **e}) for n, e in enumerate(told)], "dev")


def metadata(op: str, **more: object) -> dict[str, object]:
    step = {"op": op, "urn": URN, "type": "a:b:C", "old": None, "new": None, **more}
    return {"resourcePreEvent": {"metadata": step}}


def test_a_stream_becomes_one_plan() -> None:
    looked = {"policyPackName": "acme", "policyPackVersion": "1"}
    more = {"detailedDiff": {"p.q": {}}, "diffs": ["p"], "keys": ["k"]}
    found = read(
        {"preludeEvent": {"config": {"a:b": "c"}}},
        metadata("replace", old=OLD, new={"inputs": {"n": 2}}, **more),
        {"diagnosticEvent": {"severity": "warning", "message": " w\n", "urn": URN}},
        {"policyAnalyzeSummaryEvent": {**looked, "passed": ["a"]}},
        {"policyAnalyzeStackSummaryEvent": {**looked, "failed": ["b"]}},
        {"policyAnalyzeStackSummaryEvent": {"policyPackName": "bare"}},
        {
            "policyEvent": {
                "policyName": "b", "policyPackName": "acme", "enforcementLevel": "advisory",
                "message": " m\n", "resourceUrn": URN, "severity": "high",
            }
        },
        {"policyEvent": {"policyName": "of little"}},
        {
            "summaryEvent": {
                "result": "succeeded",
                "PolicyPacks": {"acme|local|/x": "2", "own|local|/y": "3", "other": "4"},
            }
        },
    )  # fmt: skip
    assert found == Plan(
        "dev",
        {"a:b": "c"},
        (Step("replace", URN, "a:b:C", BEFORE, ResourceState({"n": 2}, {}), ("k",), ("p.q",)),),
        (Diagnostic("warning", "w", URN),),
        (
            PolicyViolation("b", "acme", "advisory", "m", URN, "high"),
            PolicyViolation("of little", "", "", "", "", ""),
        ),
        # what has looked at resources names its version itself
        {"acme": "1", "bare": "", "own": "3", "other": "4"},
        frozenset({"a", "b"}),
        {},
        succeeded=True,
    )
