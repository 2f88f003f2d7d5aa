"""What becomes of the inputs of a model version: looked up, sent, kept in the state, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from pulumi.output import Unknown

from tests.unit.infra.serving.fakes import MODEL, Process, World
from vertex_training.customjob.dynamic_values import IMPERSONATE, PROVIDER_KEY
from vertex_training.customjob.google import intent_store
from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    DIGEST_LABEL_LENGTH,
    JOB_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
    IntentState,
    JobSnapshot,
)
from vertex_training.customjob.request.job_file import digest_of
from vertex_training.errors import OperatorError
from vertex_training.serving import provider
from vertex_training.serving.declared import MODEL_LABEL
from vertex_training.serving.google import endpoints, registry
from vertex_training.serving.google import runs as google_runs
from vertex_training.serving.protocol.ports import RunFolder, VersionRequest, VersionSnapshot
from vertex_training.serving.provider import ModelVersionProvider

NAME: Final = f"{MODEL}@1"
SOURCE: Final = {
    "project": "p", "region": "r", "stack": "dev", "model": "titanic", "job": "trained",
    "run": 3.0, "id": "titanic-dev",
}  # fmt: skip
KEPT: Final = {"controlBucket": "records", "onDelete": "delete", IMPERSONATE: "deployer"}
RESOLVED: Final = {
    "job": "customJobs/1", "state": "SUCCEEDED", "artifactUri": "gs://out/abc/model",
    "metrics": {"accuracy": 0.8},
}  # fmt: skip
#: As the engine hands them over.
INPUTS: Final[dict[str, Any]] = {
    "model": SOURCE,
    "requestId": "id1",
    "container": '{"imageUri":"i"}',
    "artifacts": "model",
    "files": ["model.json"],
    "options": {**KEPT, "labels": {"team": "ml", STACK_LABEL: "forged"}, "key": "keys/k"},
}
STATE: Final = {"model": SOURCE, "requestId": "id1", "options": KEPT, "resolved": RESOLVED}


class Runs:
    """One job of the run, and what it left."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        self.asked.append((parent, dict(labels)))
        return [JobSnapshot("customJobs/1", "JOB_STATE_SUCCEEDED", 1, "a", output="gs://out/abc")]

    def folder(self, uri: str) -> RunFolder:
        self.asked.append(uri)
        return RunFolder(["model.json"], b'{"accuracy": 0.8}')


class Registry(Process):
    """A registry that keeps what is sent to it."""

    sent: list[VersionRequest]

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> Any:
        self.sent.append(request)
        return super().upload(request, body, labels)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def sent() -> list[VersionRequest]:
    return []


