"""What is refused of a model, of what is deployed, and of how traffic is split."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import ApiError
from localgcp.inventory.store import BUCKET, Store
from localgcp.serving import checks
from tests.unit.localcloud.conftest import wrong_fields

PROJECT = "local-training"
REGION = "us-central1"
IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest"
AT = "model.container_spec"
SPEC = "deployed_model.dedicated_resources"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.sqlite")


def model(**given: Any) -> dict[str, Any]:
    return {"displayName": "m", "containerSpec": {"imageUri": IMAGE}} | given


def container(**given: Any) -> dict[str, Any]:
    return model(containerSpec={"imageUri": IMAGE} | given)


def told(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ApiError) as error:
        call()
    return error.value.code.name, error.value.message


def fields(call: Callable[[], object]) -> list[tuple[str, str]]:
    """Fields and texts of all that is wrong."""
    code, text = told(call)
    assert code == "INVALID_ARGUMENT"
    return wrong_fields(text)


@pytest.mark.parametrize(
    "given",
    [
        model(),
        model(displayName="m" * 128),
        model(versionAliases=["v1", "default", "a-b"]),
        container(imageUri="us-central1-docker.pkg.dev/p/r/i"),
        container(ports=[{"containerPort": 1}, {"containerPort": 65535}]),
        container(env=[{"name": "A_AIP_", "value": "x"}]),
    ],
)
def test_a_right_model_is_taken(store: Store, given: dict[str, Any]) -> None:
    checks.check_model(store, PROJECT, REGION, given)


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        (model(displayName=""), "model.display_name", "Required field is not set."),
        (model(displayName="m" * 129), "model.display_name",
         "The display name can be up to 128 characters long."),
        (model(labels={"A": "b"}), "labels",
         "Label A=b is not valid: lowercase letters, digits, _ and -."),
        (model(versionAliases=["v1", "1"]), "model.version_aliases",
         "'1' does not match [a-z][a-zA-Z0-9-]{0,126}[a-z0-9]."),
        (model(artifactUri="s3://b/x"), "model.artifact_uri",
         "Cloud Storage URI expected, got 's3://b/x'."),
        (model(artifactUri="gs://b/./x"), "model.artifact_uri",
         "'gs://b/./x' has a part that no folder of a bucket is called by."),
        (model(artifactUri="gs://b/../x"), "model.artifact_uri",
         "'gs://b/../x' has a part that no folder of a bucket is called by."),
        (model(containerSpec={"command": ["a"]}), f"{AT}.image_uri", "Required field is not set."),
        (container(imageUri="python:3.11"), f"{AT}.image_uri",
         "'python:3.11' is no image of Artifact Registry."),
        (container(imageUri="europe-docker.pkg.dev/p/r/i"), f"{AT}.image_uri",
         "europe-docker.pkg.dev/p/r/i is in europe; it must be in the region of the model, "
         "us-central1."),
        (container(env=[{"name": "AIP_X", "value": "1"}]), f"{AT}.env",
         "AIP_X: names that begin with AIP_ are Vertex AI's."),
        (container(env=[{"name": "a b"}]), f"{AT}.env", "'a b' is not a valid C identifier."),
        (container(env=[{"name": "A"}, {"name": "A"}]), f"{AT}.env",
         "EnvVar names must be unique: A"),
        *((container(**where), AT, "command, args and env must not have a NUL character.")
          for where in ({"command": ["\0"]}, {"args": ["\0"]},
                        {"env": [{"name": "A", "value": "\0"}]})),
        (container(predictRoute="v1"), f"{AT}.predict_route",
         "'v1' must begin with a slash, and have neither blanks nor control characters."),
        (container(healthRoute="/a b"), f"{AT}.health_route",
         "'/a b' must begin with a slash, and have neither blanks nor control characters."),
        *((container(ports=[{"containerPort": port}]), f"{AT}.ports",
           "A port must be between 1 and 65535, inclusive.") for port in (0, 65536)),
        (container(deploymentTimeout="7201s"), f"{AT}.deployment_timeout",
         "The limit is 2 hours."),
    ],
)  # fmt: skip
def test_a_wrong_model_is_refused_with_its_field(
    store: Store, given: dict[str, Any], field: str, said: str
) -> None:
    found = fields(lambda: checks.check_model(store, PROJECT, REGION, given))
    assert found == [(field, said)]


def bucket(store: Store, project: str = PROJECT, location: str = "US-CENTRAL1") -> None:
    found = {"name": "b-1", "project": project, "location": location}
    store.put(BUCKET, "b-1", project, {}, found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("V1", "Invalid version alias 'V1': not [a-z][a-zA-Z0-9-]{0,126}[a-z0-9]."),
        ("-a-", "Invalid version alias 'a-': not [a-z][a-zA-Z0-9-]{0,126}[a-z0-9]."),
        ("-default", "The alias default cannot be removed, only given to another."),
    ],
)
def test_an_alias_has_a_form_and_the_default_stays(change: str, said: str) -> None:
    assert told(lambda: checks.merged_aliases(["default"], [change])) == (
        "INVALID_ARGUMENT", said,
    )  # fmt: skip


def deployed(machine: Any = None, **resources: Any) -> dict[str, Any]:
    spec = {"machineType": "n1-standard-2"} if machine is None else machine
    found = {"minReplicaCount": 1, "machineSpec": spec} | resources
    return {"id": "12", "dedicatedResources": found}


@pytest.mark.parametrize(
    "given",
    [
        deployed(),
        {**deployed(), "id": ""},
        deployed(minReplicaCount=2, maxReplicaCount=2, requiredReplicaCount=2),
        deployed({"machineType": "g2", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}),
    ],
)
def test_what_can_be_deployed_is_taken(store: Store, given: dict[str, Any]) -> None:
    checks.check_deployed_model(store, given)


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({**deployed(), "id": "1a"}, "deployed_model.id", "'1a': 1 to 10 digits are expected."),
        ({**deployed(), "id": "1" * 11}, "deployed_model.id",
         f"'{'1' * 11}': 1 to 10 digits are expected."),
        ({"automaticResources": {}}, "deployed_model.prediction_resources",
         "a model with a container of its own takes dedicated_resources."),
        (deployed({}), f"{SPEC}.machine_spec.machine_type", "Required field is not set."),
        *((deployed({"machineType": "g2"} | half), f"{SPEC}.machine_spec",
           "Both `accelerator_type` and `accelerator_count` should be specified or none.")
          for half in ({"acceleratorType": "NVIDIA_L4"}, {"acceleratorCount": 1})),
        (deployed(minReplicaCount=0), f"{SPEC}.min_replica_count",
         "must be greater than or equal to 1."),
        (deployed(minReplicaCount=3, maxReplicaCount=2), f"{SPEC}.max_replica_count",
         "must be at least min_replica_count, 3; got 2."),
        (deployed(minReplicaCount=2, requiredReplicaCount=3), f"{SPEC}.required_replica_count",
         "must be at most min_replica_count, 2."),
        (deployed(requiredReplicaCount=-1), f"{SPEC}.required_replica_count",
         "must be at most min_replica_count, 1."),
    ],
)  # fmt: skip
def test_what_cannot_be_deployed_is_refused_with_its_field(
    store: Store, given: dict[str, Any], field: str, said: str
) -> None:
    assert fields(lambda: checks.check_deployed_model(store, given)) == [(field, said)]


def test_a_model_is_deployed_with_an_account_that_there_is(store: Store) -> None:
    given = {**deployed(), "serviceAccount": "who@x"}
    assert told(lambda: checks.check_deployed_model(store, given)) == (
        "PERMISSION_DENIED",
        "You do not have permission to act as service_account: who@x. (or it may not exist).",
    )
