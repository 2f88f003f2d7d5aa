"""What the engine's answer means; the fixture is what 3.259.0 printed for a changed bucket."""

import json
from pathlib import Path

import pytest

from vertex_training.catalog.resource_types import SNAPSHOT
from vertex_training.errors import PreviewParseError
from vertex_training.settings.model import DriftSettings
from vertex_training_cli.drift import exceptions, findings, report
from vertex_training_cli.drift.findings import DriftOutcome, PropertyDifference
from vertex_training_cli.drift.policies import Membership, digest_of
from vertex_training_cli.engine.values import SECRET_SIGNATURE, SIGNATURE_KEY

RECORDED = Path(__file__).parents[3] / "fixtures" / "drift-preview.json"
URN = "urn:pulumi:dev::vertex-training::a:b:C::name"


def document(*steps, diagnostics=()):
    return json.dumps({"steps": list(steps), "diagnostics": list(diagnostics)})


def step(op, old=None, new=None, **more):
    return {"op": op, "urn": URN, "oldState": old, "newState": new, **more}


def test_a_bucket_changed_by_hand_is_told_by_property():
    drift = findings.read("local", 7, RECORDED.read_text(), "error: no changes were expected")
    assert drift.outcome is DriftOutcome.DRIFTED
    [bucket] = drift.differences
    assert (bucket.op, bucket.name) == ("update", "storage-data")
    assert bucket.fields == (
        PropertyDifference("labels.owner", cloud="mallory", declared=""),
        PropertyDifference("versioning.enabled", cloud="false", declared="true"),
    )


def test_no_changes_are_no_drift():
    drift = findings.read("dev", 0, document(step("same"), step("refresh")), "")
    assert drift.outcome is DriftOutcome.CLEAN
    assert drift.differences == ()


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


def test_a_resource_that_is_gone_is_told_as_declared_and_not_there():
    new = {"type": "a:b:C", "inputs": {"name": "x"}}
    [gone] = findings.read("dev", 7, document(step("create", None, new)), "").differences
    assert gone.summary == "is declared, and is not there"
    assert gone.type == "a:b:C"


def test_a_dynamic_resource_is_compared_by_its_inputs():
    old = {
        "type": "t",
        "inputs": {"request": "{}", "run": 1, "__provider": "x"},
        "outputs": {"request": "[]", "deployed": {"a": 1}, "split": {"a": 100}},
    }
    new = {"type": "t", "inputs": {"request": "{}", "run": 2, "__provider": "y"}}
    [job] = findings.read("dev", 7, document(step("replace", old, new)), "").differences
    assert job.fields == (PropertyDifference("run", "1", "2"),)
    assert "`up` would replace it" in job.summary


