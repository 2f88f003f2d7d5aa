"""The engine's events become a plan."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import EventParseError
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Diagnostic, Plan, PolicyViolation, ResourceState, Step


def test_what_an_earlier_run_left_to_delete_is_told() -> None:
    plan = plans.plan(plans.step("delete-replaced", plans.BUCKET, "storage-x", old={"name": "x"}))
    assert [step.op for step in plan.changed] == ["delete-replaced"]


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


@pytest.mark.parametrize(
    ("told", "diagnostics"),
    [
        ({"errorEvent": {"error": " no plugin\n"}}, (Diagnostic("error", "no plugin", ""),)),
        ({"diagnosticEvent": {"message": "m"}}, (Diagnostic("info", "m", ""),)),
        ({"diagnosticEvent": {"severity": "error", "message": "m", "ephemeral": True}}, ()),
        ({"diagnosticEvent": {"severity": "error"}}, ()),
        ({"diagnosticEvent": {"severity": "error", "message": " \n"}}, ()),
        ({"cancelEvent": {}}, ()),
    ],
)
def test_what_is_said_is_told_once_and_what_passes_by_is_not(
    told: dict[str, object], diagnostics: tuple[Diagnostic, ...]
) -> None:
    assert read(told, told) == Plan("dev", diagnostics=diagnostics)


CHANGED = {"inputs": {"n": 7}}
AS_IT_IS = ResourceState({"n": 7}, {})


@pytest.mark.parametrize(
    ("refreshed", "then", "old", "deployed"),
    [
        (OLD, CHANGED, AS_IT_IS, BEFORE),  # it was changed in the cloud
        (OLD, None, None, BEFORE),  # it is gone
        (OLD, OLD, BEFORE, None),
        (OLD, OLD | {"outputs": {}}, ResourceState({"n": 1}, {}, True, "i", True), None),
        (None, CHANGED, AS_IT_IS, None),
    ],
)
def test_a_refresh_that_found_something_else_leaves_what_the_state_had(
    refreshed: object, then: object, old: object, deployed: object
) -> None:
    told = [metadata("refresh", old=refreshed)] if refreshed else []
    [step] = read(*told, metadata("update", old=then, diffs=["n"])).steps
    assert step == Step("update", URN, "a:b:C", old, None, (), ("n",), deployed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("", None),
        (" \n", None),
        ("[1]\n", "[1]"),
        ('{"steps": []}', '{"steps": []}'),
        (f" {'Previewing ' * 9}", ("Previewing " * 9)[:80]),
        ("password=hunter2hunter2", "password=[secret]"),
    ],
)
def test_a_line_is_empty_or_an_event_or_quoted(line: str, quoted: str | None) -> None:
    if quoted is None:
        assert events.parse([line], "dev") == Plan("dev")
        return
    with pytest.raises(EventParseError) as refused:
        events.parse([line], "dev")
    assert str(refused.value) == str(EventParseError(f"not an engine event: {quoted}"))
