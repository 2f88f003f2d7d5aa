"""Endpoints by their service alone: what is deployed, for how much of the traffic, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import ServerStoppingError
from tests.unit.localcloud.serving.services import (
    MODEL,
    NAME,
    PLACE,
    Served,
    refused,
)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(tmp_path / "cloud.sqlite", monkeypatch)


def test_a_deployment_is_left_to_the_next_server_and_done_once(served: Served) -> None:
    served.upload()
    served.endpoint()
    operation = served.begin_deploy()
    served.runner.stopping.set()
    with pytest.raises(ServerStoppingError):
        served.runner.finish(operation)
    assert served.ids() == []
    served.runner.stopping.clear()
    [(name, method, request)] = served.runner.operations.unfinished()
    for _ in range(2):
        served.runner.work[method](name, request)
    assert served.ids() == ["1"]
    assert [call[0] for call in served.containers.calls] == ["start", "wait", "start", "wait"]


def test_what_cannot_be_deployed_is_refused(served: Served) -> None:
    served.upload()
    served.endpoint()
    busy = served.begin_deploy()
    running = (
        f'There are other operations running on the Endpoint "{NAME}". Operation(s) are: '
        f"{busy.name}."
    )
    assert refused(served.begin_deploy, "2") == ("FAILED_PRECONDITION", running)
    served.runner.finish(busy)
    assert refused(served.begin_deploy, "1") == (
        "ALREADY_EXISTS", f"DeployedModel 1 already exists in {NAME}.",
    )  # fmt: skip
    for model in (f"{PLACE}/models/none", f"{PLACE}/endpoints/77"):
        assert refused(served.begin_deploy, "2", model) == (
            "NOT_FOUND", f"The Model does not exist: {model}",
        )  # fmt: skip
    assert refused(served.begin_deploy, "2", split={"0": 50, "9": 50}) == (
        "INVALID_ARGUMENT",
        "traffic_split names 9, which the endpoint does not have (deployed: 0, 1).",
    )


def undeploy(served: Served, id_: str, split: dict[str, int] | None = None) -> Any:
    request = vertex.UndeployModelRequest(
        endpoint=NAME, deployed_model_id=id_, traffic_split=split or {}
    )
    return served.endpoints.undeploy_model(request, None)


def test_what_gets_no_traffic_is_undeployed(served: Served) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1", split={"0": 100})
    served.deploy("2", split={"0": 60, "1": 40})
    served.containers.calls.clear()
    assert refused(undeploy, served, "1") == (
        "FAILED_PRECONDITION",
        "DeployedModel 1 has 40 percent of the traffic. Set its share to 0 first, or give a "
        "traffic_split.",
    )
    assert refused(undeploy, served, "9") == (
        "NOT_FOUND", f"DeployedModel '9' does not exist in {NAME}.",
    )  # fmt: skip
    served.runner.finish(undeploy(served, "1", {"2": 100}))
    assert (served.split(), served.ids()) == ({"2": 100}, ["2"])
    assert served.containers.calls == [("end", NAME, "1", True)]
    # The last one goes with all of the traffic.
    served.runner.finish(undeploy(served, "2"))
    assert (served.split(), served.ids()) == ({}, [])


def mutate(served: Served, *mask: str, is_silent: bool = True, **resources: Any) -> Any:
    request = vertex.MutateDeployedModelRequest(
        endpoint=NAME,
        deployed_model={"id": "1", "dedicated_resources": resources,
                        "disable_container_logging": is_silent},
        update_mask={"paths": list(mask)},
    )  # fmt: skip
    return served.endpoints.mutate_deployed_model(request, None)


def test_the_number_of_replicas_of_what_is_deployed_changes(served: Served) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1", split={"0": 100}, max_replica_count=2)
    served.containers.calls.clear()
    at = "dedicated_resources"
    served.runner.finish(
        mutate(served, f"{at}.min_replica_count", f"{at}.max_replica_count",
               min_replica_count=3, max_replica_count=5)
    )  # fmt: skip
    assert served.containers.calls == [("scale", 3), ("wait", 3)]
    [kept] = served.kept.deployed(NAME)
    assert kept["dedicatedResources"] == {
        "machineSpec": {"machineType": "n1-standard-2"}, "minReplicaCount": 3,
        "maxReplicaCount": 5,
    }  # fmt: skip
    assert "disableContainerLogging" not in kept
    assert served.split() == {"1": 100}
    served.containers.there = False
    served.runner.finish(mutate(served, "disable_container_logging", "max_replica_count"))
    [kept] = served.kept.deployed(NAME)
    assert kept["disableContainerLogging"] is True
    assert "maxReplicaCount" not in kept["dedicatedResources"]
    served.runner.finish(mutate(served, "disable_container_logging", is_silent=False))
    assert served.kept.deployed(NAME)[0]["disableContainerLogging"] is False
    assert len(served.containers.calls) == 2


MAY = (
    "can be changed: minReplicaCount, maxReplicaCount, requiredReplicaCount, "
    "autoscalingMetricSpecs and disableContainerLogging."
)


def test_other_changes_of_what_is_deployed_are_refused(served: Served) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1", split={"0": 100})
    assert refused(mutate, served) == ("INVALID_ARGUMENT", f"update_mask: empty; {MAY}")
    assert refused(mutate, served, "machine_spec", "min_replica_count") == (
        "INVALID_ARGUMENT", f"update_mask: machineSpec, minReplicaCount; {MAY}",
    )  # fmt: skip
    code, text = refused(mutate, served, "min_replica_count", min_replica_count=2)
    assert (code, text) == (
        "INVALID_ARGUMENT",
        "List of found errors:\t1.Field: deployed_model.dedicated_resources.max_replica_count; "
        "Message: must be at least min_replica_count, 2; got 1.\t",
    )


def test_an_endpoint_has_one_operation_at_a_time(served: Served) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1")
    busy = served.begin_deploy("2")
    running = (
        f'There are other operations running on the Endpoint "{NAME}". Operation(s) are: '
        f"{busy.name}."
    )
    for call in (
        lambda: undeploy(served, "1"),
        lambda: mutate(served, "min_replica_count", min_replica_count=1),
        lambda: served.endpoints.delete_endpoint(vertex.DeleteEndpointRequest(name=NAME), None),
    ):
        assert refused(call) == ("FAILED_PRECONDITION", running)
    assert len(served.runner.begun) == 3  # the upload, and both deployments


def test_a_change_of_replicas_is_left_to_the_next_server(served: Served) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1")
    before = served.kept.deployed(NAME)
    operation = mutate(served, "min_replica_count", "max_replica_count",
                       min_replica_count=2, max_replica_count=2)  # fmt: skip
    served.runner.stopping.set()
    with pytest.raises(ServerStoppingError):
        served.runner.finish(operation)
    assert served.kept.deployed(NAME) == before
    served.runner.stopping.clear()
    answer = served.runner.finish(operation)
    assert answer.deployed_model.dedicated_resources.min_replica_count == 2


def test_a_model_is_deployed_in_its_own_project_and_region(served: Served) -> None:
    served.upload()
    served.endpoint()
    far = MODEL.replace("us-central1", "europe-west4")
    [version] = served.versions.versions(MODEL)
    served.versions.put({**version, "name": far})
    assert refused(served.begin_deploy, "1", far) == (
        "INVALID_ARGUMENT", f"{far} is not in the project and region of the endpoint.",
    )  # fmt: skip
    assert refused(served.begin_deploy, "x")[0] == "INVALID_ARGUMENT"
    assert served.deploy("1", f"{MODEL}@1").deployed_model.model == MODEL


def test_what_is_undeployed_leaves_its_traffic_to_those_that_are_there(served: Served) -> None:
    served.upload()
    served.endpoint()
    for number in "123":
        served.deploy(number)
    assert refused(undeploy, served, "1", {"2": 50, "4": 50}) == (
        "INVALID_ARGUMENT",
        "traffic_split names 4, which the endpoint does not have (deployed: 2, 3).",
    )
    change(served, "traffic_split", traffic_split={"1": 0, "2": 30, "3": 70})
    served.runner.finish(undeploy(served, "1"))
    assert served.split() == {"2": 30, "3": 70}


def change(served: Served, *mask: str, **body: Any) -> Any:
    request = vertex.UpdateEndpointRequest(
        endpoint={"name": NAME, **body}, update_mask={"paths": list(mask)}
    )
    return served.endpoints.update_endpoint(request, None)


def test_an_endpoint_changes_by_its_mask(served: Served) -> None:
    served.upload()
    served.endpoint(description="old")
    served.deploy("1", split={"0": 100})
    served.deploy("2")
    assert change(served, "display_name", display_name="new").description == "old"
    # What the mask does not name is not looked at.
    assert change(served, "labels", labels={"a": "b"}, traffic_split={"9": 1}).labels == {"a": "b"}
    assert dict(change(served, "traffic_split", traffic_split={"2": 100}).traffic_split) == {
        "2": 100
    }
    assert refused(change, served, "traffic_split", traffic_split={"3": 100})[0] == (
        "INVALID_ARGUMENT"
    )
    assert refused(change, served, "network", "display_name") == (
        "INVALID_ARGUMENT", "update_mask: network cannot be changed.",
    )  # fmt: skip
    whole = change(served, display_name="all", traffic_split={"1": 50, "2": 50})
    assert (whole.description, dict(whole.traffic_split)) == ("", {"1": 50, "2": 50})


def test_what_was_deployed_is_started_again_by_the_next_server(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served.upload()
    served.endpoint()
    served.deploy("1")
    served.deploy("2")
    served.containers.calls.clear()
    lost = {**served.kept.deployed(NAME)[0], "modelVersionId": "9"}
    served.kept.add_deployed(NAME, lost, None)
    served.endpoints.recover()
    assert served.containers.calls == [("start", NAME, "2", "1")]
    assert capsys.readouterr().out == (
        f"DeployedModel 1 of {NAME}: The Model does not exist: {MODEL}\n"
    )
