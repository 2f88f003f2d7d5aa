"""What becomes of the inputs of a model version: looked up, sent, kept in the state, deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.unit.infra.serving.fakes import MODEL, Process, World
from vertex_training.customjob.dynamic_values import IMPERSONATE, PROVIDER_KEY
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
from vertex_training.serving import provider
from vertex_training.serving.declared import MODEL_LABEL
from vertex_training.serving.ports import RunFolder, VersionRequest
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
    monkeypatch.setattr(provider, "_created", set[str]())
    monkeypatch.setattr(provider, "_unreachable", set[str]())
    monkeypatch.setattr(ModelVersionProvider, "_wait", lambda _: there.wait())
    return found


def resolved(**olds: Any) -> Any:
    """What a preview finds."""
    found = ModelVersionProvider().check(olds, dict(INPUTS))
    assert not found.failures
    assert {**found.inputs, "resolved": None} == {**INPUTS, "resolved": None}
    return found.inputs["resolved"]


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


def test_a_version_is_deleted_and_its_request_may_come_again(world: World) -> None:
    made = ModelVersionProvider().create({**INPUTS, "resolved": RESOLVED})
    ModelVersionProvider().delete(made.id, made.outs)
    assert made.id in world.versions  # another resource of this process has it
    provider._created.clear()
    kept = {**STATE, "options": {**KEPT, "onDelete": "keep"}}
    ModelVersionProvider().delete(made.id, kept)
    assert made.id in world.versions
    assert world.records["id1"].record.state is IntentState.DONE
    ModelVersionProvider().delete(made.id, made.outs)
    assert made.id not in world.versions
    assert world.records["id1"].record.state is IntentState.RELEASED


@pytest.mark.parametrize(
    ("uses", "reason", "told"),
    [
        (["e2", "e1", "e2"], "", "the version is deployed to e1, e2"),
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
    provider._created.clear()
    world.versions[NAME] = replace(world.versions[NAME], endpoints=uses)
    monkeypatch.setattr(Registry, "delete_version", lambda *_: reason)
    ModelVersionProvider().delete(made.id, made.outs)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == f"vt: model version {NAME} was not deleted, because {told}"
    assert world.records["id1"].record.state is IntentState.DONE


ENDPOINT: Final = {"endpoint": {"project": "p", "region": "r"}, "options": {IMPERSONATE: "d"}}
