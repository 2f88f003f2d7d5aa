"""Versions of models and endpoints as rows, and as the gcp plugin has endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.experiments.records import ExperimentTable
from localgcp.inventory.store import ENDPOINT, SERVICE, Store, project_number
from localgcp.serving.records import EndpointTable

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
PLACE = f"projects/{NUMBER}/locations/us-central1"
MODEL, NAME = f"{PLACE}/models/m", f"{PLACE}/endpoints/77"
#: As the plugin writes the endpoint's id.
ID = f"projects/{PROJECT}/locations/us-central1/endpoints/77"


class Kept:
    """The tables of endpoints, and what the plugin reads of them."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path)
        self.store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        self.table = EndpointTable(self.store, ExperimentTable(path))

    def outputs(self) -> dict[str, Any]:
        found = self.store.get(ENDPOINT, ID)
        assert found is not None
        assert found.project == PROJECT
        return found.outputs


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "cloud.sqlite")


BODY = {
    "name": NAME,
    "displayName": "d",
    "labels": {"a": "b"},
    "trafficSplit": {"2": 40, "1": 60},
    "privateServiceConnectConfig": {"enablePrivateServiceConnect": True,
                                    "projectAllowlist": ["p"]},
}  # fmt: skip
AS_PLUGIN = {
    "name": "77",
    "displayName": "d",
    "description": "",
    "labels": {},
    "effectiveLabels": {"a": "b"},
    "project": PROJECT,
    "location": "us-central1",
    "region": "us-central1",
    "trafficSplit": '{"1": 60, "2": 40}',
    "privateServiceConnectConfig": {"enablePrivateServiceConnect": True,
                                    "projectAllowlists": ["p"]},
    "deployedModels": [],
}  # fmt: skip


def test_an_endpoint_of_a_client_is_a_resource_of_the_plugin(kept: Kept) -> None:
    kept.table.put(BODY)
    assert kept.outputs() == AS_PLUGIN
    expected = {
        **BODY, "project": PROJECT, "location": "us-central1", "region": "us-central1",
        "effectiveLabels": {"a": "b"}, "deployedModels": [],
    }  # fmt: skip
    assert kept.table.get(NAME) == expected
    assert kept.table.list(f"{PLACE}/endpoints") == [expected]
    assert kept.table.all() == [expected]
    assert kept.table.list(f"projects/{NUMBER}/locations/europe-west4/endpoints") == []
    kept.table.delete(NAME)
    assert (kept.table.get(NAME), kept.table.all()) == (None, [])


DEPLOYED = {
    "id": "1",
    "model": MODEL,
    "modelVersionId": "3",
    "displayName": "one",
    "createTime": "2026-01-01T00:00:00Z",
    "serviceAccount": "a@b",
    "enableAccessLogging": True,
    "disableContainerLogging": True,
    "dedicatedResources": {
        "machineSpec": {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4",
                        "acceleratorCount": 1},
        "minReplicaCount": 2,
        "maxReplicaCount": 4,
        "autoscalingMetricSpecs": [{"metricName": "x", "target": 60}],
    },
}  # fmt: skip


def test_of_a_project_that_is_not_known_the_number_stays(kept: Kept) -> None:
    name = "projects/5/locations/us-central1/endpoints/1"
    kept.table.put({"name": name})
    assert kept.store.get(ENDPOINT, name) is not None
    kept.table.add_deployed("projects/5/locations/us-central1/endpoints/none", DEPLOYED, {})
    assert [each["name"] for each in kept.table.list("projects/5/locations/us-central1/endpoints")
            ] == [name]  # fmt: skip
