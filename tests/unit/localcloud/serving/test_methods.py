"""Endpoints by their service alone: what is deployed, for how much of the traffic, and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import ServerStoppingError
from tests.unit.localcloud.serving.services import MODEL, NAME, Served, refused


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


def undeploy(served: Served, id_: str, split: dict[str, int] | None = None) -> Any:
    request = vertex.UndeployModelRequest(
        endpoint=NAME, deployed_model_id=id_, traffic_split=split or {}
    )
    return served.endpoints.undeploy_model(request, None)


def mutate(served: Served, *mask: str, is_silent: bool = True, **resources: Any) -> Any:
    request = vertex.MutateDeployedModelRequest(
        endpoint=NAME,
        deployed_model={"id": "1", "dedicated_resources": resources,
                        "disable_container_logging": is_silent},
        update_mask={"paths": list(mask)},
    )  # fmt: skip
    return served.endpoints.mutate_deployed_model(request, None)


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


def test_an_upload_that_is_repeated_makes_one_version(served: Served) -> None:
    operation = served.begin_upload()
    [(name, _, request)] = served.runner.operations.unfinished()
    work = served.runner.work["UploadModel"]
    assert work(name, request) == work(name, request)
    assert len(served.versions.versions(MODEL)) == 1
    served.runner.stopping.set()
    with pytest.raises(ServerStoppingError):
        work(operation.name, request)


def test_of_two_uploads_of_one_new_model_the_first_makes_it(served: Served) -> None:
    first, second = served.begin_upload(), served.begin_upload()
    requests = {name: request for name, _, request in served.runner.operations.unfinished()}
    work = served.runner.work["UploadModel"]
    work(first.name, requests[first.name])
    assert refused(work, second.name, requests[second.name]) == (
        "ALREADY_EXISTS", f"Model {MODEL} already exists.",
    )  # fmt: skip
    assert refused(work, "n", {**requests[first.name], "name": f"{MODEL}2", "new": False}) == (
        "NOT_FOUND", f"The Model does not exist: {MODEL}2",
    )  # fmt: skip
