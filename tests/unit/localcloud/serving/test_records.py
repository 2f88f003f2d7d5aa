"""Versions of models and endpoints as rows, and as the gcp plugin has endpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.experiments.records import ExperimentTable
from localgcp.inventory.store import ENDPOINT, SERVICE, Store, project_number
from localgcp.serving.records import EndpointTable, VersionTable, versioned

PROJECT = "local-training"
NUMBER = project_number(PROJECT)
PLACE = f"projects/{NUMBER}/locations/us-central1"
MODEL, NAME = f"{PLACE}/models/m", f"{PLACE}/endpoints/77"
#: As the plugin writes the endpoint's id.
ID = f"projects/{PROJECT}/locations/us-central1/endpoints/77"


@pytest.fixture
def versions(tmp_path: Path) -> VersionTable:
    return VersionTable(ExperimentTable(tmp_path / "cloud.sqlite"))


def version(number: int, *aliases: str, name: str = MODEL) -> dict[str, Any]:
    return {"name": name, "versionId": str(number), "versionAliases": [*aliases]}


def test_versions_of_a_model_are_listed_oldest_first(versions: VersionTable) -> None:
    made = [version(10), version(2, "default"), version(1)]
    for each in made:
        versions.put(each)
    versions.put(version(1, "default", name=f"{PLACE}/models/other"))
    assert versions.versions(MODEL) == [version(1), version(2, "default"), version(10)]
    assert versions.versions(f"{MODEL}@2") == versions.versions(MODEL)
    assert versioned(made[0]) == f"{MODEL}@10"
    assert versions.list(f"{PLACE}/models") == [
        version(2, "default"),
        version(1, "default", name=f"{PLACE}/models/other"),
    ]


def test_a_version_is_got_by_its_id_or_an_alias_or_as_the_default(versions: VersionTable) -> None:
    versions.put(version(1, "default"))
    versions.put(version(2, "champion", "r-1"))
    assert versions.get(MODEL) == version(1, "default")
    for reference in ("2", "champion", "r-1"):
        assert versions.get(f"{MODEL}@{reference}") == version(2, "champion", "r-1")
    assert versions.get(f"{MODEL}@3") is None
    assert versions.get(f"{PLACE}/models/none") is None


def test_an_alias_leaves_every_other_version(versions: VersionTable) -> None:
    versions.put(version(1, "default", "a", "b"))
    versions.put(version(2, "c"))
    versions.put(version(3, "b", "c", "d"))
    assert versions.versions(MODEL) == [
        version(1, "default", "a"), version(2), version(3, "b", "c", "d"),
    ]  # fmt: skip
    versions.put(version(3))
    assert versions.get(f"{MODEL}@3") == version(3)


def test_one_version_goes_or_all_of_a_model(versions: VersionTable) -> None:
    for number in (1, 2, 3):
        versions.put(version(number))
    versions.put(version(1, name=f"{PLACE}/models/m2"))
    versions.delete(f"{MODEL}@2")
    assert versions.versions(MODEL) == [version(1), version(3)]
    versions.delete(MODEL)
    assert versions.versions(MODEL) == []
    assert len(versions.versions(f"{PLACE}/models/m2")) == 1


def test_no_id_of_a_version_is_given_twice(versions: VersionTable) -> None:
    assert [versions.next_id(MODEL) for _ in range(2)] == ["1", "2"]
    versions.put(version(2))
    versions.delete(MODEL)
    assert versions.next_id(MODEL) == "3"
    assert versions.next_id(f"{PLACE}/models/other") == "1"
    assert versions.list(f"{PLACE}/models") == []


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


def test_what_only_the_plugin_notes_stays(kept: Kept) -> None:
    noted = {"labels": {"own": "1", "gone": "1"}, "pulumiLabels": {"x": "y"}, "kmsKey": ""}
    kept.store.put(ENDPOINT, ID, PROJECT, {"input": 1}, {**noted, "trafficSplit": "{}"})
    kept.table.put({"name": NAME, "displayName": "d", "labels": {"own": "2", "api": "3"},
                    "description": "text"})  # fmt: skip
    found = kept.store.get(ENDPOINT, ID)
    assert found is not None
    assert found.inputs == {"input": 1}
    assert found.outputs == {
        "name": "77", "displayName": "d", "description": "text", "labels": {"own": "2"},
        "effectiveLabels": {"own": "2", "api": "3"}, "pulumiLabels": {"x": "y"}, "kmsKey": "",
        "trafficSplit": "{}", "project": PROJECT, "location": "us-central1",
        "region": "us-central1", "deployedModels": [],
    }  # fmt: skip
    as_api = kept.table.get(NAME)
    assert as_api is not None
    assert "kmsKey" not in as_api
    assert (as_api["labels"], as_api["trafficSplit"]) == ({"own": "2", "api": "3"}, {})


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


def test_a_deployed_model_is_one_of_a_list_for_the_plugin(kept: Kept) -> None:
    kept.table.put({"name": NAME})
    kept.table.add_deployed(NAME, DEPLOYED, {"1": 100})
    assert kept.outputs()["deployedModels"] == [
        {
            "id": "1",
            "model": MODEL,
            "modelVersionId": "3",
            "displayName": "one",
            "createTime": "2026-01-01T00:00:00Z",
            "serviceAccount": "a@b",
            "enableAccessLogging": True,
            "enableContainerLogging": False,
            "automaticResources": [],
            "privateEndpoints": [],
            "sharedResources": "",
            "dedicatedResources": [
                {
                    "autoscalingMetricSpecs": [{"metricName": "x", "target": 60}],
                    "machineSpecs": [DEPLOYED["dedicatedResources"]["machineSpec"]],
                    "minReplicaCount": 2,
                    "maxReplicaCount": 4,
                }
            ],
        }
    ]
    least = {"id": "2", "modelVersionId": "1"}
    kept.table.add_deployed(NAME, least, {"1": 50, "2": 50})
    assert kept.outputs()["deployedModels"][1] == {
        "id": "2", "model": "", "modelVersionId": "1", "displayName": "", "createTime": "",
        "serviceAccount": "", "enableAccessLogging": False, "enableContainerLogging": True,
        "automaticResources": [], "privateEndpoints": [], "sharedResources": "",
        "dedicatedResources": [
            {
                "autoscalingMetricSpecs": [],
                "machineSpecs": [{"acceleratorType": "", "acceleratorCount": 0}],
                "minReplicaCount": 0,
                "maxReplicaCount": 0,
            }
        ],
    }  # fmt: skip


def split(kept: Kept) -> Any:
    return json.loads(kept.outputs()["trafficSplit"])


def test_the_split_is_set_with_what_is_deployed_and_stays_where_none_is_given(kept: Kept) -> None:
    kept.table.put({"name": NAME})
    one, two = {**DEPLOYED}, {**DEPLOYED, "id": "2"}
    kept.table.add_deployed(NAME, one, {"1": 100})
    kept.table.add_deployed(NAME, two, None)
    assert split(kept) == {"1": 100}
    found = kept.table.get(NAME)
    assert found is not None
    assert [each["id"] for each in found["deployedModels"]] == ["1", "2"]
    assert kept.table.deployed(NAME)[0] == {**one, "name": f"{NAME}/deployedModels/1"}
    kept.table.remove_deployed(NAME, "1", {"2": 100})
    assert split(kept) == {"2": 100}
    assert [each["id"] for each in kept.outputs()["deployedModels"]] == ["2"]
    kept.table.remove_deployed(NAME, "2", None)
    assert split(kept) == {"2": 100}
    assert kept.outputs()["deployedModels"] == []


def test_of_a_project_that_is_not_known_the_number_stays(kept: Kept) -> None:
    name = "projects/5/locations/us-central1/endpoints/1"
    kept.table.put({"name": name})
    assert kept.store.get(ENDPOINT, name) is not None
    kept.table.add_deployed("projects/5/locations/us-central1/endpoints/none", DEPLOYED, {})
    assert [each["name"] for each in kept.table.list("projects/5/locations/us-central1/endpoints")
            ] == [name]  # fmt: skip
