"""The engine's events become a plan."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import EventParseError
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Diagnostic, Plan, PolicyViolation, ResourceState, Step


def test_a_replacement_is_one_step_though_the_engine_sends_three() -> None:
    job = plans.job("a")
    plan = plans.plan(
        plans.step("delete-replaced", plans.JOB, "training-a", old=job),
        plans.step("replace", plans.JOB, "training-a", old=job, new=job, keys=["request"]),
        plans.step("create-replacement", plans.JOB, "training-a", old=job, new=job),
    )
    assert [(step.op, step.keys) for step in plan.steps] == [("replace", ("request",))]


def test_what_an_earlier_run_left_to_delete_is_told() -> None:
    plan = plans.plan(plans.step("delete-replaced", plans.BUCKET, "storage-x", old={"name": "x"}))
    assert [step.op for step in plan.changed] == ["delete-replaced"]


def test_notes_of_the_engine_are_no_inputs() -> None:
    rules = [{"__defaults": [], "age": 7}]
    plan = plans.plan(plans.create(plans.BUCKET, "b", __defaults=["name"], lifecycleRules=rules))
    assert plan.steps[0].inputs == {"lifecycleRules": [{"age": 7}]}


def test_values_that_are_secret_unknown_or_files_are_words() -> None:
    plan = plans.plan(
        plans.create(
            plans.BUCKET,
            "b",
            secret={
                "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
                "value": "hunter2",
            },
            later="04da6b54-80e4-46f7-96ec-b56ff0331ba9",
            file={
                "4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17",
                "hash": "ab" * 32,
                "path": "/a/place/of/this/machine",
            },
        )
    )
    assert plan.steps[0].inputs == {
        "secret": "[secret]",
        "later": "[known after apply]",
        "file": "[file sha256:abababababababab]",
    }


@pytest.mark.parametrize("where", ["input", "diagnostic", "policy", "config"])
def test_what_looks_like_a_token_is_shown_nowhere(where: str) -> None:
    token = "hf_" + "a1B2" * 10
    told = {
        "input": plans.create(plans.JOB, "j", request=json.dumps({"x": token})),
        "diagnostic": plans.said("error", f"denied: {token}"),
        "policy": plans.violation("no-secret", "mandatory", f"found {token}"),
        "config": {"preludeEvent": {"config": {"x:y": token}}},
    }[where]
    assert token not in repr(plans.plan(told))
    assert "[secret]" in repr(plans.plan(told))


def test_diagnostics_lose_debugging_and_repetition() -> None:
    plan = plans.plan(
        plans.said("debug", "registering"),
        plans.said("warning", "using pulumi-resource-gcp from $PATH at /x"),
        plans.said("info#err", "told by the program"),
        plans.said("warning", "twice"),
        plans.said("warning", "twice"),
    )
    assert [(d.severity, d.message) for d in plan.diagnostics] == [
        ("info", "told by the program"),
        ("warning", "twice"),
    ]


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


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (("labels.a", "effectiveLabels.a", "pulumiLabels.a", "x"), ("labels.a", "x")),
        (("labels", "effectiveLabels", "pulumiLabels"), ("labels",)),
        (('labels["a.b"]', 'pulumiLabels["a.b"]'), ('labels["a.b"]',)),
        (("effectiveLabels.a", "pulumiLabels.a"), ("effectiveLabels.a", "pulumiLabels.a")),
        (  # a label that the provider gives to all, and the resource does not have
            ("labels.a", "effectiveLabels.a", "effectiveLabels.b", "pulumiLabels.b"),
            ("labels.a", "effectiveLabels.b", "pulumiLabels.b"),
        ),
        (("labelsOf", "effectiveLabels"), ("labelsOf", "effectiveLabels")),
        (("labels", "effectiveLabelsOf"), ("labels", "effectiveLabelsOf")),
    ],
)
def test_labels_that_the_provider_computes_are_told_where_nothing_else_tells_of_them(
    told: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    [step] = read(metadata("update", old=OLD, new=OLD, detailedDiff=dict.fromkeys(told))).steps
    assert step.paths == shown


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


@pytest.mark.parametrize(
    ("level", "said", "told"),
    [
        ("mandatory", "preview failed", []),
        ("mandatory", "preview failed: x", ["preview failed: x"]),
        ("advisory", "preview failed", ["preview failed"]),
    ],
)
def test_the_engines_last_words_add_nothing_to_a_policy_that_stops_it(
    level: str, said: str, told: list[str]
) -> None:
    found = read(
        {"policyEvent": {"policyName": "p", "enforcementLevel": level}},
        {"errorEvent": {"error": said}},
        {"summaryEvent": {}},
    )
    assert [each.message for each in found.diagnostics] == told
    assert not found.succeeded


@pytest.mark.parametrize(("result", "ok"), [({}, True), ({"result": "failed"}, False)])
def test_a_summary_of_an_older_engine_says_nothing_of_a_success(
    result: dict[str, str], ok: bool
) -> None:
    assert read({"summaryEvent": {**result, "maybeCorrupt": False}}).succeeded is ok


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


def test_parts_of_a_replacement_count_alone_if_the_whole_is_missing() -> None:
    parts = [metadata("create-replacement"), metadata("delete-replaced", old=OLD)]
    assert read(*parts).steps == (Step("delete-replaced", URN, "a:b:C", BEFORE, None),)
    for told in ([*parts, metadata("replace")], [metadata("replace"), *parts]):
        assert read(*told).steps == (Step("replace", URN, "a:b:C", None, None),)


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