@pytest.mark.parametrize(
    ("state", "is_told"),
    [
        ("JOB_STATE_CANCELLED", True),
        ("JOB_STATE_CANCELLING", True),
        ("RECORD_DELETED", True),
        ("JOB_STATE_RUNNING", False),
        ("JOB_STATE_SUCCEEDED", False),
        ("JOB_STATE_FAILED", False),  # the request was carried out
        ("JOB_STATE_EXPIRED", False),
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


@pytest.mark.parametrize(
    "secret",
    ["[secret]", {SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": "x"}],
)
def test_a_secret_is_never_shown(secret):
    old = {"type": "t", "outputs": {"password": secret, "tree": {"deep": [secret]}}}
    new = {"type": "t", "inputs": {"password": "[secret]", "tree": {"deep": []}}}
    paths = {"password": {}, "tree": {}, 'tree["deep"][0]': {}}
    drift = findings.read("dev", 7, document(step("update", old, new, detailedDiff=paths)), "")
    shown = [field.cloud for field in drift.differences[0].fields]
    assert all("[secret]" in text for text in shown)
    assert not any("plaintext" in text for text in shown)


def test_what_is_inside_of_a_secret_is_one_too():
    old = {"type": "t", "outputs": {"key": {SIGNATURE_KEY: SECRET_SIGNATURE, "plaintext": "{}"}}}
    new = {"type": "t", "inputs": {"key": {"name": "a"}}}
    paths = {"key.name": {}}
    drift = findings.read("dev", 7, document(step("update", old, new, detailedDiff=paths)), "")
    fields = drift.differences[0].fields
    assert fields == (findings.PropertyDifference("key.name", "[secret]", "a"),)


def test_an_unknown_value_says_so_and_a_long_one_is_cut():
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    old = {"type": "t", "outputs": {"a": "x" * 500, "b": 1}}
    new = {"type": "t", "inputs": {"a": "y", "b": unknown}}
    step_ = step("update", old, new, detailedDiff={"a": {}, "b": {}})
    long, known_later = findings.read("dev", 7, document(step_), "").differences[0].fields
    assert len(long.cloud) == findings.MAX_SHOWN
    assert known_later.declared == "(known after `up`)"


def test_a_cloud_that_cannot_be_read_is_a_failure_with_its_reason():
    error = {"severity": "error", "message": "error: 403 on b/x\n"}
    drift = findings.read("dev", 1, document(diagnostics=[error]), "")
    assert (drift.outcome, drift.errors) == (DriftOutcome.FAILED, ("error: 403 on b/x",))


def test_an_engine_that_says_nothing_but_an_error_is_a_failure_too():
    drift = findings.read("dev", 255, "", "error: no credentials\n")
    assert (drift.outcome, drift.errors) == (DriftOutcome.FAILED, ("error: no credentials",))


def test_a_program_that_fails_before_any_step_is_told_by_its_error_alone():
    said = [{"severity": "error", "message": "no such file\n"}]
    document = json.dumps({"config": {"gcp:project": "acme-ml-dev"}, "diagnostics": said})
    drift = findings.read("dev", 255, document, "")
    assert (drift.outcome, drift.errors) == (DriftOutcome.FAILED, ("no such file",))


@pytest.mark.parametrize("printed", ["Everything is fine", "null", "[]", "{}"])
def test_a_success_without_a_preview_is_not_taken_for_clean(printed):
    with pytest.raises(PreviewParseError):
        findings.read("dev", 0, printed, "")


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("labels.owner", ["labels", "owner"]),
        ("lifecycleRules[0].action", ["lifecycleRules", 0, "action"]),
        ('labels["a.b"]', ["labels", "a.b"]),
        ('["quote\\"d"]', ['quote"d']),
    ],
)
def test_property_paths_are_read_as_the_engine_writes_them(path, parts):
    assert findings.parts(path) == parts


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


@pytest.mark.parametrize("others", [None, "42", {"a": 1}, 3])
def test_a_list_of_others_of_another_form_is_none(others):
    old = {"type": TRAFFIC, "inputs": {}, "outputs": {"others": others}, "id": "e"}
    text = document(step("same", old, {"type": TRAFFIC, "inputs": {}}))
    assert findings.read("dev", 0, text, "").deployed_by_hand == ()


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


BUCKET = "gcp:storage/bucket:Bucket"


def named(name, op, old=None, new=None, **more):
    return {**step(op, old, new, **more), "urn": f"urn:pulumi:dev::vertex-training::a:b:C::{name}"}


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("create", "is declared, and is not there"),
        ("delete", "is there, and is not declared"),
        ("update", "differs"),
        ("replace", "differs; `up` would replace it"),
        ("adopt", "differs; `up` would adopt it"),
        (findings.RUNS, "runs, and the stack does not know it"),
        (findings.GRANTED, "has members that are not declared"),
        (findings.SUBMITTED, "runs as an account of the stack, which did not submit it"),
        (findings.ADDED, "is in the stack's network, and is not declared"),
        (findings.ENDED, "has ended otherwise than by itself"),
        (findings.REPEATED, "is replaced by its own request, which `up` refuses"),
        (findings.REWRITTEN, "has another manifest than it was made with, or none"),
        (findings.DEPLOYED, "has a deployed model that is not declared"),
    ],
)
def test_a_difference_is_a_few_words(op, words):
    assert findings.ResourceDifference(op, "n", "t", "i").summary == words


