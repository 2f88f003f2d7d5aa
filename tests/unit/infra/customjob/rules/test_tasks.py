"""Rules about what a task runs: its shell, its variables, its prebuilt image."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.customjob.test_rules import IMAGE, job, reported

PREBUILT = "us-docker.pkg.dev/vertex-ai/training"
BOARD = "projects/1/locations/us-central1/tensorboards/2"
OUTPUT = {"outputUriPrefix": "gs://acme-out/x"}


def told(rule: str, container: dict[str, Any], *pools: Any, **fields: Any) -> str:
    """What the rule says of a job with this container; empty if nothing."""
    given = job(None, *pools, **fields)
    given["workerPoolSpecs"][0]["containerSpec"] |= container
    return reported(given).get(rule, "").partition(": ")[2]


GOES_ON = (
    "workerPoolSpecs[0].containerSpec.args[0]: the script goes on after a command that failed. "
    "Hint: begin it with `set -e`, or join lines with &&"
)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sh", "-c"], GOES_ON),
        (["bash", "-c"], GOES_ON),
        (["/bin/sh", "-c"], GOES_ON),
        (["/bin/bash", "-c"], GOES_ON),
        (["bash", "-ec"], ""),
        (["bash", "-o", "errexit", "-c"], ""),
        (["python", "-c"], ""),
        ([], ""),
    ],
)
def test_a_script_of_several_commands_ends_at_the_first_failure(
    command: list[str], said: str
) -> None:
    script = {"command": command, "args": ["python prepare.py\npython train.py\n"]}
    assert told("script-goes-on", script) == said


SETS = "the service sets this itself"
BOTH = {"tensorboard": BOARD, "baseOutputDirectory": OUTPUT}


@pytest.mark.parametrize(
    ("name", "fields", "more", "is_told"),
    [
        ("CLOUD_ML_PROJECT_ID", {}, 0, True),
        ("CLOUD_ML_JOB_ID", {}, 0, True),
        ("CLUSTER_SPEC", {}, 0, True),
        ("AIP_HTTP_HANDLER_PORT", {}, 0, True),
        ("TF_CONFIG", {}, 0, False),
        ("TF_CONFIG", {}, 1, True),
        ("AIP_TENSORBOARD_API_URI", BOTH, 0, True),
        ("AIP_TENSORBOARD_RESOURCE_NAME", BOTH, 0, True),
        ("AIP_TENSORBOARD_RESOURCE_NAME", {"baseOutputDirectory": OUTPUT}, 0, False),
        ("AIP_MODEL_DIR", {"baseOutputDirectory": OUTPUT}, 0, True),
        ("AIP_CHECKPOINT_DIR", {"baseOutputDirectory": OUTPUT}, 0, True),
        ("AIP_TENSORBOARD_LOG_DIR", {"baseOutputDirectory": OUTPUT}, 0, True),
        ("AIP_MODEL_DIR", {}, 0, False),
        ("AIP_MODEL_DIRS", {"baseOutputDirectory": OUTPUT}, 0, False),
    ],
)
def test_a_variable_is_the_services_where_the_service_sets_it(
    name: str, fields: dict[str, Any], more: int, *, is_told: bool
) -> None:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1,
        "containerSpec": {"imageUri": IMAGE},
    }  # fmt: skip
    found = told("env-reserved", {"env": [{"name": name, "value": "x"}]}, *[pool] * more, **fields)
    place = "workerPoolSpecs[0].containerSpec.env[0].name"
    assert found == (f"{place}: {SETS} (got {name}). Hint: rename it" if is_told else "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("tf-cpu.2-17.py310", ""),
        ("pytorch-gpu.2-4.py310", ""),
        ("sklearn-cpu.1-6", ""),
        ("scikit-learn-cpu.0-23", ""),
        ("xgboost-cpu.1-6", ""),
        ("ray-cpu.2-9.py310", ""),
        ("reductionserver", ""),
        ("tff-cpu.2-17.py310", "did you mean 'tf-cpu.2-17.py310'?"),
        ("pytroch-gpu.2-4.py310", "did you mean 'pytorch-gpu.2-4.py310'?"),
        ("sklern-cpu.1-6", "did you mean 'sklearn-cpu.1-6'?"),
        ("scikitt-learn-cpu.0-23", "did you mean 'scikit-learn-cpu.0-23'?"),
        ("xgbost-cpu.1-6", "did you mean 'xgboost-cpu.1-6'?"),
        ("rey-cpu.2-9.py310", "did you mean 'ray-cpu.2-9.py310'?"),
        ("reductonserver", "did you mean 'reductionserver'?"),
        ("pytorch-cpu.2-4.py310", "pytorch-xla.2-4.py310"),
        ("scikit-learn-cpuu.0-23", "did you mean 'scikit-learn-cpu.0-23'?"),
        ("pytorch-gpuu.2-4.py310", "did you mean 'pytorch-gpu.2-4.py310'?"),
        ("jax-cpu.1-0", ""),
    ],
)
def test_a_name_close_to_a_prebuilt_image_is_taken_for_it(name: str, hint: str) -> None:
    found = told("prebuilt-name", {"imageUri": f"{PREBUILT}/{name}:latest"})
    place = "workerPoolSpecs[0].containerSpec.imageUri"
    what = f"{place}: there is no such prebuilt image (got {name}). Hint: {hint}"
    assert found == (what if hint else "")
