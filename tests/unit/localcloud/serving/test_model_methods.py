"""Versions of models by their service alone: what is begun, kept, changed and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import ServerStoppingError
from localgcp.inventory.store import ACCOUNT
from tests.unit.localcloud.serving.services import (
    CONTAINER,
    GIVEN,
    MODEL,
    NAME,
    PROJECT,
    Served,
    refused,
)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(tmp_path / "cloud.sqlite", monkeypatch)


def test_an_upload_makes_a_version_with_its_own_copy(served: Served) -> None:
    served.store.put(ACCOUNT, "a@b", PROJECT, {}, {"email": "a@b"})
    served.store.put("gcp:storage/bucket:Bucket", "b", PROJECT, {}, {"name": "b"})
    model = vertex.Model(
        display_name="d", container_spec={"image_uri": CONTAINER["imageUri"]},
        labels={"k": "v"}, version_aliases=["champion"], etag="x",
    )  # fmt: skip
    request = vertex.UploadModelRequest(
        parent=GIVEN, model=model, model_id="m", service_account="a@b"
    )
    served.runner.finish(served.models.upload_model(request, None))
    [(target, method, asked)] = served.runner.begun
    assert (target, method) == (MODEL, "UploadModel")
    sent = {
        "displayName": "d", "containerSpec": CONTAINER, "labels": {"k": "v"},
        "versionAliases": ["champion"], "uploadAccount": "a@b",
    }  # fmt: skip
    assert asked == {"name": MODEL, "new": True, "model": sent}
    [made] = served.versions.versions(MODEL)
    time = made["createTime"]
    assert made == {
        **sent,
        "name": MODEL,
        "versionId": "1",
        "versionAliases": ["champion", "default"],
        "createTime": time,
        "updateTime": time,
        "versionCreateTime": time,
        "versionUpdateTime": time,
        "etag": made["etag"],
        "supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"],
        "artifactCopy": "",
        "begunBy": made["begunBy"],
    }
    assert made["begunBy"].startswith(f"{MODEL}/operations/")


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


def test_a_parent_of_another_region_is_refused(served: Served) -> None:
    served.upload()
    image = "europe-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
    model = vertex.Model(display_name="d", container_spec={"image_uri": image})
    parent = f"projects/{PROJECT}/locations/europe-west4"
    request = vertex.UploadModelRequest(parent=parent, model=model, parent_model=MODEL)
    assert refused(served.models.upload_model, request, None) == (
        "INVALID_ARGUMENT", f"parent_model {MODEL} is not in {parent}.",
    )  # fmt: skip


def delete_version(served: Served, name: str) -> Any:
    request = vertex.DeleteModelVersionRequest(name=name)
    return served.models.delete_model_version(request, None)


def test_a_version_goes_unless_it_is_needed(served: Served) -> None:
    served.upload(artifactUri="")
    assert refused(delete_version, served, f"{MODEL}@1") == (
        "FAILED_PRECONDITION",
        f"{MODEL}@1 is the only version of its model; delete the model in its place.",
    )
    served.upload()
    assert refused(delete_version, served, MODEL) == (
        "INVALID_ARGUMENT", f"Invalid resource name: '{MODEL}'; no version.",
    )  # fmt: skip
    assert refused(delete_version, served, f"{MODEL}@1") == (
        "FAILED_PRECONDITION",
        f"{MODEL}@1 is the default version: give the alias default to another one first.",
    )
    served.endpoint()
    served.deploy(model=f"{MODEL}@2")
    deployed = f"{MODEL}@2 is deployed as DeployedModel 1 of {NAME}: undeploy it first."
    assert refused(delete_version, served, f"{MODEL}@2") == ("FAILED_PRECONDITION", deployed)
    request = vertex.DeleteModelRequest(name=f"{GIVEN}/models/m")
    assert refused(served.models.delete_model, request, None) == ("FAILED_PRECONDITION", deployed)
    found = served.models.get_model(vertex.GetModelRequest(name=f"{MODEL}@2"), None)
    assert [(each.endpoint, each.deployed_model_id) for each in found.deployed_models] == [
        (NAME, "1")
    ]
    served.kept.remove_deployed(NAME, "1", {})
    assert delete_version(served, f"{MODEL}@2").done
    assert [each["versionId"] for each in served.versions.versions(MODEL)] == ["1"]
    assert served.models.delete_model(request, None).done
    assert served.versions.versions(MODEL) == []
    assert served.removed == ["", ""]
