"""What a change of inputs does to an endpoint's traffic, and whose endpoints and versions are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.infra.serving.fakes import ENDPOINT as NAME
from tests.unit.infra.serving.fakes import MODEL, Process, World, deployment, with_others
from vertex_training.customjob.dynamic_values import PROVIDER_KEY
from vertex_training.customjob.protocol.ports import REQUEST_ID_LABEL
from vertex_training.errors import OperatorError
from vertex_training.serving import provider
from vertex_training.serving.ports import VersionSnapshot
from vertex_training.serving.provider import (
    DeployedModelsProvider,
    EndpointCleanupProvider,
    ModelVersionProvider,
)

ENTRY = {
    "deployedModelId": deployment(3).id,
    "model": deployment(3).version,
    "machine": {"machineType": "n"},
    "min": 1,
    "max": 1,
}
ENDPOINT = {"project": "p", "region": "r", "id": "123456789", "key": "titanic", "stack": "dev"}
INPUTS = {
    "endpoint": ENDPOINT, "deployed": {"run 3": ENTRY}, "split": {"run 3": 100}, "options": {},
    "shell": NAME,
}  # fmt: skip
BEFORE = {**INPUTS, "others": []}


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """An endpoint that serves what ``INPUTS`` say."""
    world = World(deployed={deployment(3).id: deployment(3)}, split={deployment(3).id: 100})
    monkeypatch.setattr(provider, "_endpoints", lambda _: Process(world))
    monkeypatch.setattr(provider, "_unreachable", set())
    monkeypatch.setattr(provider, "_created", set())
    for each in (DeployedModelsProvider, EndpointCleanupProvider):
        monkeypatch.setattr(each, "_wait", lambda _: Process(world).wait())
    return world


def has_changes() -> bool:
    """Whether inputs that are those of the state are an update all the same."""
    return DeployedModelsProvider().diff("", BEFORE, INPUTS).changes


def test_a_canary_that_came_up_after_a_kill_is_taken_away_by_the_revert(world: World) -> None:
    world.deployed[deployment(4).id] = deployment(4)
    assert has_changes()


def test_an_endpoint_that_is_gone_or_does_not_answer_fails_no_preview(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.is_gone = True
    assert not has_changes()

    def refused(_: object) -> Process:
        raise OperatorError("no credentials")

    monkeypatch.setattr(provider, "_endpoints", refused)
    assert not has_changes()


@pytest.mark.parametrize("labels", [{}, {REQUEST_ID_LABEL: "of-others"}])
def test_version_of_another_owner_is_neither_read_nor_deleted(
    labels: dict[str, str],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"{MODEL}@1"
    monkeypatch.setattr(provider, "_registry", lambda _: Process(world))
    monkeypatch.setattr(provider, "_intents", lambda _: Process(world))
    props = {"requestId": "id1", "options": {"onDelete": "delete"}}
    versions = ModelVersionProvider()

    world.versions[name] = VersionSnapshot(name, 1, labels)
    assert not versions.read(name, props).id
    versions.delete(name, props)
    assert name in world.versions
    assert capsys.readouterr().err == (
        f"vt: model version {name} was not deleted, because the version does not belong to this "
        "stack\n"
    )

    world.versions[name] = VersionSnapshot(name, 1, {REQUEST_ID_LABEL: "id1"})
    assert versions.read(name, props).id == name
    versions.delete(name, props)
    assert name not in world.versions


def test_cleanup_keeps_deployments_of_others_and_the_endpoint(world: World) -> None:
    with_others(world, "5")
    with pytest.raises(OperatorError, match="that do not belong to the stack"):
        EndpointCleanupProvider().delete(NAME, {"endpoint": ENDPOINT, "options": {}})
    assert world.deployed


def test_an_endpoint_is_brought_to_its_inputs_and_the_state_has_them_and_whose_the_others_are(
    world: World,
) -> None:
    with_others(world, "7", "5")
    run = deployment(4, minimum=2, maximum=3)
    entry = {
        "deployedModelId": run.id, "model": run.version, "min": 2.0, "max": 3.0, "account": "a",
        "machine": {"machineType": "m", "acceleratorCount": 2.0},
    }  # fmt: skip
    given = {**INPUTS, "deployed": {"run 4": entry}, "split": {"run 4": 100.0}}
    made = DeployedModelsProvider().create({**given, PROVIDER_KEY: "p"})
    assert (made.id, made.outs) == (NAME, {**given, "others": ["5", "7"]})
    there = world.deployed[run.id]
    assert there == replace(run, account="a")  # bounds, version, name and account
    assert there.machine == {"machineType": "m", "acceleratorCount": 2}
    assert isinstance(there.machine["acceleratorCount"], int)
    assert world.split == {run.id: 100}
    again = DeployedModelsProvider().update(NAME, {}, INPUTS).outs
    assert again == {**INPUTS, "others": ["5", "7"]}
    assert world.deployed[deployment(3).id] == deployment(3)
    assert world.split == {deployment(3).id: 100}
    world.deployed = {deployment(3).id: deployment(3)}
    DeployedModelsProvider().delete(NAME, INPUTS)
    assert not world.deployed


def test_read_returns_the_deployed_state_of_an_endpoint(world: World) -> None:
    found = DeployedModelsProvider().read(NAME, {**BEFORE, PROVIDER_KEY: "p"})
    assert (found.id, found.outs) == (NAME, BEFORE)
    run = deployment(4, minimum=2, maximum=3)
    world.deployed = {run.id: run, deployment(3).id: replace(deployment(3), maximum=9)}
    world.split = {run.id: 30, deployment(3).id: 70}
    with_others(world, "7")
    outs = DeployedModelsProvider().read(NAME, BEFORE).outs
    assert outs["others"] == ["7"]
    assert outs["deployed"] == {
        "run 3": {**ENTRY, "max": 9},
        f"run 4 {run.id}": {
            "model": run.version, "deployedModelId": run.id, "machine": {"machineType": "n"},
            "min": 2, "max": 3,
        },
    }  # fmt: skip
    assert outs["split"] == {"run 3": 70, f"run 4 {run.id}": 30}
    world.is_gone = True
    assert DeployedModelsProvider().read(NAME, BEFORE).id == ""
