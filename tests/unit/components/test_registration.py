"""What a state has of each component, and a job whose request is a file of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests.unit.components.recorder import NUMBERED, PROJECT, components_with_types, registered
from tests.unit.components.test_components import SPEC, refused
from tests.unit.components.test_outputs_of_components import H100, JOB
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)

#: The same as a stack file spells it.
PLACE = {**PROJECT, "projectNumber": "971240389164"}


@pytest.mark.parametrize(
    ("component", "args", "inputs"),
    [
        (
            TrainingBuckets,
            {**PROJECT, "buckets": {"data": {"soft_delete_days": 7}}, "own_buckets": True},
            {**PROJECT, "buckets": {"data": {"softDeleteDays": 7}}, "ownBuckets": True},
        ),
        (
            TrainingAccount,
            {"project": "local-training", "reads": {"data": "acme-data"}, "calls_vertex": True},
            {"project": "local-training", "reads": {"data": "acme-data"}, "callsVertex": True},
        ),
        (
            TrainingNetwork,
            {**NUMBERED, "mode": "psc", "subnet": {"range": "10.20.0.0/24"}},
            {**PLACE, "mode": "psc", "subnet": {"range": "10.20.0.0/24"}},
        ),
        (
            GpuReservation,
            {**H100, "base_name": "h100", "environment": "prod"},
            {
                "project": "local-training", "projectNumber": "971240389164",
                "zone": "us-central1-a", "machineType": "a3-highgpu-8g", "count": 2,
                "baseName": "h100", "environment": "prod",
            },
        ),
        (
            TrainingJob,
            {**JOB, "run": 2, "on_delete": "delete"},
            {**PROJECT, "controlBucket": "control", "spec": SPEC, "run": 2, "onDelete": "delete"},
        ),
        (
            TrainingEnvironment,
            {**NUMBERED, "environment": "prod", "service_accounts": {"trainer": {}}},
            {**PLACE, "environment": "prod", "serviceAccounts": {"trainer": {}}},
        ),
    ],
)  # fmt: skip
def test_a_state_has_a_component_by_its_type_with_its_arguments(
    component: Callable[..., Any], args: dict[str, Any], inputs: dict[str, Any]
) -> None:
    found = components_with_types(lambda: component("it", args))
    assert found == {"it": (f"vertex-training:index:{component.__name__}", inputs)}


def test_mistake_in_a_file_is_reported_at_its_line(folder: Path) -> None:
    wrong = json.dumps(SPEC["workerPoolSpecs"])
    (folder / "train.yaml").write_text(f"serviceAcount: x@y.z\nworkerPoolSpecs: {wrong}")
    args = {key: JOB[key] for key in JOB if key != "spec"} | {"file": "train.yaml"}
    found = refused(TrainingJob, args).splitlines()
    assert found[1:] == [
        "train.yaml:1:1: serviceAcount: is no field of CustomJobSpec. Hint: did you mean "
        "'serviceAccount'?"
    ]


def test_warnings_of_a_request_name_the_component_and_the_property(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: said.append(text))
    spot = {**SPEC, "scheduling": {"timeout": "600s", "strategy": "SPOT"}}
    registered(lambda: TrainingJob("it", {**JOB, "spec": spot}))
    assert said == [
        "TrainingJob 'it': spec: baseOutputDirectory is missing: a preempted job starts again from "
        "nothing. Hint: set it, and resume from AIP_CHECKPOINT_DIR"
    ]
