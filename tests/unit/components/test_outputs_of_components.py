"""What each component gives to the rest of a program, and the whole text of each refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from tests.unit.components.recorder import NUMBERED, PROJECT, registered
from tests.unit.components.test_components import SPEC, refused
from vertex_training import (
    GpuReservation,
    TrainingAccount,
    TrainingBuckets,
    TrainingEnvironment,
    TrainingJob,
    TrainingNetwork,
)

LOCAL = {"project": "local-training"}
JOB = {**PROJECT, "control_bucket": "control", "spec": SPEC}
KEY = "projects/local-training/locations/us-central1/keyRings/ml/cryptoKeys/k"


def made_by(
    component: Callable[..., Any], args: Any, *outputs: str, preview: bool = False
) -> tuple[dict[str, Any], dict[str, tuple[str, dict[str, Any]]]]:
    """Its outputs, and what it registers."""
    found: dict[str, Any] = {}

    def declare() -> None:
        made = component("it", args() if callable(args) else args)
        values = {name: getattr(made, name) for name in outputs}
        pulumi.Output.from_input(values).apply(found.update)

    return found, registered(declare, preview=preview)


def services(made: dict[str, tuple[str, dict[str, Any]]]) -> set[str]:
    """APIs that are turned on."""
    return {
        inputs["service"].removesuffix(".googleapis.com")
        for type_, inputs in made.values()
        if type_ == "gcp:projects/service:Service"
    }


H100 = {
    **{key: NUMBERED[key] for key in ("project", "project_number")},
    "zone": "us-central1-a",
    "machine_type": "a3-highgpu-8g",
    "count": 2,
}


@pytest.mark.parametrize(
    ("component", "args", "lines"),
    [
        (TrainingBuckets, {}, ["project: missing. Hint: give project",
                               "region: missing. Hint: give region"]),
        (
            TrainingBuckets,
            {**PROJECT, "encryption_key": "k"},
            ["encryption_key: must look like projects/PROJECT/locations/REGION/keyRings/RING/"
             "cryptoKeys/KEY (got \"k\")."],
        ),
        (
            TrainingNetwork,
            NUMBERED,
            ["mode: says how jobs reach it. Hint: peering or psc; a job without a network needs "
             "no component"],
        ),
        (
            TrainingNetwork,
            {**NUMBERED, "mode": "psc", "subnet": {"range": "10.0.0.1/24"}},
            ["subnet.range: must be a block of IPv4 addresses like 10.20.0.0/24: 10.0.0.1/24 has "
             'host bits set (got "10.0.0.1/24").'],
        ),
        (
            GpuReservation,
            {key: H100[key] for key in H100 if key != "zone"} | {"base_name": "h100"},
            ["zone: missing. Hint: give zone"],
        ),
        (
            TrainingAccount,
            {**LOCAL, "reads": {"data": "Not A Bucket"}, "calls_vertex": "x"},
            ["reads.data: must look like acme-datasets: 3 to 63 lowercase letters, digits, '-' and "
             '\'_\' (got "Not A Bucket").',
             'calls_vertex: must be true or false (got "x").'],
        ),
        (
            TrainingEnvironment,
            {**NUMBERED, "service_accounts": {"trainer": {"reads": ["dat"]}},
             "buckets": {"data": {}}},
            ["service_accounts.trainer.reads[0]: this stack has no such bucket (got dat). Hint: "
             "did you mean 'data'?"],
        ),
        (
            TrainingJob,
            {**JOB, "file": "x.yaml"},
            ["spec: give either spec or file."],
        ),
        (
            TrainingJob,
            {**PROJECT, "spec": SPEC},
            ["control_bucket: missing. Hint: give the bucket of TrainingBuckets.control"],
        ),
        (
            TrainingJob,
            {**JOB, "control_bucket": "gs://x"},
            ["control_bucket: must be the name of a bucket (got gs://x). Hint: the name alone, "
             "without gs://: TrainingBuckets.control"],
        ),
        (
            TrainingJob,
            {**JOB, "ladder": [{"strategy": "SPOT"}, {"reservation": "h100"}]},
            ["ladder[1].reservation: no such reservation (got h100). Hint: "
             "projects/PROJECT/zones/ZONE/reservations/NAME",
             "spec.workerPoolSpecs[0].machineSpec.reservationAffinity.values[0]: rung 3 "
             "(reservation h100): not a reservation's name (got h100). Hint: "
             "projects/PROJECT/zones/ZONE/reservations/NAME"],
        ),
    ],
)  # fmt: skip
def test_a_refusal_names_the_component_and_every_mistake(
    component: Any, args: dict[str, Any], lines: list[str]
) -> None:
    head, *found = refused(component, args).splitlines()
    assert found == lines
    count = "1 mistake" if len(found) == 1 else f"{len(found)} mistakes"
    assert head == f"{component.__name__} 'it': {count}; nothing of it was declared."
