"""Versions of models by their service alone: what is begun, kept, changed and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1 as vertex

from localgcp.errors import ApiError, ServerStoppingError
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


def test_a_version_keeps_all_that_a_client_says_of_it(served: Served) -> None:
    said = {
        "displayName": "d",
        "description": "of the model",
        "versionDescription": "of the version",
        "labels": {"k": "v"},
        "containerSpec": CONTAINER,
        "versionAliases": ["champion"],
        "encryptionSpec": {"kmsKeyName": "k"},
        "predictSchemata": {"instanceSchemaUri": "gs://b/instance.yaml"},
        "metadata": {"a": 1.0},
        "metadataSchemaUri": "gs://b/metadata.yaml",
        "explanationSpec": {"parameters": {"topK": 3}},
    }
    served.begin_upload(**said, originalModelInfo={"model": "other"}, versionId="7")
    [(_, _, asked)] = served.runner.begun
    assert asked["model"] == said


def test_a_later_version_keeps_when_the_model_was_made(served: Served) -> None:
    first = served.upload()
    assert (first.model, first.model_version_id) == (MODEL, "1")
    second = served.upload()
    assert (second.model, second.model_version_id) == (MODEL, "2")
    one, two = served.versions.versions(MODEL)
    assert two["versionAliases"] == []
    assert two["createTime"] == one["createTime"] < two["versionCreateTime"]
    assert served.runner.begun[1][2]["new"] is False


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


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        ({"model_id": "m"}, "ALREADY_EXISTS", f"Model {MODEL} already exists."),
        ({"model_id": "1m"}, "INVALID_ARGUMENT",
         "Invalid model_id: '1m'; valid ids are [a-z_][a-z0-9_-]{0,62}."),
        ({"parent_model": f"{GIVEN}/models/none"}, "NOT_FOUND",
         f"The Model does not exist: {GIVEN}/models/none"),
        ({"service_account": "a@b"}, "PERMISSION_DENIED",
         "You do not have permission to act as service_account: a@b. (or it may not exist)."),
    ],
)  # fmt: skip
def test_an_upload_that_cannot_be_is_refused(
    served: Served, request_: dict[str, Any], code: str, text: str
) -> None:
    served.upload()
    model = vertex.Model(display_name="d", container_spec={"image_uri": CONTAINER["imageUri"]})
    request = vertex.UploadModelRequest(parent=GIVEN, model=model, **request_)
    assert refused(served.models.upload_model, request, None) == (code, text)


def test_a_parent_of_another_region_is_refused(served: Served) -> None:
    served.upload()
    image = "europe-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
    model = vertex.Model(display_name="d", container_spec={"image_uri": image})
    parent = f"projects/{PROJECT}/locations/europe-west4"
    request = vertex.UploadModelRequest(parent=parent, model=model, parent_model=MODEL)
    assert refused(served.models.upload_model, request, None) == (
        "INVALID_ARGUMENT", f"parent_model {MODEL} is not in {parent}.",
    )  # fmt: skip


def update(served: Served, *mask: str, **body: Any) -> tuple[str, ...]:
    request = vertex.UpdateModelRequest(
        model={"name": f"{GIVEN}/models/m", **body}, update_mask={"paths": list(mask)}
    )
    made = served.models.update_model(request, None)
    return made.display_name, made.description, made.version_description


def test_texts_of_a_version_change_and_what_it_runs_does_not(served: Served) -> None:
    served.upload(description="old")
    assert update(served, "display_name", display_name="new", description="x") == ("new", "old", "")
    assert update(served, display_name="all", version_description="v") == ("all", "", "v")
    for mask in ("container_spec.image_uri", "artifact_uri"):
        with pytest.raises(ApiError) as error:
            update(served, mask, "display_name")
        field = {"container_spec.image_uri": "containerSpec"}.get(mask, "artifactUri")
        assert error.value.message == f"update_mask: {field} cannot be changed."
    with pytest.raises(ApiError) as error:
        update(served, "container_spec", "labels", "artifact_uri")
    assert error.value.message == "update_mask: artifactUri, containerSpec cannot be changed."
    assert served.versions.versions(MODEL)[0]["containerSpec"] == CONTAINER


def merge(served: Served, name: str, *aliases: str) -> list[str]:
    request = vertex.MergeVersionAliasesRequest(name=name, version_aliases=list(aliases))
    return list(served.models.merge_version_aliases(request, None).version_aliases)


def test_aliases_move_from_version_to_version(served: Served) -> None:
    served.upload()
    served.upload(versionAliases=["old"])
    before = served.versions.versions(MODEL)[1]
    assert merge(served, f"{MODEL}@2", "new", "-old", "default") == ["default", "new"]
    one, two = served.versions.versions(MODEL)
    assert (one["versionAliases"], two["versionAliases"]) == ([], ["default", "new"])
    assert two["etag"] != before["etag"]
    assert two["versionUpdateTime"] > before["versionUpdateTime"]


def versions_of(served: Served, **request: Any) -> tuple[list[str], str]:
    asked = vertex.ListModelVersionsRequest(name=f"{GIVEN}/models/m@1", **request)
    found = served.models.list_model_versions(asked, None)
    return [each.version_id for each in found.models], found.next_page_token


def test_versions_are_listed_page_by_page(served: Served) -> None:
    for _ in range(3):
        served.upload()
    assert sorted(versions_of(served)[0]) == ["1", "2", "3"]
    found, token = versions_of(served, page_size=2)
    assert (len(found), token) == (2, "2")
    assert len(versions_of(served, page_size=2, page_token="2")[0]) == 1


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
