"""What a change of an endpoint's inputs does to its traffic."""

from __future__ import annotations

import pytest
from pulumi.output import Unknown

from vertex_training.serving.provider import DeployedModelsProvider

ENTRY = {
    "deployedModelId": "1",
    "model": "m@1",
    "machine": {"machineType": "n"},
    "min": 1,
    "max": 1,
}
ENDPOINT = {"project": "p", "region": "r", "id": "123456789", "key": "titanic", "stack": "dev"}
NAME = "projects/p/locations/r/endpoints/123456789"
INPUTS = {
    "endpoint": ENDPOINT, "deployed": {"run 3": ENTRY}, "split": {"run 3": 100}, "options": {},
    "shell": NAME,
}  # fmt: skip
BEFORE = {**INPUTS, "others": []}


@pytest.mark.parametrize(
    ("changed", "changes", "replaces"),
    [
        ({}, False, False),
        ({"split": {"run 3": 90, "run 4": 10}}, True, False),
        ({"deployed": {"run 3": {**ENTRY, "max": 2}}}, True, False),
        ({"endpoint": {**ENDPOINT, "private": True}}, True, False),
        ({"endpoint": {**ENDPOINT, "id": "234567891"}}, True, True),
        # the endpoint is made anew: what it serves has to leave before, or it cannot be deleted
        ({"shell": Unknown()}, True, True),
    ],
)
def test_traffic_is_made_anew_with_its_endpoint_alone(
    changed: dict[str, object], changes: bool, replaces: bool
) -> None:
    found = DeployedModelsProvider().diff("", BEFORE, {**INPUTS, **changed})
    assert (found.changes, bool(found.replaces)) == (changes, replaces)
    assert found.delete_before_replace


def test_a_state_that_knows_no_shell_yet_is_no_change() -> None:
    before = {key: value for key, value in BEFORE.items() if key != "shell"}
    assert not DeployedModelsProvider().diff("", before, INPUTS).changes
