"""What a comparison finds that no deployment undoes, whole; and how values are shown."""

import json

import pytest

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training_cli.drift import findings, policies
from vertex_training_cli.drift.findings import (
    DeclaredNetwork,
    Drift,
    DriftOutcome,
    PropertyDifference,
    ResourceDifference,
)

TRAFFIC = "pulumi-python:dynamic/vertex:EndpointTraffic"
JOB = "pulumi-python:dynamic/vertex:CustomJob"


def step(op, name, old=None, new=None, **more):
    urn = f"urn:pulumi:dev::vertex-training::a:b:C::{name}"
    return {"op": op, "urn": urn, "oldState": old, "newState": new, **more}


def read(*steps, code=0):
    return findings.read("dev", code, json.dumps({"steps": steps}), "")


@pytest.mark.parametrize(
    ("key", "name"), [({"key": "titanic"}, "titanic"), ({"key": ""}, "traffic"), ({}, "traffic")]
)
def test_each_model_that_was_deployed_by_hand_is_told_with_both_ways_on(key, name):
    inputs = {"endpoint": {"id": "9", "region": "us-central1", **key}}
    old = {"type": TRAFFIC, "id": "e", "inputs": inputs, "outputs": {"others": ["42", "43"]}}
    new = {"type": TRAFFIC, "inputs": inputs}
    found = read(step("same", "traffic", old, new))
    assert found.deployed_by_hand == tuple(
        ResourceDifference(
            "deployed", name, TRAFFIC, id_, (),
            "It may answer requests, and `up` leaves it alone. To remove it: `gcloud ai endpoints "
            f"undeploy-model 9 --region us-central1 --deployed-model-id {id_}`; to keep it: list "
            f"`deployedModels/{id_}` with its reason under `drift.allowedResources`.",
            resource=f"deployedModels/{id_}",
        )
        for id_ in ("42", "43")
    )  # fmt: skip
    assert read(step("refresh", "traffic", old, new)).deployed_by_hand == ()
    assert read(step("create", "traffic", None, new)).deployed_by_hand == ()
    assert read(step("delete", "traffic", old)).deployed_by_hand == ()


@pytest.mark.parametrize(
    ("op", "told"), [("same", True), ("update", False), ("refresh", False), ("replace", False)]
)
def test_a_snapshot_that_is_not_ready_is_told_whole(op, told):
    old = {
        "type": SNAPSHOT,
        "id": "s",
        "inputs": {},
        "outputs": {"state": "CHANGED", "manifest": "gs://b/m#7"},
    }
    found = read(step(op, "snap", old, old), code=0 if op == "same" else 7).differences
    rewritten = [each for each in found if each.op == "rewritten"]
    assert rewritten == [
        ResourceDifference(
            "rewritten", "snap", SNAPSHOT, "s", (PropertyDifference("state", "CHANGED", "READY"),),
            "Its record in the control bucket names gs://b/m#7. `up` refuses it, for the tables "
            "are not what they were. Restore that generation of the manifest or the record, or "
            "raise its run in the stack file.",
        )
    ] * told  # fmt: skip


def test_a_snapshot_that_leaves_the_stack_is_not_told():
    old = {"type": SNAPSHOT, "id": "s", "inputs": {}, "outputs": {"state": "CHANGED"}}
    assert [each.op for each in read(step("delete", "snap", old), code=7).differences] == ["delete"]
    other = {**old, "type": "a:b:C"}
    assert read(step("same", "snap", other, other)).differences == ()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("JOB_STATE_CANCELLED", "was cancelled by hand"),
        ("JOB_STATE_CANCELLING", "was cancelled by hand"),
        ("RECORD_DELETED", "has no record any more: it was deleted by hand"),
    ],
)
def test_a_job_that_was_ended_by_hand_is_told_whole(state, words):
    old = {"type": JOB, "id": "7", "inputs": {}, "outputs": {"state": state}}
    assert read(step("same", "train", old, old), step("same", "train", old, old)).differences == (
        ResourceDifference(
            "ended", "train", JOB, "7",
            (PropertyDifference("state", state.removeprefix("JOB_STATE_"), "not cancelled"),),
            f"It {words}, and `up` submits nothing. To run it again: raise its run in the stack "
            "file; to leave it as it is: remove it from the stack file.",
        ),
    )  # fmt: skip
    other = {**old, "type": "a:b:C"}
    assert read(step("same", "x", other, other)).differences == ()
    assert [e.op for e in read(step("delete", "train", old), code=7).differences] == ["delete"]


