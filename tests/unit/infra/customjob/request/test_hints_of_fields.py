"""A field that does not exist gets the right neighbour, or none."""

from __future__ import annotations

import pytest

from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.request import hints


@pytest.mark.parametrize(
    ("field", "message", "hint"),
    [
        ("replicas", "WorkerPoolSpec", "did you mean 'replicaCount'?"),
        ("imageUrl", "ContainerSpec", "did you mean 'imageUri'?"),
        ("timeOut", "Scheduling", "did you mean 'timeout'?"),
        ("spotInstances", "Scheduling", "write scheduling.strategy: SPOT in jobSpec"),
        ("maxRunTime", "CustomJobSpec", "write scheduling.timeout"),
        ("workingDir", "ContainerSpec", "there is none"),
        ("acceleratorTypes", "WorkerPoolSpec", "did you mean 'acceleratorType'? It belongs to"),
        # These resemble fields of quite other places, and were never meant to be those.
        ("user", "ContainerSpec", "known here: args, command, env, imageUri"),
        ("gracePeriod", "Scheduling", "known here: disableRetries"),
        ("healthCheck", "WorkerPoolSpec", "known here: containerSpec"),
    ],
)
def test_a_field_that_does_not_exist_gets_the_right_neighbour_or_none(
    field: str, message: str, hint: str
) -> None:
    rule, said = hints.not_a_field(field, field, message, CUSTOM_JOB)
    assert rule == "unknown-field"
    assert said.startswith(hint)
