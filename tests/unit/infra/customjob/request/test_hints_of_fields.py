"""A field that does not exist gets the right neighbour, or none."""

from __future__ import annotations

import pytest

from vertex_training.customjob.request import hints


@pytest.mark.parametrize(
    ("fields", "other"),
    [
        *(([field], "TrainingPipeline") for field in (
            "trainingTaskDefinition", "trainingTaskInputs", "modelToUpload")),
        *((["displayName", field], "PipelineJob") for field in (
            "pipelineSpec", "pipelineInfo", "runtimeConfig", "deploymentSpec")),
        (["trainingInput"], "job of AI Platform Training"),
        (["apiVersion"], "Kubernetes resource"),
        (["taskGroups"], "job of Google Batch"),
        (["allocationPolicy"], "job of Google Batch"),
        (["displayName", "jobSpec"], ""),
        *(([field], "stack file of Pulumi") for field in (
            "secretsprovider", "encryptionsalt", "encryptedkey")),
        (["name", "config", "runtime"], "project file of Pulumi"),
        *(([field], "") for field in ("config", "name", "runtime")),
        *((["name", "runtime", "encryptionsalt", field], "") for field in (
            "jobSpec", "trialJobSpec", "workerPoolSpecs", "studySpec", "labels")),
    ],
)  # fmt: skip
def test_a_file_of_another_resource_is_known_by_its_fields(fields: list[str], other: str) -> None:
    assert hints.other_resource(fields) == other
    assert not other or hints.OTHER_HINTS[other]


@pytest.mark.parametrize(
    ("fields", "config", "other"),
    [
        (["config"], ["a", "gcp:project"], "stack file of Pulumi"),
        (["config"], ["a"], ""),
        (["config", "workerPoolSpecs"], ["gcp:project"], ""),
        (["config", "name", "runtime"], ["gcp:project"], "project file of Pulumi"),
    ],
)
def test_a_stack_file_is_known_by_the_namespaces_of_its_config(
    fields: list[str], config: list[str], other: str
) -> None:
    assert hints.other_resource(fields, config=config) == other


@pytest.mark.parametrize(
    ("file", "other", "stack"),
    [
        ("a/Pulumi.dev.yaml", "stack file of Pulumi", "dev"),
        ("Pulumi.eu.west.yaml", "stack file of Pulumi", "eu.west"),
        ("Pulumi.yaml", "project file of Pulumi", "STACK"),
        ("myPulumi.dev.yaml", "", ""),
        ("Pulumi.dev/job.yaml", "", ""),
    ],
)
def test_a_file_of_the_engine_is_known_by_its_name(file: str, other: str, stack: str) -> None:
    assert hints.other_resource(["labels"], file) == other
    assert not other or f"--stack {stack}`" in hints.hint_of_other(other, file)