def network(op, name, type_, id_="projects/p/global/networks/n", **outputs):
    state = {"type": type_, "id": id_, "outputs": outputs}
    return step(op, name, state, None if op == "delete" else state)


NETWORK, CONNECTION = "gcp:compute/network:Network", "gcp:servicenetworking/connection:Connection"


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], None),
        ([network("same", "n", NETWORK)], DeclaredNetwork("projects/p/global/networks/n")),
        ([network("delete", "n", NETWORK)], None),
        ([network("same", "n", NETWORK, "")], None),
        ([network("same", "c", CONNECTION, peering="a")], None),
        ([network("same", "n", NETWORK), network("same", "c", CONNECTION, peering="b"),
          network("same", "d", CONNECTION, peering="a"), network("same", "e", CONNECTION),
          network("delete", "f", CONNECTION, peering="gone"),
          network("same", "o", "a:b:C", peering="other")],
         DeclaredNetwork("projects/p/global/networks/n", ("a", "b"))),
    ],
)  # fmt: skip
def test_the_network_that_is_made_and_its_peerings(steps, found):
    assert read(*steps).network == found


def test_what_a_stack_declares_of_iam_comes_with_a_comparison_that_succeeded(monkeypatch):
    monkeypatch.setattr(policies, "declared", lambda plan: ("declared of", plan.stack))
    assert read().declared == ("declared of", "dev")
    assert findings.read("dev", 1, "", "no").declared is None


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(0, DriftOutcome.CLEAN), (1, DriftOutcome.FAILED), (7, DriftOutcome.DRIFTED)],
)
def test_outcomes_are_exit_codes(code, outcome):
    assert DriftOutcome(code) is outcome


@pytest.mark.parametrize(
    ("stdout", "stderr", "errors"),
    [("", " no\n", ("no",)), ("said\n", "", ("said",)), ("said", "no", ("no",))],
)
def test_an_engine_that_failed_is_quoted_by_what_it_wrote(stdout, stderr, errors):
    assert findings.read("dev", 255, stdout, stderr) == Drift(
        "dev", DriftOutcome.FAILED, errors=errors
    )


def test_a_preview_that_failed_without_a_word_is_quoted_by_its_errors_or_stderr():
    text = json.dumps({"steps": [], "diagnostics": []})
    assert findings.read("dev", 255, text, "killed\n").errors == ("killed",)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("a\n  b", "a b"),
        ({"b": 1, "a": [True]}, '{"a": [true], "b": 1}'),
        (None, "null"),
        (3, "3"),
    ],
)
def test_a_value_is_a_line_of_text(value, shown):
    old = {"type": "t", "id": "i", "outputs": {"a": value}}
    new = {"type": "t", "inputs": {"b": "y"}}
    found = read(step("update", "n", old, new, detailedDiff={"b": {}, "a": {}}), code=7)
    assert found.differences == (
        ResourceDifference(
            "update", "n", "t", "i",
            (PropertyDifference("a", shown, ""), PropertyDifference("b", "", "y")),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "shown"),
    [('["a.b"]', "a.b"), ("a", "a"), ("a.b", "a.b"), ('a["b"]', 'a["b"]'), ("a[0]", "a[0]")],
)
def test_a_path_of_one_key_has_no_quotes(path, shown):
    old, new = {"type": "t", "id": "i", "outputs": {}}, {"type": "t", "inputs": {}}
    found = read(step("update", "n", old, new, detailedDiff={path: {}}), code=7).differences
    assert [each.path for each in found[0].fields] == [shown]


def test_traffic_is_compared_with_what_a_refresh_found():
    inputs = {"deployed": {"run 1": {}}, "split": {"run 1": 100}, "endpoint": {"id": "9"}}
    seen = {"deployed": {"run 1": {}, "run 2": {}}, "split": None}
    old = {"type": TRAFFIC, "id": "e", "inputs": inputs, "outputs": seen}
    [found] = read(
        step("update", "t", old, {"type": TRAFFIC, "inputs": inputs}), code=7
    ).differences
    assert found.fields == (
        PropertyDifference("deployed", '{"run 1": {}, "run 2": {}}', '{"run 1": {}}'),
        PropertyDifference("split", "null", '{"run 1": 100}'),
    )
    # a resource that is made or deleted has no fields to compare
    [made] = read(step("create", "t", None, {"type": "t", "inputs": {"a": 1}}), code=7).differences
    assert (made.id, made.fields) == ("", ())
