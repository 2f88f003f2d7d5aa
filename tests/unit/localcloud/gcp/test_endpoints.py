"""Endpoints of Vertex AI: what is deployed belongs to the API; the plugin leaves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localgcp.experiments.records import ExperimentTable
from localgcp.inventory.store import ENDPOINT, Store, project_number
from localgcp.serving.records import EndpointTable
from tests.unit.localcloud.gcp.harness import Plugin, refused

GIVEN = {"name": "77", "displayName": "titanic", "location": "us-central1"}
NAME = f"projects/{project_number('local-p1')}/locations/us-central1/endpoints/77"
DEPLOYED = {
    "id": "1",
    "model": NAME.replace("endpoints/77", "models/titanic"),
    "modelVersionId": "3",
    "dedicatedResources": {"machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 1},
}


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    local.enable("aiplatform")
    return local


@pytest.fixture
def table(tmp_path: Path) -> EndpointTable:
    """What the service writes to."""
    path = tmp_path / "cloud.sqlite"
    return EndpointTable(Store(path), ExperimentTable(path))


def test_an_endpoint_has_its_name_and_a_host_of_its_own_if_it_asks_for_one(ready: Plugin) -> None:
    id_, made = ready.create(ENDPOINT, {**GIVEN, "dedicatedEndpointEnabled": True})

    assert id_ == "projects/local-p1/locations/us-central1/endpoints/77"
    number = project_number("local-p1")
    assert made["dedicatedEndpointDns"] == f"77.us-central1-{number}.prediction.vertexai.goog"
    assert (made["trafficSplit"], made["deployedModels"]) == ("{}", [])


def test_a_split_of_the_program_must_name_what_is_deployed_and_sum_to_100(
    ready: Plugin, table: EndpointTable
) -> None:
    id_, made = ready.create(ENDPOINT, GIVEN)
    table.add_deployed(NAME, DEPLOYED, {"1": 100})
    for split, text in (({"2": 100}, "names 2"), ({"1": 90}, "sum to 100")):
        given = {**GIVEN, "trafficSplit": json.dumps(split)}
        assert text in refused(lambda given=given: ready.update(ENDPOINT, id_, given, made))
