"""What programs in other languages get: the same rules, with paths in their spelling."""

import json
import subprocess
import sys
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

from tests.unit.components.recorder import PROJECT, registered, unknown
from vertex_training.components import host
from vertex_training.infra.engine import HOSTED

TYPE = "vertex-training:index:TrainingBuckets"
#: Numbers come as floats.
BUCKETS = {"data": {"deleteAfterDays": 30.0, "forceDestroy": True}}


def construct(inputs: Any, type_: str = TYPE) -> None:
    host.Host().construct("store", type_, inputs)


def refused(inputs: Any, type_: str = TYPE) -> dict[str, str]:
    """Path -> reason of what is refused; nothing was registered."""

    def declare() -> None:
        with pytest.raises(InputPropertiesError) as caught:
            construct(inputs, type_)
        found.update((e["property_path"], e["reason"]) for e in caught.value.errors or [])

    found: dict[str, str] = {}
    assert registered(declare, preview=True) == {}
    return found


def test_arguments_are_those_of_a_stack_file() -> None:
    made = registered(lambda: construct({**PROJECT, "buckets": BUCKETS}))
    _, inputs = made["store-data"]
    assert inputs["name"] == "local-training-data-dev"
    assert inputs["forceDestroy"] is True
    ages = [rule["condition"].get("age") for rule in inputs["lifecycleRules"]]
    assert 30 in ages
    assert not HOSTED.get()


def test_all_mistakes_are_told_by_the_paths_of_their_properties() -> None:
    wrong = {"data": {"softDeleteDays": 3.0, "deleteAfterDay": 1.0, "retention": {"days": "x"}}}
    found = refused({"project": "local-training", "buckets": wrong})
    assert found["region"] == "missing. Hint: give region"
    assert found["buckets.data.softDeleteDays"] == "must be 0 (off) or 7 to 90 days (got 3)."
    hint = "unknown key. Hint: did you mean 'deleteAfterDays'?"
    assert found["buckets.data.deleteAfterDay"] == hint
    assert "buckets.data.retention.days" in found


def test_what_is_unknown_or_secret_is_refused_without_its_value() -> None:
    def inputs() -> dict[str, Any]:
        return {"project": pulumi.Output.secret("hunter2"), "region": unknown(), "buckets": {}}

    def declare() -> None:
        with pytest.raises(InputPropertiesError) as caught:
            construct(inputs())
        said.append(str([caught.value.message, caught.value.errors]))

    said: list[str] = []
    assert registered(declare, preview=True) == {}
    assert "is secret, and would stand" in said[0]
    assert "is not known before another resource was made" in said[0]
    assert "hunter2" not in said[0]


def test_a_mistake_in_a_request_is_at_its_place_in_the_spec() -> None:
    spec = {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-5"}}]}
    job = {**PROJECT, "controlBucket": "control", "spec": spec}
    found = refused(job, "vertex-training:index:TrainingJob")
    assert "spec.workerPoolSpecs[0].machineSpec.machineType" in found


def test_every_component_is_in_the_schema() -> None:
    schema = json.loads(host.Host().schema or "")
    assert set(schema["resources"]) == {
        f"vertex-training:index:{each.__name__}" for each in host.COMPONENTS
    }


@pytest.mark.parametrize("first", ["google.cloud.aiplatform_v1", "vertex_training.components.host"])
def test_the_plugin_can_load_googles_clients(first: str) -> None:
    code = f"import {first}, vertex_training.components.host, google.cloud.aiplatform_v1"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_user_who_starts_the_plugin_is_told_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/pulumi-resource-vertex-training"])
    with pytest.raises(SystemExit, match="is a plugin, which pulumi starts"):
        host.main()
