"""What a replica sees."""

from __future__ import annotations

import pytest

from localgcp.runner import environment

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
        pool=0,
        index=0,
        cluster={"workerpool0": ["localhost:2222"]},
    )


@pytest.mark.parametrize("prefix", ["gs://out/run", "gs://out/run/"])
def test_an_output_directory_adds_the_three_aip_folders(prefix: str) -> None:
    found = variables(baseOutputDirectory={"outputUriPrefix": prefix})
    assert {name: value for name, value in found.items() if name.startswith("AIP_")} == {
        "AIP_MODEL_DIR": "gs://out/run/model/",
        "AIP_CHECKPOINT_DIR": "gs://out/run/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": "gs://out/run/logs/",
    }


@pytest.mark.parametrize(
    ("text", "result"),
    [("$(A)b", "1b"), ("$$(A)", "$(A)"), ("$(NO)", "$(NO)"), ("${A} $A", "${A} $A")],
)
def test_references_to_variables_are_expanded_as_in_a_container(text: str, result: str) -> None:
    assert environment.expand(text, {"A": "1"}) == result