@pytest.fixture(autouse=True)
def runs(world: World, sent: list[VersionRequest], monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The ports of the provider, in memory."""
    found, there = Runs(), Registry(world)
    there.sent = sent
    monkeypatch.setattr(provider, "_registry", lambda _: there)
    monkeypatch.setattr(provider, "_intents", lambda _: there)
    monkeypatch.setattr(provider, "_runs", lambda _: found)
    monkeypatch.setattr(provider, "_made", set[str]())
    monkeypatch.setattr(provider, "_unreachable", set[str]())
    monkeypatch.setattr(ModelVersionProvider, "_wait", lambda _: there.wait())
    return found


def resolved(**olds: Any) -> Any:
    """What a preview finds."""
    found = ModelVersionProvider().check(olds, dict(INPUTS))
    assert not found.failures
    assert {**found.inputs, "resolved": None} == {**INPUTS, "resolved": None}
    return found.inputs["resolved"]


def test_a_preview_looks_up_the_run_of_a_new_version(runs: Runs) -> None:
    assert resolved() == RESOLVED
    labels = {STACK_LABEL: "dev", JOB_LABEL: "trained", RUN_LABEL: "3"}
    assert runs.asked == [("projects/p/locations/r", labels), "gs://out/abc/model/"]


def test_existing_version_is_not_looked_up_again(runs: Runs) -> None:
    assert resolved(requestId="id1", resolved={"job": "j"}) == {"job": "j"}
    assert resolved(requestId="id1") == {}
    assert not runs.asked


def test_inputs_that_are_not_known_yet_are_passed_on(runs: Runs) -> None:
    news = {**INPUTS, "container": Unknown()}
    found = ModelVersionProvider().check({}, news)
    assert (found.inputs, found.failures) == (news, [])
    assert not runs.asked


def test_missing_file_and_foreign_model_are_refused_in_the_preview(
    world: World,
) -> None:
    found = ModelVersionProvider().check({}, {**INPUTS, "files": ["other.json"]})
    [failure] = found.failures
    assert "left no other.json" in failure.reason
    world.versions[NAME] = VersionSnapshot(NAME, 1, {STACK_LABEL: "prod"})
    [failure] = ModelVersionProvider().check({}, dict(INPUTS)).failures
    assert "belongs to stack 'prod'" in failure.reason


def test_preview_reports_a_silent_project_once(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise OperatorError("no credentials")

    monkeypatch.setattr(runs, "jobs", fail)
    assert resolved() == {"unanswered": "no credentials"}
    asked: list[float] = []
    monkeypatch.setattr(provider, "answer_within", lambda bound, _: asked.append(bound))
    silent = {"unanswered": "Google Cloud did not answer in time"}
    assert [resolved(), resolved()] == [silent, silent]
    assert asked == [provider.BOUND]
    for name in ("is_offline", "is_comparison"):
        with monkeypatch.context() as patched:
            patched.setattr(provider, name, lambda *_: True)
            assert resolved() == {"unanswered": "this preview asks no cloud"}


@pytest.mark.parametrize("unanswered", [True, False])
def test_upload_has_the_inputs_and_the_state_has_the_version(
    world: World, sent: list[VersionRequest], unanswered: bool
) -> None:
    before = {"unanswered": "no"} if unanswered else RESOLVED
    made = ModelVersionProvider().create({**INPUTS, "resolved": before})
    assert (made.id, made.outs) == (NAME, STATE)
    [request] = sent
    assert (request.model, request.title) == (MODEL, "run 3 of model 'titanic'")
    assert (request.stack, request.request_id, request.alias) == ("dev", "id1", "r-id1")
    assert json.loads(request.body) == {
        "displayName": "titanic-dev",
        "artifactUri": "gs://out/abc/model",
        "containerSpec": {"imageUri": "i"},
        "versionAliases": ["r-id1"],
        "versionDescription": "run 3 of job trained, stack dev",
        "encryptionSpec": {"kmsKeyName": "keys/k"},
    }
    assert request.digest == digest_of('id1 {"imageUri":"i"}')
    assert dict(request.labels) == {
        "team": "ml",
        STACK_LABEL: "dev",
        MODEL_LABEL: "titanic",
        JOB_LABEL: "trained",
        RUN_LABEL: "3",
        REQUEST_ID_LABEL: "id1",
        DIGEST_LABEL: request.digest[:DIGEST_LABEL_LENGTH],
    }
    assert world.records["id1"].record.job_name == NAME


def test_upload_without_a_key_has_no_encryption(sent: list[VersionRequest]) -> None:
    options = {**KEPT, "labels": {}}
    ModelVersionProvider().create({**INPUTS, "options": options, "resolved": RESOLVED})
    assert "encryptionSpec" not in json.loads(sent[0].body)


@pytest.mark.parametrize(
    ("changed", "changes", "replaces"),
    [
        ({}, False, False),
        ({"container": "{}"}, False, False),  # the request's id says whether it is another one
        ({"options": {**KEPT, "labels": {"team": "other"}}}, False, False),
        ({"requestId": "id2"}, True, True),
        ({"options": {**KEPT, "onDelete": "keep"}}, True, False),
        ({"options": {**KEPT, "controlBucket": "others"}}, True, False),
    ],
)
def test_a_version_is_replaced_by_another_request_alone(
    changed: dict[str, Any], changes: bool, replaces: bool
) -> None:
    olds = {**STATE, PROVIDER_KEY: "p"}
    found = ModelVersionProvider().diff(NAME, olds, {**INPUTS, PROVIDER_KEY: "p", **changed})
    assert (found.changes, found.replaces) == (changes, ["requestId"] if replaces else [])
    assert not found.delete_before_replace  # endpoints have it until the new one is there


def test_an_update_changes_the_options_of_the_state_and_nothing_else() -> None:
    news = {**INPUTS, "options": {**INPUTS["options"], "onDelete": "keep", IMPERSONATE: ""}}
    outs = ModelVersionProvider().update(NAME, {**STATE, PROVIDER_KEY: "p"}, news).outs
    assert outs == {**STATE, "options": {"controlBucket": "records", "onDelete": "keep"}}


def test_read_returns_the_state_without_its_provider(world: World) -> None:
    versions = ModelVersionProvider()
    assert versions.read(NAME, STATE).id == ""
    world.versions[NAME] = VersionSnapshot(NAME, 1, {REQUEST_ID_LABEL: "id1"})
    found = versions.read(NAME, {**STATE, PROVIDER_KEY: "p"})
    assert (found.id, found.outs) == (NAME, STATE)


def test_a_version_is_deleted_and_its_request_may_come_again(world: World) -> None:
    made = ModelVersionProvider().create({**INPUTS, "resolved": RESOLVED})
    ModelVersionProvider().delete(made.id, made.outs)
    assert made.id in world.versions  # another resource of this process has it
    provider._made.clear()
    kept = {**STATE, "options": {**KEPT, "onDelete": "keep"}}
    ModelVersionProvider().delete(made.id, kept)
    assert made.id in world.versions
    assert world.records["id1"].record.state is IntentState.DONE
    ModelVersionProvider().delete(made.id, made.outs)
    assert made.id not in world.versions
    assert world.records["id1"].record.state is IntentState.RELEASED


def test_deleted_version_releases_its_request(world: World) -> None:
    made = ModelVersionProvider().create({**INPUTS, "resolved": RESOLVED})
    provider._made.clear()
    world.versions.clear()
    ModelVersionProvider().delete(made.id, made.outs)
    assert world.records["id1"].record.state is IntentState.RELEASED


@pytest.mark.parametrize(
    ("uses", "reason", "told"),
    [
        (["e2", "e1", "e2"], "", "it is deployed at e1, e2"),
        ([], "it is the default version", "it is the default version"),
    ],
)
def test_undeletable_version_is_reported_and_keeps_its_record(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    uses: list[str],
    reason: str,
    told: str,
) -> None:
    made = ModelVersionProvider().create({**INPUTS, "resolved": RESOLVED})
    provider._made.clear()
    world.versions[NAME] = replace(world.versions[NAME], endpoints=uses)
    monkeypatch.setattr(Registry, "delete_version", lambda *_: reason)
    ModelVersionProvider().delete(made.id, made.outs)
    assert capsys.readouterr().err.splitlines()[-1] == f"vt: model version {NAME} stays: {told}"
    assert world.records["id1"].record.state is IntentState.DONE


ENDPOINT: Final = {"endpoint": {"project": "p", "region": "r"}, "options": {IMPERSONATE: "d"}}
#: As they were before this file's fixture put others into their places.
CONNECT: Final[dict[str, Callable[..., Any]]] = {
    name: getattr(provider, name) for name in ("_registry", "_runs", "_endpoints", "_intents")
}


@pytest.mark.parametrize(
    ("name", "module", "props", "expected"),
    [
        ("_registry", registry, INPUTS, ("p", "r", "deployer")),
        ("_runs", google_runs, INPUTS, ("p", "r", "deployer")),
        ("_endpoints", endpoints, ENDPOINT, ("p", "r", "d")),
        ("_endpoints", endpoints, {**ENDPOINT, "options": None}, ("p", "r", "")),
        ("_intents", intent_store, INPUTS, ("p", "records", "models/", "deployer")),
    ],
)
def test_calls_use_project_region_and_account_of_the_inputs(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: Any,
    props: dict[str, Any],
    expected: tuple[str, ...],
) -> None:
    monkeypatch.setattr(module, "connect", lambda *given: given)
    assert CONNECT[name](props) == expected
