"""What the engine's answer means; the fixture is what 3.259.0 printed for a changed bucket."""

import json

import pytest

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.settings.model import DriftSettings
from vertex_training_cli.drift import exceptions, findings, report
from vertex_training_cli.drift.findings import DriftOutcome, PropertyDifference
from vertex_training_cli.drift.policies import Membership, digest_of
from vertex_training_cli.engine.values import SECRET_SIGNATURE, SIGNATURE_KEY

URN = "urn:pulumi:dev::vertex-training::a:b:C::name"


def document(*steps, diagnostics=()):
    return json.dumps({"steps": list(steps), "diagnostics": list(diagnostics)})


def step(op, old=None, new=None, **more):
    return {"op": op, "urn": URN, "oldState": old, "newState": new, **more}


def test_what_the_engine_cannot_see_is_drift_as_well():
    text = document(step("same", {"id": "a"}), step("create", new={}), step("same", {}))
    clean = findings.read("dev", 0, text, "")
    assert clean.ids == {"a"}
    assert clean.with_differences([]) is clean
    running = findings.ResourceDifference(findings.RUNS, "train (run 1)", "CustomJob", "b")
    found = clean.with_differences([running])
    assert found.outcome is findings.DriftOutcome.DRIFTED
    assert found.differences == (*clean.differences, running)
    assert running.summary == "runs, and the stack does not know it"


@pytest.mark.parametrize(
    ("state", "is_told"),
    [
        ("JOB_STATE_CANCELLED", True),
        ("JOB_STATE_CANCELLING", True),
        ("RECORD_DELETED", True),
        ("JOB_STATE_RUNNING", False),
        ("JOB_STATE_SUCCEEDED", False),
        ("JOB_STATE_FAILED", False),  # the request was carried out
    ],
)
def test_a_declared_job_that_somebody_ended_is_told_with_both_ways_on(state, is_told):
    type_ = "pulumi-python:dynamic/vertex:CustomJob"
    before = {"type": type_, "id": "7", "inputs": {}, "outputs": {"state": "JOB_STATE_QUEUED"}}
    now = {**before, "outputs": {"state": state}}
    text = document(step("refresh", before, now), step("same", now, before))
    found = findings.read("dev", 0, text, "")
    assert [each.op for each in found.differences] == [findings.ENDED] * is_told
    assert (found.outcome is DriftOutcome.DRIFTED) is is_told
    for each in found.differences:
        assert "raise its run" in each.note
        assert "remove it from the stack file" in each.note
    # A job that is about to be replaced is told as that.
    changed = document(step("refresh", before, now), step("replace", now, before))
    assert all(e.op != findings.ENDED for e in findings.read("dev", 7, changed, "").differences)


def test_the_network_that_the_stack_makes_is_known_with_its_peerings():
    def made(type_, **outputs):
        state = {"type": type_, "id": "projects/p/global/networks/n", "outputs": outputs}
        return step("same", state, state)

    text = document(
        made("gcp:compute/network:Network"),
        made("gcp:servicenetworking/connection:Connection", peering="service"),
    )
    found = findings.read("dev", 0, text, "").network
    assert found == findings.DeclaredNetwork("projects/p/global/networks/n", ("service",))
    assert findings.read("dev", 0, document(), "").network is None


