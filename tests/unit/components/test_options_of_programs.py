"""What programs expect of any resource: names, providers, keywords, inputs, unknown values."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest

from tests.unit.components.recorder import PROJECT, registered, unknown
from tests.unit.components.test_components import SPEC, refused
from vertex_training import (
    TrainingBuckets,
    TrainingJob,
)

JOB = {**PROJECT, "control_bucket": "acme-control", "spec": SPEC}
Declare = Callable[[], Any]


def inputs_of(declare: Declare, name: str, *, preview: bool = False) -> dict[str, Any]:
    return registered(declare, preview=preview)[name][1]


@pytest.fixture
def config() -> Iterator[Callable[..., None]]:
    """Sets keys of the provider in the stack's config."""

    def give(**values: str) -> None:
        pulumi.runtime.set_all_config({f"gcp:{key}": value for key, value in values.items()})

    yield give
    pulumi.runtime.set_all_config({})


def test_arguments_come_before_the_provider_and_the_provider_before_the_config(
    config: Callable[..., None],
) -> None:
    config(project="local-config", region="us-east1")

    def declare() -> None:
        provider = gcp.Provider("explicit", project="local-provider")
        opts = pulumi.ResourceOptions(provider=provider)
        TrainingBuckets("store", {"region": "us-west1"}, opts)
        TrainingBuckets("rest", {"environment": "rest"}, opts)

    made = registered(declare)
    control = made["store-control"][1]
    assert (control["name"], control["location"]) == ("local-provider-control-dev", "US-WEST1")
    assert made["rest-control"][1]["location"] == "US-EAST1"


def test_any_text_of_a_spec_reaches_the_job_as_it_is() -> None:
    text = '--name=\u00e9 \U0001f600\\ud83d\\ude00 \x7f \x85 \u2028 \ufeff "\\'
    spec = copy.deepcopy(SPEC)
    spec["workerPoolSpecs"][0]["containerSpec"]["args"] = [text]
    made = inputs_of(lambda: TrainingJob("hello", {**JOB, "spec": spec}), "hello-hello")
    [pool] = json.loads(made["request"])["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["args"] == [text]


def test_recursive_spec_is_one_mistake() -> None:
    spec = copy.deepcopy(SPEC)
    spec["labels"] = {"first": spec, "second": [spec]}
    said = refused(TrainingJob, lambda: {**JOB, "spec": spec})
    assert said == (
        "TrainingJob 'it': 1 mistake; the component declared no resource.\nspec: the value is "
        "nested more than 80 levels deep, or contains itself. Hint: pass a value with fewer levels"
    )


def job_of_unknown_image(machine_type: str = "n1-standard-4") -> Any:
    """Arguments of a job whose image another resource of the program has yet to build."""
    spec = copy.deepcopy(SPEC)
    spec["workerPoolSpecs"][0]["containerSpec"]["imageUri"] = unknown()
    spec["workerPoolSpecs"][0]["machineSpec"]["machineType"] = machine_type
    return {**JOB, "spec": spec}


def test_an_image_may_be_unknown_in_a_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)

    def declare() -> None:
        job = TrainingJob("hello", job_of_unknown_image())
        job.cost_usd_at_most.apply(costs.append)
        job.request_id.apply(ids.append)

    costs: list[float] = []
    ids: list[str] = []
    made = inputs_of(declare, "hello-hello", preview=True)
    assert not isinstance(made.get("requestId"), str)
    pool = json.loads(made["request"])["jobSpec"]["workerPoolSpecs"][0]
    assert pool["containerSpec"]["imageUri"].startswith("image.invalid/not-known-yet@")
    assert costs[0] > 0
    assert ids == []
    assert (
        "spec.workerPoolSpecs[0].containerSpec.imageUri: the image is unknown in this preview"
        in said[0]
    )
