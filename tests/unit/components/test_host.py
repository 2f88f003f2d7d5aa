"""What programs in other languages get: the same rules, with paths in their spelling."""

import subprocess
import sys
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

from tests.unit.components.recorder import PROJECT, registered, unknown
from tests.unit.components.test_components import SPEC
from vertex_training import host
from vertex_training.components import training
from vertex_training.errors import OperatorError

TYPE = "vertex-training:index:TrainingBuckets"


def construct(inputs: Any, type_: str = TYPE) -> None:
    host.Host().construct("store", type_, inputs)


def refused(inputs: Any, type_: str = TYPE) -> list[str]:
    """The lines of the message; nothing was registered, and no value goes to the engine."""

    def declare() -> None:
        with pytest.raises(InputPropertiesError) as caught:
            construct(inputs() if callable(inputs) else inputs, type_)
        assert caught.value.errors == []
        found.extend(caught.value.message.splitlines())

    found: list[str] = []
    assert registered(declare, preview=True) == {}
    return found


def test_unknown_or_secret_argument_is_refused_without_its_value() -> None:
    def inputs() -> dict[str, Any]:
        return {"project": pulumi.Output.secret("hunter2"), "region": unknown(), "buckets": {}}

    said = "\n".join(refused(inputs))
    assert "project: this value is secret, but" in said
    assert "region: the value is unknown until another resource is created" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("fails", [False, True])
def test_component_of_a_job_ends_when_its_wait_ends(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []
    urns: list[str] = []

    async def wait(_wanted: Any, name: str, _ports: Any) -> None:
        waited.append(name)
        if fails:
            raise OperatorError("job 'train' is FAILED.")

    def declare() -> None:
        job = {**PROJECT, "controlBucket": "control", "spec": SPEC, "wait": "succeeded"}
        made = host.Host().construct("train", "vertex-training:index:TrainingJob", job)
        made.urn.apply(urns.append)

    monkeypatch.setattr(training, "wait_for_job", wait)
    monkeypatch.setattr(pulumi.log, "error", lambda *_, **__: None)
    if fails:
        with pytest.raises(
            InputPropertiesError, match="a job did not reach the state in its `wait`"
        ):
            registered(declare)
    else:
        registered(declare)
    assert (len(urns), len(waited)) == (0 if fails else 1, 1)


@pytest.mark.parametrize("first", ["google.cloud.aiplatform_v1", "vertex_training.host"])
def test_the_plugin_can_load_googles_clients(first: str) -> None:
    code = f"import {first}, vertex_training.host, google.cloud.aiplatform_v1"
    subprocess.run([sys.executable, "-c", code], check=True)
