"""What the engine's answer means; the fixture is what 3.259.0 printed for a changed bucket."""

import json

from vertex_training.settings.model import DriftSettings
from vertex_training_cli.drift import command, findings
from vertex_training_cli.drift.findings import DriftOutcome, PropertyDifference
from vertex_training_cli.drift.policies import Membership

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
    assert running.summary == "runs, but is not in the state"


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
    judged = command.apply_exceptions(found, DriftSettings(), found.deployed_by_hand)
    assert judged.outcome is DriftOutcome.DRIFTED
    assert "has an undeclared deployed model" in findings.markdown(judged)
    assert "undo what was changed by hand" not in findings.markdown(judged)
    assert "deployed_by_hand" not in findings.as_json(judged)
    kept = {"x": {"resource": "deployedModels/42", "reason": "the platform team's own"}}
    settings = DriftSettings.model_validate({"allowedResources": kept})
    assert (
        command.apply_exceptions(found, settings, found.deployed_by_hand).outcome
        is DriftOutcome.CLEAN
    )


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
    assert clean.with_undeclared([]) is clean
