"""Versions of models and their aliases, by the official client."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from google.api_core import exceptions

from localgcp.inventory.store import BUCKET
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.agents import service_agent
from tests.unit.localcloud.conftest import OFTEN
from tests.unit.localcloud.serving.conftest import (
    BUCKET_NAME,
    IMAGE,
    PLACE,
    PROJECT,
    TRAINER,
    World,
    container,
)
from vertex_training.serving.google.registry import GoogleRegistry

MODEL = f"{PLACE}/models/doubler"


def aliases(world: World) -> dict[str, set[str]]:
    """The aliases of each version."""
    found = world.models.list_model_versions(name=MODEL)
    return {each.version_id: set(each.version_aliases) for each in found}


def test_an_alias_moves_silently_and_default_is_never_lost(world: World) -> None:
    world.upload()
    world.upload(version_aliases=["champion"])
    merge = world.models.merge_version_aliases
    merge(name=f"{MODEL}@1", version_aliases=["champion", "old"])
    assert aliases(world) == {"1": {"default", "champion", "old"}, "2": set()}
    merge(name=f"{MODEL}@2", version_aliases=["default"])
    assert aliases(world) == {"1": {"champion", "old"}, "2": {"default"}}
    merge(name=f"{MODEL}@1", version_aliases=["-old"])
    assert aliases(world) == {"1": {"champion"}, "2": {"default"}}
    with pytest.raises(exceptions.InvalidArgument, match="default cannot be removed"):
        merge(name=f"{MODEL}@2", version_aliases=["-default"])
    with pytest.raises(exceptions.InvalidArgument, match="Invalid version alias 'Upper'"):
        merge(name=f"{MODEL}@2", version_aliases=["Upper"])


def test_a_version_is_not_there_before_its_upload_has_succeeded(world: World) -> None:
    missing = f"gs://{BUCKET_NAME}/nothing/here"
    with pytest.raises(exceptions.FailedPrecondition, match="has no objects"):
        world.upload(artifact_uri=missing)
    assert not list(world.models.list_models(parent=PLACE))


def test_an_id_that_exists_and_a_parent_that_does_not_are_refused(world: World) -> None:
    world.upload()
    model = {"display_name": "doubler", "container_spec": container()}
    upload = world.models.upload_model
    with pytest.raises(exceptions.AlreadyExists):
        upload({"parent": PLACE, "model": model, "model_id": "doubler"})
    with pytest.raises(exceptions.NotFound):
        upload({"parent": PLACE, "model": model, "parent_model": f"{PLACE}/models/other"})
    for wrong in ("1st", "-a", "Upper", "a" * 64, "../b", "a@1", "a/b"):
        with pytest.raises(exceptions.InvalidArgument, match="Invalid model_id"):
            upload({"parent": PLACE, "model": model, "model_id": wrong})


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"display_name": ""}, "display_name; Message: Required"),
        ({"version_aliases": ["UPPER"]}, "version_aliases"),
        ({"artifact_uri": "gs://../etc"}, "Cloud Storage URI expected"),
        ({"artifact_uri": "gs://no-such-bucket/model"}, "does not exist"),
        ({"container_spec": {}}, "image_uri; Message: Required"),
        ({"container_spec": container() | {"image_uri": "python:3"}}, "no image of Artifact"),
        (
            {"container_spec": container() | {"image_uri": IMAGE.replace("us-", "europe-west4-")}},
            "must be in the region of the model",
        ),
        ({"container_spec": container(args=["a\0b"])}, "NUL"),
        ({"container_spec": container(env=[{"name": "AIP_HTTP_PORT", "value": "1"}])}, "AIP_"),
        ({"container_spec": container(env=[{"name": "A-B", "value": "1"}])}, "C identifier"),
        ({"container_spec": container(predict_route="predict")}, "begin with a slash"),
        ({"container_spec": container(ports=[{"container_port": 70000}])}, "65535"),
        ({"container_spec": container(deployment_timeout={"seconds": 7201})}, "2 hours"),
    ],
)
def test_a_version_that_cannot_be_served_is_refused(
    world: World, more: dict[str, Any], text: str
) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=text):
        world.begin_upload(**more)


def test_a_bucket_of_another_region_and_one_that_the_service_agent_may_not_read_are_refused(
    world: World,
) -> None:
    for name, project, location in (
        ("elsewhere", PROJECT, "EUROPE-WEST4"),
        ("local-others", "local-other", "US-CENTRAL1"),
    ):
        known = {"name": name, "project": project, "location": location}
        world.store.put(BUCKET, name, project, {}, known)
        storage_client(world.storage_url).create_bucket(name)
        world.write("m/model.json", '{"slope": 1}', name)
    with pytest.raises(exceptions.InvalidArgument, match="must be in the region"):
        world.begin_upload(artifact_uri="gs://elsewhere/m")
    with pytest.raises(exceptions.PermissionDenied, match=service_agent(PROJECT)):
        world.begin_upload(artifact_uri="gs://local-others/m")
    world.grant("b/local-others", "roles/storage.objectViewer", service_agent(PROJECT))
    world.upload(artifact_uri="gs://local-others/m")


def test_an_image_of_another_project_needs_a_reader(world: World) -> None:
    image = "us-central1-docker.pkg.dev/local-other/training/serve:1"
    with pytest.raises(exceptions.PermissionDenied, match="permission to pull"):
        world.begin_upload(container_spec={"image_uri": image})
    place = "projects/local-other/locations/us-central1/repositories/training"
    world.grant(place, "roles/artifactregistry.reader", service_agent(PROJECT))
    world.upload(container_spec={"image_uri": image})


def test_only_a_version_that_nothing_needs_is_deleted(world: World) -> None:
    endpoint, first = world.endpoint(), world.upload()
    delete: Any = world.models.delete_model_version
    with pytest.raises(exceptions.FailedPrecondition, match="only version"):
        delete(name=first)
    second = world.upload()
    with pytest.raises(exceptions.FailedPrecondition, match="default version"):
        delete(name=first)
    world.deploy(endpoint, second, "5", {"0": 100})
    uses = world.models.get_model(name=second).deployed_models
    assert [(each.endpoint, each.deployed_model_id) for each in uses] == [(endpoint, "5")]
    for call in (delete, world.models.delete_model):
        with pytest.raises(exceptions.FailedPrecondition, match="undeploy it first"):
            call(name=second)
    world.undeploy(endpoint, "5")
    delete(name=second).result(timeout=60, polling=OFTEN)
    assert list(aliases(world)) == ["1"]
    assert world.upload().endswith("@3")  # no id is given twice
    removed: Any = world.models.delete_model(name=MODEL)
    removed.result(timeout=60, polling=OFTEN)
    assert not list(world.models.list_models(parent=PLACE))


def test_the_program_deletes_the_default_version_once_the_newest_other_one_is_it(
    world: World,
) -> None:
    first, _, newest = world.upload(), world.upload(), world.upload()
    assert GoogleRegistry(world.models).delete_version(first) == ""
    assert aliases(world).keys() == {"2", "3"}
    assert "default" in world.models.get_model(name=newest).version_aliases


def test_texts_and_labels_change_and_what_runs_does_not(world: World) -> None:
    world.upload()
    body = {"name": f"{MODEL}@1", "description": "d", "labels": {"a": "b"}}
    mask = {"paths": ["description", "labels"]}
    changed = world.models.update_model({"model": body, "update_mask": mask})
    assert (changed.description, dict(changed.labels)) == ("d", {"a": "b"})
    mask = {"paths": ["artifact_uri"]}
    with pytest.raises(exceptions.InvalidArgument, match="artifactUri cannot be changed"):
        world.models.update_model({"model": body, "update_mask": mask})


def test_an_account_that_is_not_there_cannot_upload(world: World) -> None:
    model = {"display_name": "a", "container_spec": container()}
    request = {"parent": PLACE, "model": model, "service_account": f"no-{TRAINER}"}
    with pytest.raises(exceptions.PermissionDenied, match="act as service_account"):
        world.models.upload_model(request)


def test_a_list_is_filtered_by_labels_and_read_over_rest(world: World) -> None:
    world.upload(labels={"vt-model": "doubler"})
    world.upload(id_="other", labels={"vt-model": "other"})
    request = {"parent": PLACE, "filter": 'labels.vt-model="doubler"'}
    assert [each.display_name for each in world.models.list_models(request)] == ["doubler"]
    with urllib.request.urlopen(f"http://127.0.0.1:{world.port}/v1/{MODEL}@1") as found:
        assert json.load(found)["versionId"] == "1"