def test_data_that_was_deleted_by_hand_is_lost_with_the_way_to_restore_it():
    new = {"type": BUCKET, "inputs": {"name": "acme"}}
    was = {"type": BUCKET, "id": "acme", "inputs": {"name": "acme"}, "outputs": {}}
    text = document(named("data", "refresh", was), named("data", "create", None, new))
    [lost] = findings.read("dev", 7, text, "").differences
    assert (lost.is_lost, lost.note) == (
        True, "restore it first: gcloud storage restore gs://acme#GENERATION",
    )  # fmt: skip
    # One that was never there holds nothing.
    [made] = findings.read("dev", 7, document(named("data", "create", None, new)), "").differences
    assert (made.is_lost, made.note) == (False, "")
    object_ = "gcp:storage/bucketObject:BucketObject"
    file = {"type": object_, "inputs": {}}
    text = document(named("o", "refresh", {**file, "id": "o"}), named("o", "create", None, file))
    assert findings.read("dev", 7, text, "").differences[0].is_lost is False


def test_differences_and_what_was_never_made_are_by_name():
    new = {"type": "a:b:C", "inputs": {}}
    there = {"type": "a:b:C", "id": "x", "inputs": {}, "outputs": {}}
    text = document(
        named("z", "create", None, new), named("b", "create", None, new),
        named("gone", "refresh", there), named("gone", "create", None, new),
        named("a", "same", there, there),
    )  # fmt: skip
    found = findings.read("dev", 7, text, "")
    assert [each.name for each in found.differences] == ["b", "gone", "z"]
    assert found.never_made == ("b", "z")
    # Of a stack that was never deployed nothing was left half-way.
    assert findings.read("dev", 7, document(named("z", "create", None, new)), "").never_made == ()


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


def test_what_is_not_read_of_the_kinds_that_a_stack_has_is_said_once():
    old = {"type": BUCKET, "id": "a", "inputs": {}, "outputs": {}}
    text = document(named("a", "same", old, old), named("b", "same", old, old))
    assert findings.read("dev", 0, text, "").not_looked_at == (
        "objects of buckets, but those that the stack puts there",
    )
    gone = findings.read("dev", 7, document(named("a", "delete", old)), "")
    assert gone.not_looked_at == ()
    assert gone.without_looking_at(["x"]).not_looked_at == ("x",)


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


def test_an_exception_names_what_it_allows_and_what_is_left_is_judged():
    clean = findings.read("dev", 0, document(step("same", {"id": "a"}, {})), "")
    found = [
        findings.ResourceDifference(findings.ADDED, n, "t", f"id-{n}", resource=f"firewalls/{n}")
        for n in ("iap-1", "other")
    ]
    allowed = {"iap": {"resource": "firewalls/iap-*", "reason": "the way in of IAP"}}
    settings = DriftSettings.model_validate({"allowedResources": allowed})
    judged = exceptions.apply(clean, settings, found)
    assert judged.differences == (found[1],)
    assert judged.not_looked_at == (
        "found and allowed: firewalls/iap-1, id-iap-1 (the way in of IAP)",
    )
    assert exceptions.of_settings(settings) == ["allowed: firewalls/iap-* (the way in of IAP)"]


@pytest.mark.parametrize(
    ("state", "running", "retained", "op"),
    [
        ("JOB_STATE_CANCELLED", "r", False, findings.REPEATED),
        ("JOB_STATE_FAILED", "r", False, findings.REPEATED),
        ("JOB_STATE_RUNNING", "r", False, findings.REPEATED),
        ("RECORD_DELETED", "r", False, findings.REPEATED),
        ("JOB_STATE_CANCELLED", "other", False, "replace"),
        ("JOB_STATE_SUCCEEDED", "r", False, "adopt"),
        ("JOB_STATE_RUNNING", "r", True, "adopt"),
        ("JOB_STATE_CANCELLED", "r", True, findings.REPEATED),
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