def test_what_is_inside_of_a_secret_is_one_too():
    old = {"type": "t", "outputs": {"key": {SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": "{}"}}}
    new = {"type": "t", "inputs": {"key": {"name": "a"}}}
    paths = {"key.name": {}}
    drift = findings.read("dev", 7, document(step("update", old, new, detailedDiff=paths)), "")
    fields = drift.differences[0].fields
    assert fields == (findings.PropertyDifference("key.name", "[secret]", "a"),)


TRAFFIC = "pulumi-python:dynamic/vertex:EndpointTraffic"
PLACE = {"id": "123456789", "region": "us-central1", "key": "titanic"}


def traffic(op, *, others=(), split=None):
    """A step of an endpoint's traffic after a refresh that found ``others`` and ``split`` there."""
    declared = {"endpoint": PLACE, "deployed": {"run 3": {"min": 1}}, "split": {"run 3": 100}}
    seen = {**declared, "others": list(others), "split": split or declared["split"]}
    old = {"type": TRAFFIC, "inputs": declared, "outputs": seen, "id": "e"}
    return step(op, old, {"type": TRAFFIC, "inputs": declared})


def test_a_model_deployed_by_hand_is_drift_that_no_up_undoes_and_may_be_allowed():
    found = findings.read("dev", 0, document(traffic("same", others=["42"])), "")
    [foreign] = found.deployed_by_hand
    assert (foreign.op, foreign.name, foreign.id) == (findings.DEPLOYED, "titanic", "42")
    assert "undeploy-model 123456789 --region us-central1 --deployed-model-id 42" in foreign.note
    judged = exceptions.apply(found, DriftSettings(), found.deployed_by_hand)
    assert judged.outcome is DriftOutcome.DRIFTED
    assert "has a deployed model that is not declared" in report.markdown(judged)
    assert "undo what was changed by hand" not in report.markdown(judged)
    assert "deployed_by_hand" not in report.as_json(judged)
    kept = {"x": {"resource": "deployedModels/42", "reason": "the platform team's own"}}
    settings = DriftSettings.model_validate({"allowedResources": kept})
    assert exceptions.apply(found, settings, found.deployed_by_hand).outcome is DriftOutcome.CLEAN


def test_another_split_than_declared_is_told_by_both():
    [changed] = findings.read(
        "dev", 7, document(traffic("update", split={"run 3": 50})), ""
    ).differences
    assert changed.fields == (PropertyDifference("split", '{"run 3": 50}', '{"run 3": 100}'),)


@pytest.mark.parametrize("state", ["CHANGED", "UNRECORDED", ""])
def test_a_manifest_that_was_deleted_or_rewritten_is_drift_that_no_up_undoes(state):
    name, inputs = "gs://data/snapshots/a/manifest.json#7", {"requestId": "a"}
    outputs = {"manifest": name, **({"state": state} if state else {})}
    old = {"type": SNAPSHOT, "id": "s", "inputs": inputs, "outputs": outputs}
    [found] = findings.read("dev", 0, document(step("same", old, {**old})), "").differences
    assert found == findings.ResourceDifference(
        findings.REWRITTEN, "name", SNAPSHOT, "s", (PropertyDifference("state", state, "READY"),),
        f"Its record in the control bucket names {name}. `up` refuses it, for the tables are not "
        "what they were. Restore that generation of the manifest or the record, or raise its run "
        "in the stack file.",
    )  # fmt: skip
    drift = findings.read("dev", 0, document(step("same", old, {**old})), "")
    assert drift.outcome is DriftOutcome.DRIFTED
    assert "undo what was changed by hand" not in report.markdown(drift)
    ready = {**old, "outputs": {"state": "READY"}}
    found = findings.read("dev", 0, document(step("same", ready, {**ready})), "")
    assert found.outcome is DriftOutcome.CLEAN


def named(name, op, old=None, new=None, **more):
    return {**step(op, old, new, **more), "urn": f"urn:pulumi:dev::vertex-training::a:b:C::{name}"}


def test_members_that_are_not_declared_are_told_by_policy_and_bound_by_a_digest():
    clean = findings.read("dev", 0, document(step("same", {"id": "a"}, {})), "")
    found = [
        Membership("b/x", "r", "user:a", ""),
        Membership("b/y", "r", "user:a", ""),
        Membership("b/x", "q", "user:b", "e"),
    ]
    drift = clean.with_undeclared(found)
    assert drift.outcome is DriftOutcome.DRIFTED
    assert drift.differences == (
        findings.ResourceDifference(
            findings.GRANTED, "b/x", "IAM policy", "",
            (PropertyDifference("r", "user:a", ""), PropertyDifference("q if e", "user:b", "")),
        ),
        findings.ResourceDifference(
            findings.GRANTED, "b/y", "IAM policy", "", (PropertyDifference("r", "user:a", ""),)
        ),
    )  # fmt: skip
    assert drift.undeclared == digest_of(found)
    assert drift.undeclared != digest_of(found[:2])
    assert clean.with_undeclared([]) is clean


def test_a_job_that_was_cancelled_is_told_whole():
    type_ = "pulumi-python:dynamic/vertex:CustomJob"
    now = {"type": type_, "id": "7", "inputs": {}, "outputs": {"state": "JOB_STATE_CANCELLED"}}
    [found] = findings.read("dev", 0, document(named("train", "same", now, now)), "").differences
    assert found == findings.ResourceDifference(
        findings.ENDED, "train", type_, "7",
        (PropertyDifference("state", "CANCELLED", "not cancelled"),),
        "It was cancelled by hand, and `up` submits nothing. To run it again: raise its run in the "
        "stack file; to leave it as it is: remove it from the stack file.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("state", "running", "retained", "op"),
    [
        ("JOB_STATE_CANCELLED", "r", False, findings.REPEATED),
        ("JOB_STATE_FAILED", "r", False, findings.REPEATED),
        ("JOB_STATE_RUNNING", "r", False, findings.REPEATED),
        ("RECORD_DELETED", "r", False, findings.REPEATED),
        ("JOB_STATE_CANCELLED", "other", False, "replace"),
        ("JOB_STATE_SUCCEEDED", "r", False, "adopt"),
    ],
)
def test_a_job_that_its_own_request_replaces_is_told_as_up_deals_with_it(
    state, running, retained, op
):
    type_ = "pulumi-python:dynamic/vertex:CustomJob"
    inputs, outputs = {"requestId": "r"}, {"state": state, "requestId": running}
    old = {"type": type_, "id": "7", "inputs": inputs, "outputs": outputs}
    old["retainOnDelete"] = retained
    new = {"type": type_, "inputs": inputs, "outputs": {}}
    text = document(named("train", "replace", old, new))
    [found] = findings.read("dev", 7, text, "").differences
    assert found.op == op
    assert ("`up` refuses" in found.summary) is (op == findings.REPEATED)
    assert ("`pulumi state untaint`" in found.note) is (op == findings.REPEATED)
