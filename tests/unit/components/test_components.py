"""Components declare what a stack file declares, and refuse what it refuses."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

import vertex_training
from tests.unit.components.recorder import PROJECT, registered
from vertex_training import (
    ArgumentsError,
    TrainingAccount,
    TrainingBuckets,
    TrainingJob,
)
from vertex_training.components import arguments as declaring
from vertex_training.components import sections

SPEC: dict[str, Any] = {
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": "python:3.11", "command": ["true"]},
        }
    ],
    "serviceAccount": "trainer-dev@local-training.iam.gserviceaccount.com",
    "scheduling": {"timeout": "600s"},
}
JOB = {**PROJECT, "control_bucket": "control", "spec": SPEC}


def refused(component: Any, args: Any, name: str = "it") -> str:
    """The message about wrong arguments; nothing was registered."""

    def declare() -> None:
        with pytest.raises(ArgumentsError) as caught:
            component(name, args() if callable(args) else args)
        found.append(str(caught.value))

    found: list[str] = []
    assert registered(declare, preview=True) == {}
    return found[0]


@pytest.mark.parametrize("component", [TrainingBuckets, TrainingAccount])
def test_a_stacks_name_is_judged_like_an_environment(
    component: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi, "get_stack", lambda: "Feature_X.1")
    place = {"project": "local-training"} if component is TrainingAccount else PROJECT
    text = refused(component, place)
    assert text.splitlines()[1:] == [
        "environment: the stack's name is the default, and must be a name like staging (got "
        "Feature_X.1). Hint: rename the stack, or pass environment; use 1 to 40 lowercase letters, "
        "digits and hyphens, starting with a letter"
    ]
    assert "must be a name like staging (got Feature_X.1)" in refused(
        component, {**place, "environment": "Feature_X.1"}
    )


def test_every_public_name_exists() -> None:
    written = {name for name in vars(sections) if name.endswith("Args")}
    assert written <= set(vertex_training.__all__)
    for name in vertex_training.__all__:
        assert getattr(vertex_training, name)
    with pytest.raises(AttributeError, match="no attribute 'TrainingBucket'"):
        vertex_training.TrainingBucket  # noqa: B018


def test_a_value_of_another_type_is_reported_at_its_path() -> None:
    said = refused(TrainingJob, {**PROJECT, "control_bucket": object()})
    assert "control_bucket: values of type object are not supported" in said


def test_dependencies_may_be_an_output() -> None:
    def declare() -> None:
        first = TrainingBuckets("store", {**PROJECT, "environment": "one"})
        later = pulumi.ResourceOptions(depends_on=pulumi.Output.from_input([first]))
        TrainingBuckets("later", {**PROJECT, "environment": "two"}, later)

    assert "later-control" in registered(declare)


def test_two_components_cannot_have_one_job_or_one_bucket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(declaring, "is_mocked", lambda: False)
    job = JOB

    def declare() -> None:
        TrainingJob("train", job)
        TrainingJob("train", {**job, "environment": "other"})
        with pytest.raises(ArgumentsError) as caught:
            TrainingJob("train", job, pulumi.ResourceOptions(aliases=["x"]))
        said.append(str(caught.value))
        TrainingBuckets("store", PROJECT)
        with pytest.raises(ArgumentsError) as caught:
            TrainingBuckets("again", PROJECT)
        said.append(str(caught.value))

    said: list[str] = []
    registered(declare)
    assert "TrainingJob 'train' declares job train of dev in local-training, us-central1" in said[0]
    assert "TrainingBuckets 'store' declares bucket local-training-control-dev" in said[1]
