"""What a replica sees."""

from __future__ import annotations

import pytest

from localgcp.runner import environment
from localgcp.runner.environment import Placement

SPEC = {
    "workerPoolSpecs": [
        {"pythonPackageSpec": {"pythonModule": "a.b", "packageUris": ["gs://p/a"], "args": ["-x"]}}
    ]
}


def variables(**spec: object) -> dict[str, str]:
    return environment.service_variables(
        job_id="42",
        project_number="123456789012",
        spec={**SPEC, **spec},
        placement=Placement(0, 0, {"workerpool0": ["localhost:2222"]}),
    )


@pytest.mark.parametrize("prefix", ["gs://out/run", "gs://out/run/"])
def test_an_output_directory_adds_the_three_aip_folders(prefix: str) -> None:
    found = variables(baseOutputDirectory={"outputUriPrefix": prefix})
    assert {name: value for name, value in found.items() if name.startswith("AIP_")} == {
        "AIP_MODEL_DIR": "gs://out/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://out/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://out/run/logs/",
    }


def test_a_tensorboard_adds_its_name_and_the_address_of_its_api() -> None:
    name = "projects/1/locations/europe-west4/tensorboards/7"
    found = variables(tensorboard=name)
    assert {key: value for key, value in found.items() if key.startswith("AIP_")} == {
        "AIP_TENSORBOARD_RESOURCE_NAME": name,
        "AIP_TENSORBOARD_API_URI": "europe-west4-aiplatform.googleapis.com",
    }


@pytest.mark.parametrize(
    ("text", "result"),
    [("$(A)b", "1b"), ("$$(A)", "$(A)"), ("$(NO)", "$(NO)"), ("${A} $A", "${A} $A")],
)
def test_references_to_variables_are_expanded_as_in_a_container(text: str, result: str) -> None:
    assert environment.expand(text, {"A": "1"}) == result


def test_the_apis_of_the_local_cloud_are_at_one_address() -> None:
    assert environment.api_variables("http://127.0.0.1:9/") == {
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": "http://127.0.0.1:9/",
        "BIGQUERY_EMULATOR_HOST": "http://127.0.0.1:9",
        "VERTEX_EMULATOR_HOST": "127.0.0.1:9",
    }
    assert environment.api_variables("") == {}


@pytest.mark.parametrize(
    ("cluster", "alone"),
    [
        ({"workerpool0": ["a:1"]}, True),
        ({"workerpool0": ["a:1"], "workerpool1": ["b:1"]}, False),
        ({"workerpool1": ["a:1", "b:1"]}, False),
    ],
)
def test_a_placement_has_the_name_of_its_replica_and_is_alone_or_not(
    cluster: dict[str, list[str]], alone: bool
) -> None:
    place = Placement(1, 2, cluster)
    assert (place.name, place.alone) == ("workerpool1-2", alone)
