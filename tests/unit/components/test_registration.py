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
from tests.unit.components.test_outputs_of_components import H100, JOB, made_by
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)
from vertex_training.components.arguments import Arguments
from vertex_training.customjob.request.job_file import Submission

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


DATA = {"data": {}, "theirs": {"existing": "acme-theirs"}}


@pytest.mark.parametrize(
    ("component", "args", "claimed"),
    [
        (
            TrainingBuckets,
            {**PROJECT, "buckets": DATA},
            {"buckets": [f"local-training-{key}-dev" for key in ("data", "staging", "control")]},
        ),
        (
            TrainingBuckets,
            {**PROJECT, "buckets": DATA, "own_buckets": False},
            {"buckets": ["local-training-data-dev"]},
        ),
        (
            TrainingJob,
            {**JOB, "run": 2},
            {"jobs": [Submission("local-training", "us-central1", "dev", "it", 2)]},
        ),
        (
            TrainingEnvironment,
            {**NUMBERED, "environment": "prod"},
            {"jobs": [], "buckets": ["local-training-staging-prod", "local-training-control-prod"]},
        ),
    ],
)
def test_a_component_takes_the_names_of_what_it_makes(
    component: Callable[..., Any],
    args: dict[str, Any],
    claimed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(Arguments, "claim", lambda _, **given: found.append(given))
    registered(lambda: component("it", args), preview=True)
    assert found == [claimed]


def test_a_request_is_the_same_from_a_file_of_the_program(folder: Path) -> None:
    (folder / "train.yaml").write_text(json.dumps(SPEC))
    args = {key: JOB[key] for key in JOB if key != "spec"} | {"file": "train.yaml"}
    ids = [made_by(TrainingJob, each, "request_id")[0]["request_id"] for each in (args, JOB)]
    assert ids[0] == ids[1] != ""
    assert components_with_types(lambda: TrainingJob("it", args))["it"][1] == {
        **PROJECT, "controlBucket": "control", "file": "train.yaml",
    }  # fmt: skip


def test_a_mistake_in_a_file_is_told_at_its_line(folder: Path) -> None:
    wrong = json.dumps(SPEC["workerPoolSpecs"])
    (folder / "train.yaml").write_text(f"serviceAcount: x@y.z\nworkerPoolSpecs: {wrong}")
    args = {key: JOB[key] for key in JOB if key != "spec"} | {"file": "train.yaml"}
    found = refused(TrainingJob, args).splitlines()
    assert found[1:] == [
        "train.yaml:1:1: serviceAcount: is no field of CustomJobSpec. Hint: did you mean "
        "'serviceAccount'?"
    ]


def test_a_file_that_is_not_there_is_all_that_is_told(folder: Path) -> None:
    args = {key: JOB[key] for key in JOB if key != "spec"} | {"file": "train.yaml"}
    assert refused(TrainingJob, args).splitlines()[1:] == [
        "file: no such file (got train.yaml). Hint: paths start at the folder of Pulumi.yaml"
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
